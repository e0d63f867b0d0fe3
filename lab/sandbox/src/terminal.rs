//! Output on the terminal. A closed terminal is no reason to end, so its errors are ignored.

use std::io::Write;

/// Prints a line on standard output.
pub(crate) fn print(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// Prints a line on standard error.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
