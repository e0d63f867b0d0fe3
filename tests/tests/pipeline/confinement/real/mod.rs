//! What is tried with the token of each program, where that may write.

mod fleet;
mod gateway;
mod hub;
