//! docs/security.md against the code: the tests that it names are there.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use tools::cargo;

/// Whoever doubts that something confines an account runs the test that tries to break it.
#[test]
fn named_tests_exist() {
    let page = fs::read_to_string(cargo::root().join("docs/security.md")).unwrap();
    // Every second part of a text is between backticks.
    let words = page.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = words.filter(|word| is_test(word)).collect();
    assert!(named.len() > 10, "{named:?}");
    let code = code();
    for name in named {
        let is_there = code.contains(&format!("fn {name}("));
        assert!(
            is_there,
            "docs/security.md names {name}, and no test is called so"
        );
    }
}

/// Returns `true` for a word that looks like the name of a test.
fn is_test(word: &str) -> bool {
    let mut characters = word.chars();
    word.matches('_').count() > 1 && characters.all(|one| one.is_ascii_lowercase() || one == '_')
}

/// Returns all code of the project.
fn code() -> String {
    let files = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .arg("*.rs")
        .current_dir(cargo::root())
        .output()
        .unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    let code = files.lines();
    code.filter_map(|file| fs::read_to_string(cargo::root().join(file)).ok())
        .collect()
}
