//! Output on the terminal, with colours only there. A closed terminal is no reason for another exit code,
//! so its errors are ignored.

use std::io::Write;

/// Prints `text`, which ends its own lines, on standard output.
pub(crate) fn print(text: &str) {
    drop(write!(anstream::stdout(), "{text}"));
}

/// Prints a line on standard error.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(anstream::stderr(), "{line}"));
}
