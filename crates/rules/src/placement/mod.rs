//! What a placement gives to its clusters (KubeFleet's ClusterResourcePlacement).
//!
//!     selectors → objects → content → hash, snapshots        what is placed, as it was at one moment
//!
//! - [`select`]: the objects that a placement selects.
//! - [`content`]: whether an object may be placed, what a snapshot has of it, and the order of objects.
//! - [`hash`]: the hashes by which two snapshots are the same, byte for byte as KubeFleet's.
//! - [`snapshot`]: the snapshots of both, in their order, and which is the latest.

pub mod content;
pub mod hash;
pub mod select;
pub mod snapshot;

#[cfg(test)]
mod fixtures;
