//! What a placement gives to its clusters (KubeFleet's ClusterResourcePlacement).
//!
//!     selectors → objects → content → hash, snapshots        what is placed, as it was at one moment
//!     clusters → eligible → filter → score → pick            where: bindings, and the reasons
//!
//! - [`select`]: the objects that a placement selects.
//! - [`content`]: whether an object may be placed, what a snapshot has of it, and the order of objects.
//! - [`hash`]: the hashes by which two snapshots are the same, byte for byte as KubeFleet's.
//! - [`snapshot`]: the snapshots of both, in their order, and which is the latest.
//! - [`eligible`]: whether a cluster may be given anything.
//! - [`pick`]: the clusters of a placement, with what `filter`, `score`, `spread` and `property` say of each.

pub mod content;
pub mod eligible;
mod filter;
pub mod hash;
pub mod pick;
mod property;
mod score;
pub mod select;
pub mod snapshot;
mod spread;

#[cfg(test)]
mod fixtures;
