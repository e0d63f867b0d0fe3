//! The error of a command for credentials.

use std::process::{ExitStatus, Output};
use std::time::Duration;
use std::{fmt, io};

/// The most characters that are shown of its output for people, the last ones.
const LONGEST: usize = 1000;

/// Errors of a command for credentials. None quotes its standard output, which may have a token, or its arguments.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The kubeconfig names no command.
    #[error("the kubeconfig's exec names no command for credentials")]
    NoCommand,
    /// There is nobody to answer its questions.
    #[error("{0}, which is to give credentials, asks questions, and standard input is no terminal")]
    NoTerminal(String),
    /// It cannot be run.
    #[error("cannot run {command}, which is to give credentials{}", Remark(hint))]
    Unstarted {
        /// The command.
        command: String,
        /// The hint of the kubeconfig how to get it.
        hint: String,
        /// The cause.
        source: io::Error,
    },
    /// It failed.
    #[error(
        "{command}, which is to give credentials, failed with {status}{}",
        Remark(said)
    )]
    Failed {
        /// The command.
        command: String,
        /// The status.
        status: ExitStatus,
        /// Its standard error.
        said: String,
    },
    /// It did not end, though it could ask nobody.
    #[error("{0}, which is to give credentials, did not end within {1:?}, and was killed")]
    Endless(String, Duration),
    /// It printed something else.
    #[error("{0}, which is to give credentials, printed {1}")]
    Printed(String, &'static str),
}

impl ExecError {
    /// Returns the error of a command that failed, and ended so.
    pub(crate) fn failed(command: String, out: &Output) -> Self {
        Self::Failed {
            command,
            status: out.status,
            said: printable(&String::from_utf8_lossy(&out.stderr)),
        }
    }
}

/// A remark behind an error, if there is one.
struct Remark<'a>(&'a str);

impl fmt::Display for Remark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            remark => write!(f, ": {remark}"),
        }
    }
}

/// Returns a text for people, on one line and without control characters.
pub(crate) fn printable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let line = line.replace(char::is_control, "");
    let skipped = line.chars().count().saturating_sub(LONGEST);
    line.chars().skip(skipped).collect()
}
