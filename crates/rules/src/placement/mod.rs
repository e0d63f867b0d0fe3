//! What a placement gives to its clusters (KubeFleet's ClusterResourcePlacement).
//!
//!     selectors → objects → content → hash, snapshots        what is placed, as it was at one moment
//!     clusters → eligible → filter → score → pick            where: bindings, and the reasons
//!     bindings, reports, budget → rollout                    when: which cluster gets the latest now
//!
//! - [`select`]: the objects that a placement selects.
//! - [`content`]: whether an object may be placed, what a snapshot has of it, and the order of objects.
//! - [`hash`]: the hashes by which two snapshots are the same, byte for byte as KubeFleet's.
//! - [`snapshot`]: the snapshots of both, in their order, and which is the latest.
//! - [`eligible`]: whether a cluster may be given anything.
//! - [`pick`]: the clusters of a placement, with what `filter`, `score`, `spread` and `property` say of each.
//! - [`rollout`]: the next step of a change, within the budget of the placement's [`strategy`].

mod condition;
pub mod content;
pub mod eligible;
mod filter;
pub mod hash;
pub mod pick;
mod property;
pub mod rollout;
mod score;
pub mod select;
pub mod snapshot;
mod spread;
pub mod strategy;

#[cfg(test)]
mod fixtures;
