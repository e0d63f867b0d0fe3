//! What the ingress controller decides of one `MultiClusterIngress`: whether it is ours, where its
//! Services run, which of those clusters are blocked, and what the load balancer shall be.
//!
//! [`decide`] puts these together; [`gateway`] turns what is desired into the objects of a gateway
//! cluster.

mod block;
mod class;
mod decision;
mod desired;
mod facts;
pub mod gateway;
mod locations;
mod plan;
mod problem;
#[cfg(test)]
mod world;

pub use block::{Standing, standing};
pub use class::{ControllerName, InvalidControllerName, Ownership, ownership};
pub use decision::{Decision, Release, Serve, decide};
pub use desired::{
    Admission, Backend, ClusterEndpoints, Desired, Refusal, slice_cluster, slice_service,
};
pub use facts::{Facts, Seen};
pub use locations::{binding_name, bound_clusters, bound_service, service_locations, services};
pub use plan::{BlockChange, Plan, StatusPatch, load_balancer};
pub use problem::Problem;
