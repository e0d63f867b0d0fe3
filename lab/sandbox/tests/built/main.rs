//! The built program, started as users start it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod command_line;
mod program;
mod scenarios;
