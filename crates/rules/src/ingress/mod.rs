//! The ingress controller's decisions on one `MultiClusterIngress`: its owner, the clusters where its
//! Services run, those of them that are blocked, and the desired state of the load balancer.
//!
//! [`decide`] combines these; [`kubernetes`] turns the desired state into the objects of a gateway
//! cluster.

mod admission;
mod class;
mod decision;
mod desired;
mod facts;
#[cfg(test)]
mod fixtures;
pub mod kubernetes;
mod locations;
mod plan;
mod problem;

pub use admission::Admission;
pub use class::{ControllerName, InvalidControllerName, Ownership, ownership};
pub use decision::{Decision, Release, Serve, decide};
pub use desired::{Backend, ClusterEndpoints, Desired, slice_cluster, slice_service};
pub use facts::{Cached, Facts};
pub use locations::{binding_name, bound_clusters, bound_service, service_locations, services};
pub use plan::{BlockChange, FieldPlan, StatusPatch, load_balancer};
pub use problem::Problem;
