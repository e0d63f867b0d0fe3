//! What the ingress controller decides of one `MultiClusterIngress`: whether it is ours, where its
//! Services run, which of those clusters are blocked, and what the load balancer shall be.
//!
//! [`decide`] puts these together; [`kubernetes`] turns what is desired into the objects of a gateway
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
