//! The program's output for invalid flags.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab_parts::flags;
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_scheduler"), &[], flags)
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

/// Without any kubeconfig the error names the flag.
#[test]
fn missing_kubeconfig_names_flag() {
    assert!(rejected(&[]).starts_with("error: no kubeconfig: name one with --kubeconfig"));
}

/// An address in use is named.
#[test]
fn used_address_is_named() {
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
