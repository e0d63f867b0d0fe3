//! The kinds of objects in a gateway cluster that we manage.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use traffic::ingress::kubernetes::Managed;

/// A kind of object in a gateway cluster that we manage.
pub trait GatewayKind:
    Managed
    + Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + Default
    + Debug
    + Send
    + Sync
    + 'static
{
    /// The name of its watch.
    const WATCH: &'static str;

    /// Returns the hosts that it routes, by which routes are looked up; an empty one for all.
    fn hosts(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

impl GatewayKind for Service {
    const WATCH: &'static str = "gateway_services";
}

impl GatewayKind for EndpointSlice {
    const WATCH: &'static str = "gateway_slices";
}

impl GatewayKind for Secret {
    const WATCH: &'static str = "gateway_secrets";
}
