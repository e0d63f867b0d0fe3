//! The program's output for invalid flags.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

/// Asserts that the program exits with code 2 and one line on standard error, and returns that line.
#[track_caller]
fn rejected(flags: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_propagation-controller"));
    let output = command.env_clear().args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn a_missing_kubeconfig_is_named() {
    let line = rejected(&["--kubeconfig=/no/such/file"]);
    assert!(
        line.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{line}"
    );
}

#[test]
fn a_pattern_of_namespaces_that_is_none_is_named() {
    let line = rejected(&["--skipped-propagating-namespaces=kube-.*,("]);
    assert!(
        line.starts_with("error: invalid value '(' for '--skipped-propagating-namespaces"),
        "{line}"
    );
}
