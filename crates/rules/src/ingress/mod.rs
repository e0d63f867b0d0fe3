//! The ingress controller's decisions on one `MultiClusterIngress`: its owner, the clusters where its
//! Services run, those of them that are blocked, and the desired state of the load balancer.
//!
//! [`decide`] combines these; [`kubernetes`] turns the desired state into the objects of a gateway
//! cluster.

mod admission;
mod brake;
mod change;
mod class;
mod decision;
mod desired;
mod export;
mod facts;
#[cfg(test)]
mod fixtures;
pub mod kubernetes;
mod locations;
mod plan;
mod problem;

pub use admission::Admission;
pub use brake::{
    InvalidWhenAllBlocked, WHEN_ALL_BLOCKED_ANNOTATION, WhenAllBlocked, decided_scope,
};
pub use change::{BackendChange, ServingCluster, ServingState, backend_changes};
pub use class::{ControllerName, InvalidControllerName, Ownership, ownership};
pub use decision::{Decision, Release, Serve, Settings, cut_of_left, decide, desired};
pub use desired::{
    Backend, ClusterEndpoints, Desired, Held, excluded, slice_cluster, slice_service,
};
pub use export::{ExportChange, ExportFacts, Exporter, Need, PolicyChange};
pub use facts::{Cached, Facts};
pub use locations::{binding_name, bound_clusters, bound_service, service_locations, services};
pub use plan::{BlockChange, FieldPlan, StatusPatch, load_balancer};
pub use problem::Problem;
