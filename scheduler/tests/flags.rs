//! The program's output for invalid flags.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

/// Asserts that the program exits with code 2 and one line on standard error, and returns that line.
#[track_caller]
fn rejected(flags: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scheduler"));
    let output = command.env_clear().args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

/// A kubeconfig with one context, `here`.
fn kubeconfig(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("here", CLOSED)]).unwrap();
    format!("--kubeconfig={}", path.display())
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
fn a_missing_context_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = rejected(&[&kubeconfig(&folder), "--context=elsewhere"]);
    assert!(line.contains("elsewhere"), "{line}");
}

#[test]
fn without_any_kubeconfig_the_error_names_the_flag() {
    assert!(rejected(&[]).starts_with("error: no kubeconfig: name one with --kubeconfig"));
}

#[test]
fn an_address_in_use_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let flag = format!("--listen-address={address}");
    let line = rejected(&[&kubeconfig(&folder), &flag]);
    assert!(
        line.starts_with(&format!("error: cannot listen on {address}: ")),
        "{line}"
    );
}
