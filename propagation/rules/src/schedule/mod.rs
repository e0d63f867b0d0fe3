//! The clusters of a binding, and its replicas in each.
//!
//! `wake` says which changes, and which times, are worth a pass; `plan` is the pass, from facts to writes:
//!
//! ```text
//! facts → evictions that are over  (eviction)  ┐
//!       → taints to leave          (eviction)  ├→ cycle: filter → select → divide → outcome → write
//!       → an earlier group         (failback)  │         for each group in turn (groups)
//!       → anything to decide?      (trigger)   ┘
//! ```
//!
//! The first of the four that has something to do ends the pass. Each file is below those that use it:
//!
//! - Which cluster fits: `filter`, with `taints`, `cluster_selector`, `tiers` and `affinity_groups`. Which of them are used:
//!   `select`, by `regions` and by room (`capacity`, in `sets` where Pods differ, `models`, `estimates`), which `pods`
//!   take and more are `assumed` to; `estimator_targets` are asked for theirs. How many replicas each gets: `divide`, by
//!   the `strategy`, tier by tier.
//! - The Pods that a binding has placed and that clusters do not report yet: `assumptions`.
//! - When a workload leaves a cluster: `eviction`. When it comes back: `failback`, which answers for groups, and
//!   says who answers otherwise.
//! - When divided replicas move at all: `trigger`.
//! - How a cluster is emptied for a while, and gets its workloads back: [`drain`].
//! - For users: `failure` has the messages, `outcome` the conditions, `write` the patches.

mod affinity_groups;
mod assumed;
mod assumptions;
mod capacity;
mod cluster_selector;
mod constraint;
mod cycle;
mod divide;
pub mod drain;
mod estimates;
mod estimator_targets;
mod eviction;
mod facts;
mod failback;
mod failure;
mod filter;
mod groups;
mod models;
mod outcome;
mod plan;
mod pods;
mod regions;
mod select;
mod sets;
mod strategy;
mod tiers;
mod trigger;
mod wake;
mod write;

pub use affinity_groups::AffinityGroups;
pub use assumed::{Assumed, AssumedWorkload};
pub use assumptions::Assumptions;
pub use cluster_selector::selects;
pub use divide::webster;
pub use estimates::Estimates;
pub use eviction::{halted_clusters, is_held, left_clusters};
pub use facts::{KnownClusters, Pass, Room, Scheduler, UnhealthyThreshold, keep_facts};
pub use failure::{AffinityFailure, NO_CLUSTER_FIT, UNSCHEDULABLE, Unfit};
pub use outcome::SchedulePlan;
pub use plan::{clusters_to_ask, plan};
pub use sets::missing_components;
pub use trigger::is_unscheduled;
pub use wake::{concerns, is_observed, next_due, waits_for_room};
pub use write::{SUCCESS, SpecWrite, StatusWrite};
