use std::path::Path;

use crate::arrows::{Arrows, between_files, between_modules};
use crate::modules::{Modules, read};
use crate::packages::{Circle, packages};

/// The circles between modules that are still there: the package, the modules and why.
const KNOWN: [(&str, &str, &str); 3] = [
    (
        "crates/runtime",
        "admin args client conflicts delivery error events lease metrics program tasks telemetry watch write",
        "`error` quotes the failure of a credential plugin, and each part takes the flags and metrics of all from `program`",
    ),
    (
        "crates/runtime",
        "client::error client::exec client::token",
        "the error of the client has that of a credential plugin in it, and a plugin's token is one of the client's",
    ),
    (
        "tests",
        "fleet propagation",
        "a fleet starts the programs of the propagation, which are written for a fleet's members",
    ),
];

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
    let (known, new): (Vec<_>, Vec<_>) = found.iter().partition(|circle| {
        let mut known = KNOWN.iter();
        known.any(|(package, members, _)| *package == circle.package && *members == circle.members)
    });
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
