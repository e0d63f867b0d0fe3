//! The program's output for what it cannot use.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use lab_parts::flags;
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-remedy");

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(PROGRAM, &[], flags)
}

/// A kubeconfig with one context, `here`, whose server does not answer.
fn kubeconfig(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("here", CLOSED)]).unwrap();
    format!("--kubeconfig={}", path.display())
}

#[test]
fn what_is_missing_on_the_line_is_named() {
    for (flags, named) in [
        (&[][..], "requires a subcommand"),
        (&["blok"], "unrecognized subcommand 'blok'"),
        (&["block", "m1"], "--for <DURATION>"),
        (&["block", "m1", "--for=0s"], "must be longer than 0s"),
        (&["plan"], "--filename <FILE>"),
        (&["unblock", "m1", "--dry-run=maybe"], "--dry-run"),
    ] {
        let line = rejected(flags);
        assert!(line.starts_with("error: "), "{line}");
        assert!(line.contains(named), "{line}");
    }
}

#[test]
fn a_kubeconfig_or_context_that_does_not_exist_is_named_wherever_its_flag_stands() {
    let line = rejected(&["--kubeconfig=/no/such/file", "status"]);
    assert!(
        line.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{line}"
    );
    let folder = tempfile::tempdir().unwrap();
    let line = rejected(&["status", &kubeconfig(&folder), "--context=elsewhere"]);
    assert!(line.contains("elsewhere"), "{line}");
}

#[test]
fn a_file_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = rejected(&["plan", "-f", "/no/such/file", &kubeconfig(&folder)]);
    assert!(
        line.starts_with("error: cannot read /no/such/file: "),
        "{line}"
    );
}

#[test]
fn a_server_that_does_not_answer_is_an_error_and_for_check_bad_news() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(&folder);
    let line = rejected(&["status", &kubeconfig]);
    assert!(line.starts_with("error: cannot list "), "{line}");
    let mut check = Command::new(PROGRAM);
    let output = check.args(["check", &kubeconfig]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.starts_with("API\n× the API server does not answer: "),
        "{shown}"
    );
}
