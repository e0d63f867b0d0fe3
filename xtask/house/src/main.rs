//! `cargo xtask house`: the size and the order of this tree, or of another version of it, as a table.
//!
//! - `packages`: the packages of a tree. `modules` reads the definitions, imports and names of a crate's modules;
//!   `arrows` finds the definition of each name, and so the files and modules that use each other; `circles` finds
//!   those in a circle.
//! - `lines`: the counts line by line.
#![expect(clippy::print_stdout, reason = "this command speaks to a person")]

mod arrows;
mod circles;
mod lines;
mod modules;
mod packages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use anyhow::{Context, Result};

use self::arrows::{between_files, between_modules};
use self::lines::{Counts, split, write_types};
use self::modules::Sources;
use self::packages::{Package, packages};

/// The purpose of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Product,
    UnitTests,
    Laboratory,
    Pipeline,
    Commands,
}

/// The counts of a tree.
#[derive(Debug, Default)]
struct House {
    lines: BTreeMap<Kind, usize>,
    counts: Counts,
    write_types: usize,
}

fn main() -> Result<()> {
    let tree = env::args_os().nth(1).context("name the folder of a tree")?;
    let packages = packages(Path::new(&tree))?;
    let mut house = House::default();
    for package in &packages {
        house.add(package);
    }
    let circles = packages.iter().map(|one| one.circles(between_modules));
    let circles: Vec<_> = circles.flatten().collect();
    let of_files = packages.iter().map(|one| one.circles(between_files).len());
    house.print(circles.len(), of_files.sum());
    for circle in circles {
        println!(
            "\n{}: {}\n    {}",
            circle.package, circle.members, circle.way
        );
    }
    Ok(())
}

impl House {
    fn add(&mut self, package: &Package) {
        let (kind, tests) = match package.folder.split('/').next() {
            Some("lab") => (Kind::Laboratory, Kind::Laboratory),
            Some("tests") => (Kind::Pipeline, Kind::Pipeline),
            Some("xtask") => (Kind::Commands, Kind::Commands),
            _ => (Kind::Product, Kind::UnitTests),
        };
        let product = package.product();
        for (file, text) in &package.sources {
            if product.contains(file.as_str()) {
                let (code, inline) = split(text);
                if kind == Kind::Product {
                    self.write_types += write_types(&code).len();
                }
                self.count(kind, code);
                self.count(tests, inline);
            } else {
                self.count(tests, text.lines());
            }
        }
        for text in package.tests.iter().flat_map(Sources::values) {
            self.count(tests, text.lines());
        }
    }

    fn count<'a>(&mut self, kind: Kind, lines: impl IntoIterator<Item = &'a str>) {
        let before = self.counts.lines;
        for line in lines {
            self.counts.add(line);
        }
        *self.lines.entry(kind).or_default() += self.counts.lines - before;
    }

    fn print(&self, circles: usize, of_files: usize) {
        let lines = |kind| self.lines.get(&kind).copied().unwrap_or_default();
        let counts = &self.counts;
        println!("| | here | what is counted |\n|---|---|---|");
        for (name, number, rule) in [
            (
                "product",
                lines(Kind::Product),
                "lines of `src` of the programs and of what they are built of, without tests",
            ),
            (
                "unit tests",
                lines(Kind::UnitTests),
                "lines there of which only tests are built: `mod tests`, inline and in files, `tests/`",
            ),
            ("laboratory", lines(Kind::Laboratory), "lines of `lab/`"),
            ("pipeline", lines(Kind::Pipeline), "lines of `tests/`"),
            ("commands", lines(Kind::Commands), "lines of `xtask/`"),
            (
                "write types",
                self.write_types,
                "types of the product named `…Plan`, `…Write`, `…Change` or `…Step` that hold a `…Value`, `…Box`, `…Patch` or `…Write`",
            ),
            (
                "circles between modules",
                circles,
                "sets of modules of one folder, each with all in it, that use each other; they follow below",
            ),
            (
                "circles between files",
                of_files,
                "sets of files that use each other",
            ),
            (
                "functions",
                per(1000, counts.functions, counts.lines),
                "per 1,000 lines",
            ),
            (
                "closures",
                per(1000, counts.closures, counts.bindings),
                "`let` of a closure, per 1,000 `let`",
            ),
            (
                "“what”",
                per(10_000, counts.whats, counts.words),
                "per 10,000 words of comments",
            ),
        ] {
            println!("| {name} | {number} | {rule} |");
        }
    }
}

/// Returns how many there are per `base` of all, rounded down.
fn per(base: usize, some: usize, all: usize) -> usize {
    (base * some).checked_div(all).unwrap_or_default()
}
