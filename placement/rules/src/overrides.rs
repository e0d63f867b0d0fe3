//! The differences between clusters in the placed objects: overrides, by their snapshots.
//!
//! ```text
//! latest snapshots, objects, cluster → applicable → lists of a binding → changes → manifests of its Works
//! ```
//!
//! - `taken`: a snapshot, and which placements, objects and clusters it is about.
//! - `contents`: the objects that are placed, for what is in an envelope is overridden, too.
//! - `applicable`: the snapshots that a binding lists, and whether it is to list others.
//! - `digest`: what they come to in a cluster, by its labels.
//! - `changes`: what the snapshots make of a manifest; `variables` are what values may name.
//! - `refuse`: what an override may not ask for.

mod applicable;
mod changes;
mod contents;
mod digest;
mod refuse;
mod taken;
#[cfg(test)]
mod tests;
mod variables;

pub use applicable::{Applicable, Overrides, OverridesFacts, listed};
pub(crate) use changes::overridden;
pub use contents::contents;
pub(crate) use digest::digest;
pub use refuse::{Claim, objects, problems, refusal};
pub use taken::{TOGETHER, Taken, is_for, named_placement, selects};
