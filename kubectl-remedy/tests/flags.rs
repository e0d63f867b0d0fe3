//! The program's output for flags and files that it cannot use.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use kube::config::ExecConfig;
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

/// The part that is missing on the line is named.
#[test]
fn missing_argument_is_named() {
    for (flags, named) in [
        (&[][..], "requires a subcommand"),
        (&["blok"], "unrecognized subcommand 'blok'"),
        (&["block", "m1"], "--for <DURATION>"),
        (&["block", "m1", "--for=0s"], "must be longer than 0s"),
        (&["plan"], "--filename <FILE>"),
        (&["unblock", "m1", "--dry-run=maybe"], "--dry-run"),
        (&["drain"], "<CLUSTER>"),
        (&["drain", "m1", "--wait=never"], "--wait <DURATION>"),
        (&["practice", "m1", "--holds=up"], "--prometheus <URL>"),
        (&["rights"], "<GROUP/RESOURCE>"),
        (
            &["rights", "shirts.example.com"],
            "the group comes first: example.com/shirts",
        ),
        (&["rights", "apps/deployments", "apps/*"], "name each kind"),
    ] {
        let line = rejected(flags);
        assert!(line.starts_with("error: "), "{line}");
        assert!(line.contains(named), "{line}");
    }
}

/// A kubeconfig or context that does not exist is named wherever its flag stands.
#[test]
fn missing_context_is_named() {
    let line = rejected(&["--kubeconfig=/no/such/file", "status"]);
    assert!(
        line.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{line}"
    );
    let folder = tempfile::tempdir().unwrap();
    let line = rejected(&["status", &kubeconfig(&folder), "--context=elsewhere"]);
    assert!(line.contains("elsewhere"), "{line}");
}

/// `$KUBECONFIG` may list files that do not exist, as long as one does.
#[test]
fn missing_file_of_list_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(&folder);
    let path = path.trim_start_matches("--kubeconfig=");
    let listed = |list: &str| flags::rejected(PROGRAM, &[("KUBECONFIG", list)], &["status"]);
    let line = listed(&format!("/no/such/file:{path}"));
    assert!(line.starts_with("error: cannot list "), "{line}");
    let line = listed("/no/such/file:/no/other");
    let expected = "error: no kubeconfig: /no/such/file, /no/other does not exist";
    assert!(line.starts_with(expected), "{line}");
}

/// A command for credentials says why it gives none.
#[test]
fn command_for_credentials_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let mut access = Access::open("here", CLOSED);
    access.user.exec = Some(ExecConfig {
        command: Some("/bin/sh".to_owned()),
        args: Some(vec![
            "-c".to_owned(),
            "echo log in first >&2; exit 1".to_owned(),
        ]),
        ..ExecConfig::default()
    });
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&access]).unwrap();
    let flag = format!("--kubeconfig={}", path.display());
    let line = rejected(&[&flag, "status"]);
    let expected =
        "error: /bin/sh, which is to give credentials, failed with exit status: 1: log in first";
    assert_eq!(line.trim_end(), expected);
}

/// A file that does not exist is named.
#[test]
fn missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = rejected(&["plan", "-f", "/no/such/file", &kubeconfig(&folder)]);
    assert!(
        line.starts_with("error: cannot read /no/such/file: "),
        "{line}"
    );
}

/// A server that does not answer is an error and for check bad news.
#[test]
fn silent_server_is_an_error() {
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
