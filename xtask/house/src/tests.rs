use std::path::Path;

use crate::arrows::{Arrows, between_files, between_modules};
use crate::modules::{Modules, read};
use crate::packages::{Circle, packages};

/// The circles between modules that are still there: the package, the modules and why.
const KNOWN: [(&str, &str, &str); 1] = [(
    "lab/apiserver",
    "kinds metadata",
    "the rules of a kind look at finalizers, and metadata are validated by the names that their kind allows",
)];

/// No two files of a crate use each other, by however many others.
#[test]
fn files_form_no_circle() {
    let found: Vec<_> = found(between_files).iter().map(shown).collect();
    assert!(found.is_empty(), "circles:\n{}", found.concat());
}

/// The modules of a folder, each with all that is in it, form no circle but those that are known. Who undoes one of them
/// takes it out of the list.
#[test]
fn modules_form_known_circles() {
    let found = found(between_modules);
    let is_known = |circle: &&Circle| {
        let mut known = KNOWN.iter();
        known.any(|(package, members, _)| *package == circle.package && *members == circle.members)
    };
    let (known, new): (Vec<_>, Vec<_>) = found.iter().partition(is_known);
    let new: Vec<_> = new.into_iter().map(shown).collect();
    assert!(new.is_empty(), "new circles:\n{}", new.concat());
    let gone = KNOWN.iter().filter(|(package, members, _)| {
        let mut known = known.iter();
        !known.any(|circle| circle.package == *package && circle.members == *members)
    });
    let gone: Vec<_> = gone.collect();
    assert!(gone.is_empty(), "no circles any more: {gone:?}");
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
