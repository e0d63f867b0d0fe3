//! The whole program between two embedded APIs. Time is virtual: a pause ends once nothing is left to do.

mod membership;
mod stage;
mod works;
