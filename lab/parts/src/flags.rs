//! The response of a program to flags that it cannot use.

use std::process::Command;

/// Runs the program at the path `program` with these flags and variables, and no others, and returns the
/// line that it prints on standard error.
///
/// # Panics
/// The program does not start, ends with another exit code than 2, or prints anything else.
#[track_caller]
#[expect(
    clippy::expect_used,
    reason = "a test that calls it fails by panicking"
)]
pub fn rejected(program: &str, environment: &[(&str, &str)], flags: &[&str]) -> String {
    let mut command = Command::new(program);
    command.env_clear().envs(environment.iter().copied());
    let output = command.args(flags).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    let line = String::from_utf8(output.stderr).expect("the line is text");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}
