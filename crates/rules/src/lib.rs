//! The decisions of karmada-rs as pure functions: no client, no async runtime, no clock (`now` is a
//! parameter), no logging. A program fetches objects, calls one function here, and applies the result.

pub mod amounts;
pub mod binding_ref;
pub mod cluster;
pub mod condition;
pub mod execution;
pub mod health;
pub mod ingress;
pub mod last_writer;
pub mod propagation;
mod qualified_name;
pub mod quantity;
pub mod remedy;
pub mod reverse_index;
pub mod schedule;
