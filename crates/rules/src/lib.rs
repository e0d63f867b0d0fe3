//! The decisions of karmada-rs as pure functions: no client, no async runtime, no clock (`now` is a
//! parameter), no logging. A program fetches objects, calls one function here, and applies the result.

pub mod apis;
pub mod binding_ref;
pub mod cluster;
pub mod endpoints;
pub mod execution;
mod grant;
pub mod health;
pub mod ingress;
pub mod placement;
pub mod propagation;
pub mod rebalance;
pub mod remedy;
pub mod schedule;
pub mod usage;
