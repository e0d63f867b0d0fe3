//! The whole program between two embedded APIs. Time is virtual: a pause ends once nothing is left to do.

mod drift;
mod endpoints;
mod membership;
mod report_diff;
mod stage;
mod takeover;
mod works;
