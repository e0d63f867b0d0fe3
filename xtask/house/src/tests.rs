use std::path::Path;

use crate::arrows::{Arrows, between_files, between_modules};
use crate::modules::{Modules, read};
use crate::packages::{Circle, packages};

/// No two files of a crate use each other, by however many others.
#[test]
fn files_form_no_circle() {
    assert_no_circle(between_files);
}

/// The modules of a folder, each with all that is in it, form no circle either.
#[test]
fn modules_form_no_circle() {
    assert_no_circle(between_modules);
}

fn assert_no_circle(arrows: fn(&Modules) -> Arrows) {
    let found: Vec<_> = found(arrows).iter().map(shown).collect();
    assert!(found.is_empty(), "circles:\n{}", found.concat());
}

fn found(arrows: fn(&Modules) -> Arrows) -> Vec<Circle> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = packages(&workspace).unwrap();
    let files: usize = packages.iter().map(|one| one.sources.len()).sum();
    assert!(files > 300, "only {files} files were read");
    packages
        .iter()
        .flat_map(|one| one.circles(arrows))
        .collect()
}

fn shown(circle: &Circle) -> String {
    format!(
        "{}: {}\n    {}\n",
        circle.package, circle.members, circle.way
    )
}

/// Returns the modules of a crate that begins with `lib.rs`.
pub(crate) fn modules_of(files: &[(&str, &str)]) -> Modules {
    let files = files.iter();
    let sources = files
        .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
        .collect();
    read("lib.rs", &sources).unwrap()
}
