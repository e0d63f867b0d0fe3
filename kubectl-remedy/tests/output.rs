//! The program's exit code where its output cannot be written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

/// A command that needs no API, and the output of clap.
const PRINTED: [&[&str]; 3] = [&["--help"], &["--version"], &["rights", "apps/deployments"]];

fn run(flags: &[&str], stdout: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-remedy"));
    let Output { status, stderr, .. } = command.args(flags).stdout(stdout).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// A disk is full: whoever reads a manifest from the file must not take half of it for all.
#[test]
fn full_disk_is_an_error() {
    for flags in PRINTED {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, said) = run(flags, full.into());
        assert_eq!(code, Some(2), "{flags:?}");
        let expected = "error: cannot write to standard output: No space left on device";
        assert!(said.starts_with(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// `head` has read enough. The code is that of a shell for a command that a closed pipe ends.
#[test]
fn closed_pipe_ends_quietly() {
    for flags in PRINTED {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(
            run(flags, writer.into()),
            (Some(141), String::new()),
            "{flags:?}"
        );
    }
}
