//! The program's output for invalid flags.

use lab_parts::flags;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    let flags = [&["--cluster-name=a"], flags].concat();
    flags::rejected(env!("CARGO_BIN_EXE_placement-agent"), &[], &flags)
}

/// A hub that is named in neither way is asked for, and so are its credentials.
#[test]
fn missing_hub_is_named() {
    let line = rejected(&[]);
    assert!(
        line.starts_with("error: no hub: name a kubeconfig with --hub-kubeconfig"),
        "{line}"
    );
    let line = rejected(&["--hub-server-url=https://127.0.0.1:1"]);
    assert!(
        line.starts_with("error: no credentials for the hub"),
        "{line}"
    );
}

/// A file of credentials that is missing is told, but not its path: somebody may have put the token there.
#[test]
fn missing_token_is_told() {
    let line = rejected(&[
        "--hub-server-url=https://127.0.0.1:1",
        "--hub-token-file=/no/such",
    ]);
    assert!(
        line.contains("cannot read the token file: No such file"),
        "{line}"
    );
}
