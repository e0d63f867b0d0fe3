//! The differences of gopher-lua 1.1.1, on which Karmada runs scripts, to Lua in C: the text of numbers and their
//! reading (`numbers`), `string.format` (`format`), patterns (`pattern`) and the clock (`time`).
//!
//! The fixtures of the tests have its answers.

pub(crate) mod format;
pub(crate) mod numbers;
pub(crate) mod pattern;
pub(crate) mod time;
