//! No circle between the files of a crate: each is below those that use it.
//!
//! `modules` reads what the modules of a crate define, import and name; `arrows` finds the file that defines
//! each name, and so the files that a file uses; `circles` finds those that use each other.

mod arrows;
mod circles;
mod modules;

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::arrows::{Arrows, arrows};
use crate::circles::{circles, way_round};
use crate::modules::{Sources, read};

/// The roots of a package's crates, and the folder of the programs that have one each.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];
const PROGRAMS: &str = "bin";

/// No two files of a crate use each other, by however many others.
#[test]
fn files_form_no_circle() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut files = 0;
    for package in packages(&workspace).unwrap() {
        let name = package.strip_prefix(&workspace).unwrap().display();
        let sources = sources(&package.join("src")).unwrap();
        files += sources.len();
        for arrows in roots(&sources).map(|root| arrows(&read(&root, &sources).unwrap())) {
            for circle in circles(&arrows) {
                let way = way_round(&arrows, &circle);
                found.push(format!("{name}: {}\n    {way}\n", circle.join(" ")));
            }
        }
    }
    assert!(files > 300, "only {files} files were read");
    assert!(found.is_empty(), "circles:\n{}", found.concat());
}

/// Returns the folders of all packages below `folder`.
fn packages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            if path.join("src").is_dir() && path.join("Cargo.toml").is_file() {
                packages.push(path.clone());
            }
            packages.extend(self::packages(&path)?);
        }
    }
    Ok(packages)
}

/// Returns the text of each file of Rust below `folder`, by its path there.
fn sources(folder: &Path) -> io::Result<Sources> {
    let mut sources = Sources::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap_or(&path).display();
                sources.insert(name.to_string(), fs::read_to_string(&path)?);
            }
        }
    }
    Ok(sources)
}

/// Iterates over the files with which a crate begins.
fn roots(sources: &Sources) -> impl Iterator<Item = String> {
    let is_root = |file: &&String| {
        let program = file
            .strip_prefix(PROGRAMS)
            .is_some_and(|rest| rest.matches('/').count() == 1);
        ROOTS.contains(&file.as_str()) || program
    };
    sources.keys().filter(is_root).cloned()
}

/// Returns the arrows between the files of a crate that begins with `lib.rs`.
#[cfg(test)]
fn arrows_of(files: &[(&str, &str)]) -> Arrows {
    let files = files.iter();
    let sources = files
        .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
        .collect();
    arrows(&read("lib.rs", &sources).unwrap())
}
