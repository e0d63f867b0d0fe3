//! Who may have traffic, as pure functions: no client, no async runtime, no clock (`now` is a parameter), no logging.
//!
//! ```text
//! conditions of clusters + Remedies → remedy → TrafficControl on the Cluster
//!                    EndpointSlices → endpoints → collected slices
//!     both + MultiClusterIngresses → ingress → the desired state of a load balancer
//! ```
//!
//! On the hub of a KubeFleet a `MemberCluster` stands for a cluster: [`ClusterKind`].

mod cached;
mod cluster_kind;
pub mod endpoints;
pub mod ingress;
mod left_to_others;
pub mod remedy;

pub use cluster_kind::{ClusterKind, InvalidClusterKind};
pub use left_to_others::LeftToOthers;
