//! What a placement gives to its clusters (KubeFleet's ClusterResourcePlacement).
//!
//!     objects → content → hash        what is placed, as it was at one moment
//!
//! - [`content`]: whether an object may be placed, what a snapshot has of it, and the order of objects.
//! - [`hash`]: the hashes by which two snapshots are the same, byte for byte as KubeFleet's.

pub mod content;
pub mod hash;

#[cfg(test)]
mod fixtures;
