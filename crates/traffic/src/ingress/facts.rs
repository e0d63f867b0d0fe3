use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use fleet_api::Placement;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{Cluster, ResourceBinding};
use objects::Key;

use crate::ClusterKind;
use crate::cached::Cached;

/// The member clusters, and who blocks their traffic.
pub trait ClusterFacts {
    /// Returns the member cluster `name`.
    fn cluster(&self, name: &str) -> Cached<&Cluster>;
    /// Returns `true` if a Remedy without matches blocks the traffic of `cluster`, or may do so: a
    /// person decided that, unlike a block that a condition caused.
    fn is_blocked_manually(&self, cluster: &str) -> bool;
}

/// The objects that a `MultiClusterIngress` depends on, by name.
pub trait Facts: ClusterFacts {
    /// Returns every ingress class.
    fn classes(&self) -> impl Iterator<Item = Cached<&IngressClass>>;
    /// Returns the ingress class `name`.
    fn class(&self, name: &str) -> Cached<&IngressClass>;
    /// Returns the kind of the clusters.
    fn cluster_kind(&self) -> ClusterKind;
    /// Returns the placements of a hub that bring `service` ([`super::placed_services`]); `None` if one that could never be read may
    /// bring it.
    fn placements(&self, service: &Key) -> Option<impl Iterator<Item = &Placement>>;
    /// Returns the binding of `service`, whatever its name ([`super::bound_service`]).
    fn binding(&self, namespace: &str, service: &str) -> Cached<&ResourceBinding>;
    /// Returns the binding of the networking.k8s.io Ingress `name`, whatever its own name.
    fn ingress_binding(&self, namespace: &str, name: &str) -> Cached<&ResourceBinding>;
    /// Returns the last known addresses of a host, which are unread until DNS has answered; `None` if the load balancer takes
    /// its name.
    fn addresses(&self, host: &str) -> Option<Cached<Vec<IpAddr>>>;
    /// Returns the slices in which the nodes of `cluster` are published; they are absent if none are.
    fn nodes(&self, cluster: &str) -> Cached<Vec<Arc<EndpointSlice>>>;
    /// Returns the template of `service`.
    fn template(&self, namespace: &str, service: &str) -> Cached<&Service>;
    /// Returns the TLS Secret `name`, if Secrets are copied to the gateway.
    fn secret(&self, namespace: &str, name: &str) -> Cached<Arc<Secret>>;
    /// Returns the `EndpointSlice`s that Karmada collected for `service`.
    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>>;
    /// Returns the names of the collected `EndpointSlice`s of `namespace` that could never be read.
    fn unread_slices(&self, namespace: &str) -> BTreeSet<String>;
}
