//! The program's answers to bad flags.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

/// The program ends with code 2 and one line on standard error, which is returned.
#[track_caller]
fn refusal(flags: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_remedy-controller"));
    let output = command.env_clear().args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// A kubeconfig with one context, `here`.
fn kubeconfig(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("here", CLOSED)]).unwrap();
    format!("--kubeconfig={}", path.display())
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let said = refusal(&["--kubeconfig=/no/such/file"]);
    assert!(
        said.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{said}"
    );
}

#[test]
fn a_context_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = refusal(&[&kubeconfig(&folder), "--context=elsewhere"]);
    assert!(said.contains("elsewhere"), "{said}");
}

#[test]
fn without_any_kubeconfig_it_says_how_to_name_one() {
    assert!(refusal(&[]).starts_with("error: no kubeconfig: name one with --kubeconfig"));
}

#[test]
fn an_address_in_use_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let flag = format!("--listen-address={address}");
    let said = refusal(&[&kubeconfig(&folder), &flag]);
    assert!(
        said.starts_with(&format!("error: cannot listen on {address}: ")),
        "{said}"
    );
}
