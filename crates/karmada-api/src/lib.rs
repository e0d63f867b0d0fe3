//! The Karmada API as Rust types: the kinds that karmada-rs reads and writes, with their names on the wire.
//!
//! A type has only the fields that karmada-rs uses. So objects must never be written back whole (`PUT`),
//! which would erase all others: every write is a patch of fields that we own. The parts of others are read
//! leniently: a part that cannot be read must not hide the rest. This crate has no client and no clock.

mod binding;
mod cluster;
pub mod cluster_view;
mod component;
pub mod condition;
pub mod crd;
mod customization;
mod dns_endpoint;
mod export;
pub mod gateway_api;
mod ingress;
mod interpreter_webhook;
pub mod names;
pub mod overrides;
pub mod placement;
pub mod policy;
pub mod provider;
pub mod rebalancer;
pub mod remedy;
pub mod work;

use std::collections::BTreeSet;

use kube::Resource;
use objects::Metadata;

pub use binding::{
    AggregatedStatusItem, BindingPriority, BindingSnapshot, BindingSuspension,
    ClusterResourceBinding, GracefulEvictionTask, ObjectReference, ResourceBinding,
    ResourceBindingSpec, ResourceBindingStatus, TargetCluster, WorkloadAffinityGroups,
};
pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use cluster_view::ClusterView;
pub use component::{Component, TargetComponent};
pub use condition::Condition;
pub use customization::{
    CustomizationRules, CustomizationSpec, CustomizationTarget, LuaScript,
    ResourceInterpreterCustomization,
};
pub use dns_endpoint::{DnsEndpoint, DnsEndpointSpec, DnsProviderProperty, DnsRecord};
pub use export::ServiceExport;
pub use ingress::{
    KARMADA_INGRESS_FINALIZER, MultiClusterIngress, MultiClusterIngressSpec,
    MultiClusterIngressStatus, ServiceLocation,
};
pub use interpreter_webhook::{
    InterpreterWebhook, ResourceInterpreterWebhookConfiguration, WebhookClientConfig, WebhookRule,
    WebhookService,
};
pub use overrides::{ClusterOverridePolicy, OverridePolicy, OverrideSpec};
pub use placement::Placement;
pub use policy::{
    ClusterPropagationPolicy, PropagationPolicy, PropagationSpec, ResourceSelector, Suspension,
};
pub use rebalancer::WorkloadRebalancer;
pub use remedy::{
    ClusterAffinity, ClusterConditionRequirement, DecisionMatch, Operator, Remedy, RemedySpec,
    RemedyStatus, TRAFFIC_CONTROL,
};
pub use work::Work;

/// Returns the namespace in the Karmada control plane that belongs to the member cluster `cluster`: it
/// holds its agents' lease and the `EndpointSlice`s collected from it.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{EXECUTION_NAMESPACE_PREFIX}{cluster}")
}

/// Returns the member cluster whose execution namespace is `namespace`, if it is one.
pub fn cluster_of_execution_namespace(namespace: &str) -> Option<&str> {
    namespace
        .strip_prefix(EXECUTION_NAMESPACE_PREFIX)
        .filter(|cluster| !cluster.is_empty())
}

/// Returns the member cluster in whose execution namespace an object is, for an index of objects by cluster: one, or none.
pub fn clusters_by_namespace<K: Resource>(object: &K) -> BTreeSet<String> {
    let cluster = cluster_of_execution_namespace(object.meta().namespace());
    cluster.map(str::to_owned).into_iter().collect()
}

const EXECUTION_NAMESPACE_PREFIX: &str = "karmada-es-";
