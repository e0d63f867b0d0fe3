//! The content of a placement for its clusters (KubeFleet's `ClusterResourcePlacement` and `ResourcePlacement`: one is as the
//! other, in a namespace).
//!
//! ```text
//! selectors → objects → content → hash, snapshots        the selection, as it was at one moment
//! clusters → eligible → filter → score → pick            where: bindings, and the reasons
//! bindings, reports, budget → rollout                    when: which cluster gets the latest now
//! binding, snapshots → overrides → works → waves         the manifests for a cluster, and their order
//! objects → availability → work_status → works → status  back: from the members to the placement
//! ```
//!
//! - [`select`]: the objects that a placement selects; [`accessible`]: where its status can be read, too.
//! - [`parents`]: the placement of an object that was made for one, in a namespace or not.
//! - [`content`]: whether an object may be placed, its fields in a snapshot, and the order of objects.
//! - [`hash`]: the hashes by which two snapshots are the same, byte for byte as KubeFleet's.
//! - [`snapshot`]: the snapshots of all of these, in their order, and which is the latest.
//! - [`membership`]: the objects of a cluster of the fleet on the hub, and its status; [`heartbeat`]: the report of the
//!   agent in the cluster; [`profile`]: the cluster as programs of others read it.
//! - [`eligible`]: whether a cluster may be given anything.
//! - [`pick`]: the clusters of a placement, by the words of `filter`, `score`, `spread` and `property` about each.
//! - [`rollout`]: the next step of a change, within the budget of the placement's [`strategy`].
//! - [`update`]: the next step of a run through stages, where the strategy leaves changes to such.
//! - [`eviction`]: whether a cluster loses a placement because somebody asks for it; [`drain`]: the fate of a placement
//!   whose clusters are emptied.
//! - [`envelope`]: the objects in an envelope; [`overrides`]: the differences between clusters.
//! - [`works`]: the Works of a binding, and its report about them.
//! - [`manifests`], [`ownership`]: in a member, the objects of a Work, and the owner of an object there; `takeover`:
//!   whether one is compared before it is taken over or written again, and `drift`: the report on the differences then.
//! - [`waves`], [`availability`], [`work_status`]: the order of the objects there, whether they do their work, and the
//!   status of the Work.
//! - [`status`]: the status of the placement; [`explain`]: the answer to a person who asks; [`refuse`]: the demands that it
//!   may not make; [`deletion`]: its end.

pub mod accessible;
pub mod availability;
mod condition;
pub mod content;
pub mod deletion;
pub mod drain;
mod drift;
pub mod eligible;
pub mod envelope;
pub mod eviction;
pub mod explain;
mod filter;
pub mod hash;
pub mod heartbeat;
pub mod manifests;
pub mod membership;
pub mod overrides;
pub mod ownership;
pub mod parents;
pub mod pick;
pub mod profile;
mod property;
pub mod refuse;
pub mod rollout;
mod score;
pub mod select;
pub mod snapshot;
mod spread;
pub mod status;
pub mod strategy;
mod takeover;
pub mod update;
pub mod waves;
pub mod work_status;
pub mod works;

#[cfg(test)]
mod fixtures;
