//! The differences between clusters in the placed objects: overrides, by their snapshots.
//!
//! ```text
//! latest snapshots, objects, cluster → applicable → lists of a binding → changes → manifests of its Works
//! ```
//!
//! - `snapshot`: a snapshot, and which placements, objects and clusters it is about.
//! - `contents`: the objects that are placed, for those in an envelope are overridden, too.
//! - `applicable`: the snapshots that a binding lists, and whether it is to list others.
//! - `digest`: their effect in a cluster, by its labels.
//! - `changes`: the effect of the snapshots on a manifest; `variables`: those that values may name.
//! - `refuse`: the demands that an override may not make.

mod applicable;
mod changes;
mod contents;
mod digest;
mod refuse;
mod snapshot;
#[cfg(test)]
mod tests;
mod variables;

pub use applicable::{Applicable, Overrides, OverridesFacts, listed};
pub(crate) use changes::overridden;
pub use contents::contents;
pub(crate) use digest::digest;
pub use refuse::{Claim, objects, problems, refusal};
pub use snapshot::{SnapshotView, TOGETHER, is_for, named_placement, selects};
