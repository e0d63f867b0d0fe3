//! The ingress controller's decisions on one `MultiClusterIngress`: its owner, the clusters where its
//! Services run, those of them that are blocked, and the desired state of the load balancer.
//!
//! [`decide`] combines these; [`kubernetes`] turns the desired state into the objects of a gateway
//! cluster.

mod admission;

mod change;
mod class;
mod decided;
mod decision;
mod desired;
mod export;
mod facts;
mod fail_open;
#[cfg(test)]
mod fixtures;
pub mod kubernetes;
mod locations;
mod plan;
mod problem;
mod when_all_blocked;

pub use admission::Admission;
pub use change::{BackendChange, ServingCluster, ServingState, backend_changes};
pub use class::{ControllerName, InvalidControllerName, Ownership, ownership};
pub use decided::decided_scope;
pub use decision::{Decision, Release, Serve, Settings, cut_of_left, decide, desired};
pub use desired::{
    Backend, ClusterEndpoints, Desired, Held, excluded, slice_cluster, slice_service,
};
pub use export::{ExportChange, ExportFacts, Exporter, Need, PolicyChange};
pub use facts::{Cached, Facts};
pub use locations::{binding_name, bound_clusters, bound_service, service_locations, services};
pub use plan::{BlockChange, FieldPlan, StatusPatch, load_balancer};
pub use problem::Problem;
pub use when_all_blocked::{InvalidWhenAllBlocked, WHEN_ALL_BLOCKED_ANNOTATION, WhenAllBlocked};
