use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{Cluster, ResourceBinding};

/// What is known of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached<T> {
    /// The object.
    Present(T),
    /// There is no such object.
    Absent,
    /// It may exist, but what it says is not known. Nothing is taken away on its account.
    Unread,
}

impl<T> Cached<T> {
    /// The same, of something made from the object.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Cached<U> {
        match self {
            Self::Present(object) => Cached::Present(make(object)),
            Self::Absent => Cached::Absent,
            Self::Unread => Cached::Unread,
        }
    }
}

/// What a `MultiClusterIngress` depends on, asked by name.
pub trait Facts {
    /// Every ingress class.
    fn classes(&self) -> impl Iterator<Item = Cached<&IngressClass>>;
    /// The ingress class `name`.
    fn class(&self, name: &str) -> Cached<&IngressClass>;
    /// The member cluster `name`.
    fn cluster(&self, name: &str) -> Cached<&Cluster>;
    /// The object named like the binding of `service` ([`super::binding_name`]).
    fn binding(&self, namespace: &str, service: &str) -> Cached<&ResourceBinding>;
    /// The template of `service`.
    fn template(&self, namespace: &str, service: &str) -> Cached<&Service>;
    /// The `EndpointSlice`s that Karmada collected for `service`.
    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>>;
    /// The names of the collected `EndpointSlice`s of `namespace` that could never be read.
    fn unread_slices(&self, namespace: &str) -> BTreeSet<String>;
}
