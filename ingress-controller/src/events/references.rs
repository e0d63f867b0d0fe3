//! The objects to which Events refer.

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use karmada_api::gateway_api::HttpRoute;
use objects::Key;
use traffic::ClusterKind;
use traffic::ingress::http_route::route_of;

use crate::provider::RelatedObject;

const INGRESS_API_VERSION: &str = "networking.karmada.io/v1alpha1";
const INGRESS_KIND: &str = "MultiClusterIngress";

/// Returns the object that is served under `key`.
pub(super) fn own_object(key: &Key) -> RelatedObject {
    match route_of(key) {
        Some(route) => RelatedObject {
            api_version: Some(HttpRoute::API_VERSION),
            kind: HttpRoute::KIND,
            key: route,
        },
        None => RelatedObject {
            api_version: Some(INGRESS_API_VERSION),
            kind: INGRESS_KIND,
            key: key.clone(),
        },
    }
}

/// Returns the Service `name` of the ingress `key`.
pub(super) fn service(key: &Key, name: &str) -> RelatedObject {
    RelatedObject {
        api_version: Some(Service::API_VERSION),
        kind: Service::KIND,
        key: Key::new(&key.namespace, name),
    }
}

pub(super) fn cluster(kind: ClusterKind, name: &str) -> ObjectReference {
    let resource = kind.resource();
    ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

pub(super) fn reference(object: &RelatedObject) -> ObjectReference {
    ObjectReference {
        api_version: object.api_version.map(ToOwned::to_owned),
        kind: Some(object.kind.to_owned()),
        name: Some(object.key.name.clone()),
        namespace: Some(object.key.namespace.clone()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::MultiClusterIngress;
    use kube::Resource;

    use super::*;

    /// An ingress is referred to as the API knows it.
    #[test]
    fn ingress_reference_matches_api() {
        assert_eq!(MultiClusterIngress::api_version(&()), INGRESS_API_VERSION);
        assert_eq!(MultiClusterIngress::kind(&()), INGRESS_KIND);
    }

    /// A cluster is referred to as the API knows it.
    #[test]
    fn cluster_reference_matches_api() {
        for (kind, api_version, name) in [
            (
                ClusterKind::Cluster,
                "cluster.karmada.io/v1alpha1",
                "Cluster",
            ),
            (
                ClusterKind::MemberCluster,
                "cluster.kubernetes-fleet.io/v1beta1",
                "MemberCluster",
            ),
        ] {
            let reference = cluster(kind, "m1");
            assert_eq!(reference.api_version.as_deref(), Some(api_version));
            assert_eq!(reference.kind.as_deref(), Some(name));
            assert_eq!(
                (reference.name.as_deref(), reference.namespace),
                (Some("m1"), None)
            );
        }
    }
}
