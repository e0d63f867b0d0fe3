//! What a person in front of a terminal is told. That nobody reads it is no reason to end.

use std::io::Write;

/// One line on standard output.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// One line on standard error.
pub(crate) fn complain(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
