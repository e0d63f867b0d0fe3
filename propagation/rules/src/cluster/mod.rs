//! The upkeep of a `Cluster` in a fleet without Karmada: its namespace and finalizer, its health, its
//! taints, the kinds it serves and its capacity.
//!
//! - `health`: is it ready? Several probes must agree before a verdict changes.
//! - `enablements`, `capacity`: which kinds does it serve, and how much fits?
//! - `nodes`: which slices publish its nodes, where that is asked for?
//! - `silence`: how is a cluster that reports on itself, and no longer does?
//! - `taints`, `condition_taints`: which taints follow from its health, and from other conditions?
//! - `steps`: from all of these, the writes that are still due, in their order.

mod capacity;
mod condition_taints;
mod enablements;
mod health;
mod nodes;
mod silence;
mod steps;
mod taints;

pub use capacity::{Capacity, capacity};
pub use enablements::{ServedKinds, served};
pub use health::{Health, Probe};
pub use nodes::NodeAddresses;
pub use silence::{LEASE, RENEWAL, patience};
pub use steps::{
    ClusterChange, ClusterObservation, ExecutionNamespace, Situation, Step, condition, is_probed,
    status, steps, targets,
};
pub use taints::{NOT_READY, UNREACHABLE};

/// The condition of a cluster's API.
pub const READY: &str = "Ready";
/// The condition of the list of the kinds that a cluster serves.
pub const COMPLETE_API_ENABLEMENTS: &str = "CompleteAPIEnablements";
/// The finalizer of a `Cluster`.
pub const FINALIZER: &str = "karmada.io/cluster-controller";
/// The label of the execution namespaces: `true`.
pub const SYSTEM: &str = "karmada.io/system";

/// A condition as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The status.
    pub status: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// The details.
    pub message: String,
}
