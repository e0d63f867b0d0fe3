//! The form of the slices that were collected from members.

use fleet_api::names::cluster_of_member_namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names::{DERIVED_PREFIX, SERVICE_NAME, WORK_NAMESPACE};
use karmada_api::{cluster_of_execution_namespace, execution_namespace};
use objects::{Key, Metadata};

use crate::ClusterKind;

/// Selects the `EndpointSlice`s that were collected from members, and no others of the control plane.
pub const COLLECTED: &str =
    "endpointslice.kubernetes.io/managed-by=endpointslice-controller.karmada.io";

/// Selects the `EndpointSlice`s in which nodes of members are published, and no others of the control plane.
pub const NODE_SLICES: &str =
    "endpointslice.kubernetes.io/managed-by=cluster-controller.karmada-rs.io";

/// The label by which we know the slices that we collected, and not a Karmada.
pub(super) const OWNER_LABEL: &str = "app.kubernetes.io/managed-by";
pub(super) const OWNER: &str = "karmada-rs.io_execution-controller";
const OWNER_ON_HUB: &str = "karmada-rs.io_placement-agent";

/// The annotation of a slice on a hub, where it is in the namespace of its member: the namespace of its Service.
pub(super) const SERVICE_NAMESPACE: &str = "networking.karmada-rs.io/service-namespace";

/// Returns the value of [`OWNER_LABEL`] on slices that we collected from clusters of this kind.
pub(super) fn owner(kind: ClusterKind) -> &'static str {
    match kind {
        ClusterKind::Cluster => OWNER,
        ClusterKind::MemberCluster => OWNER_ON_HUB,
    }
}

/// Returns the Service whose endpoints were collected in `slice` from a cluster of this kind.
pub fn slice_service(kind: ClusterKind, slice: &EndpointSlice) -> Option<Key> {
    let meta = &slice.metadata;
    let name = meta.label(SERVICE_NAME)?.strip_prefix(DERIVED_PREFIX)?;
    let namespace = match kind {
        ClusterKind::Cluster => meta.namespace(),
        ClusterKind::MemberCluster => meta.annotation(SERVICE_NAMESPACE)?,
    };
    Some(Key::new(namespace, name))
}

/// Returns the cluster from which `slice` was collected.
pub fn slice_cluster(slice: &EndpointSlice) -> Option<&str> {
    let annotations = slice.metadata.annotations.as_ref()?;
    cluster_of_execution_namespace(annotations.get(WORK_NAMESPACE)?)
}

/// Has a slice that was read on a hub say of which cluster it is, as a collected one does. A member writes there in its own
/// namespace only, which tells whose endpoints they are, whatever else the slice says; one in another namespace is no member's.
pub fn collect_from_hub(slice: &mut ObjectMeta) {
    let cluster = cluster_of_member_namespace(slice.namespace());
    let home = cluster.map(|cluster| (WORK_NAMESPACE.to_owned(), execution_namespace(cluster)));
    let annotations = slice.annotations.get_or_insert_default();
    annotations.remove(WORK_NAMESPACE);
    annotations.extend(home);
}

/// Returns `true` if we collected a slice from a cluster of this kind, so that it is ours to change.
pub fn is_ours(kind: ClusterKind, slice: &impl Metadata) -> bool {
    slice.label(OWNER_LABEL) == Some(owner(kind))
}

#[cfg(test)]
mod tests {
    use karmada_api::names::{NODE_PUBLISHER, SLICE_MANAGED_BY};
    use serde_json::{from_value, json};

    use super::*;

    /// Nodes are selected by the name of who publishes them.
    #[test]
    fn selector_names_the_publisher() {
        assert_eq!(NODE_SLICES, format!("{SLICE_MANAGED_BY}={NODE_PUBLISHER}"));
    }

    fn slice(service: &str, namespace: &str) -> EndpointSlice {
        let (labels, annotations) = (
            json!({ SERVICE_NAME: service }),
            json!({ WORK_NAMESPACE: namespace }),
        );
        let metadata = json!({ "namespace": "shop", "labels": labels, "annotations": annotations });
        from_value(json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": [] })).unwrap()
    }

    /// A slice belongs to the Service its derived one was made for, and to the cluster of its namespace.
    #[test]
    fn slice_names_service_and_cluster() {
        let collected = slice("derived-web", "karmada-es-member1");
        let service = slice_service(ClusterKind::Cluster, &collected);
        assert_eq!(service, Some(Key::new("shop", "web")));
        assert_eq!(slice_cluster(&collected), Some("member1"));
        for stranger in [slice("web", "default"), EndpointSlice::default()] {
            assert_eq!(slice_service(ClusterKind::Cluster, &stranger), None);
            assert_eq!(slice_cluster(&stranger), None);
        }
    }

    fn read(namespace: &str, annotations: &serde_json::Value) -> EndpointSlice {
        let labels = json!({ SERVICE_NAME: "derived-web" });
        let mut slice: EndpointSlice = from_value(json!({
            "metadata": { "name": "a", "namespace": namespace, "labels": labels, "annotations": annotations },
            "addressType": "IPv4", "endpoints": [],
        }))
        .unwrap();
        collect_from_hub(&mut slice.metadata);
        slice
    }

    /// Case F120: on a hub a member says which Service it is, and cannot say that it is another member.
    #[test]
    fn member_speaks_for_itself() {
        let claim =
            json!({ SERVICE_NAMESPACE: "shop", WORK_NAMESPACE: "karmada-es-m2", "other": "a" });
        let told = read("fleet-member-m1", &claim);
        assert_eq!(slice_cluster(&told), Some("m1"));
        let service = slice_service(ClusterKind::MemberCluster, &told);
        assert_eq!(service, Some(Key::new("shop", "web")));
        assert_eq!(slice_cluster(&read("shop", &claim)), None);
        for annotations in [json!({ WORK_NAMESPACE: "karmada-es-m2" }), json!(null)] {
            let told = read("fleet-member-m1", &annotations);
            assert_eq!(slice_cluster(&told), Some("m1"));
            assert_eq!(slice_service(ClusterKind::MemberCluster, &told), None);
        }
    }
}
