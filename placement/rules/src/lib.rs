//! What a placement gives to its clusters (KubeFleet's `ClusterResourcePlacement` and `ResourcePlacement`: one is as the other,
//! in a namespace).
//!
//! ```text
//! selectors → objects → content → hash, snapshots        what is placed, as it was at one moment
//! clusters → eligible → filter → score → pick            where: bindings, and the reasons
//! bindings, reports, budget → rollout                    when: which cluster gets the latest now
//! binding, snapshots → overrides → works → waves         what: the manifests for a cluster, and their order
//! objects → availability → work_status → works → status  back: from the members to the placement
//! ```
//!
//! - [`select`]: the objects that a placement selects; [`accessible`]: where its status can be read, too.
//! - [`parents`]: what something was made for, whether that is in a namespace or not.
//! - [`content`]: whether an object may be placed, what a snapshot has of it, and the order of objects.
//! - [`hash`]: the hashes by which two snapshots are the same, byte for byte as KubeFleet's.
//! - [`snapshot`]: the snapshots of all of these, in their order, and which is the latest.
//! - [`membership`]: what a cluster of the fleet has on the hub, and what its agent says of it; [`heartbeat`]: what the
//!   agent in the cluster says, and when; [`profile`]: what programs of others read of it.
//! - [`eligible`]: whether a cluster may be given anything.
//! - [`pick`]: the clusters of a placement, with what `filter`, `score`, `spread` and `property` say of each.
//! - [`rollout`]: the next step of a change, within the budget of the placement's [`strategy`].
//! - [`update`]: the next step of a run through stages, where the strategy leaves changes to such.
//! - [`eviction`]: whether a cluster loses what is placed there because somebody asks for it; [`drain`]: what becomes of
//!   a placement whose clusters are emptied.
//! - [`envelope`]: what is in an envelope; [`overrides`]: what differs between clusters.
//! - [`works`]: the Works of a binding, and what the binding says of them.
//! - [`manifests`], [`ownership`]: in a member, what is written of a Work, and whose an object there is; `takeover`:
//!   whether one is compared before it is taken over or written again, and `drift`: what is told of the differences then.
//! - [`waves`], [`availability`], [`work_status`]: there, what is applied first, what does its work, and what the Work
//!   says of that.
//! - [`status`]: what the placement says of all; [`explain`]: what a person is told who asks; [`refuse`]: what it may not
//!   ask for; [`deletion`]: its end.

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
