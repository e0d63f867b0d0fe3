//! The attempts with the token of each program, where that may write, and of each other account.

mod fleet;
mod gateway;
mod hub;
mod rights;
