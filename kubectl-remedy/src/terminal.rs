//! Output on the terminal, with colours only there.
//!
//! A command that has begun to write goes on to its end, whether or not anybody can read of it: an output that cannot be
//! written becomes the exit code, at the end.

use std::io::{self, Write};
use std::sync::OnceLock;

/// The first error of standard output.
static UNPRINTED: OnceLock<io::Error> = OnceLock::new();

/// Prints `text`, which ends its own lines, on standard output.
pub(crate) fn print(text: &str) {
    let mut stdout = anstream::stdout();
    let printed = write!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = printed {
        UNPRINTED.get_or_init(|| error);
    }
}

/// Returns the first error of standard output.
pub(crate) fn unprinted() -> Option<&'static io::Error> {
    UNPRINTED.get()
}

/// Prints a line on standard error. A closed one is no reason for another exit code.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(anstream::stderr(), "{line}"));
}
