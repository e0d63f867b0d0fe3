//! The Karmada API as Rust types: the kinds karmada-rs reads and writes, with the names they go by on the wire.
//!
//! A type holds the fields we use and no other, so none of them may ever be written back whole
//! (`PUT`): every write is a patch of the part we own. There is no client and no clock here.

mod cluster;
pub mod condition;
pub mod crd;
mod ingress;
mod key;
mod remedy;
mod work;

pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use ingress::{
    KARMADA_INGRESS_FINALIZER, MultiClusterIngress, MultiClusterIngressSpec,
    MultiClusterIngressStatus, ServiceLocation,
};
pub use key::Key;
pub use remedy::{
    ClusterAffinity, ClusterConditionRequirement, DecisionMatch, Operator, Remedy, RemedySpec,
    RemedyStatus, TRAFFIC_CONTROL,
};
pub use work::{
    AggregatedStatusItem, BindingSnapshot, ObjectReference, ResourceBinding, ResourceBindingSpec,
    ResourceBindingStatus, TargetCluster,
};

/// The namespace of the Karmada control plane in which member cluster `cluster` keeps what is its
/// own: its agents' lease, and the `EndpointSlice`s collected from it.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{EXECUTION_NAMESPACE_PREFIX}{cluster}")
}

/// The member cluster whose execution namespace is `namespace`, if it is one.
pub fn cluster_of_execution_namespace(namespace: &str) -> Option<&str> {
    namespace
        .strip_prefix(EXECUTION_NAMESPACE_PREFIX)
        .filter(|cluster| !cluster.is_empty())
}

const EXECUTION_NAMESPACE_PREFIX: &str = "karmada-es-";
