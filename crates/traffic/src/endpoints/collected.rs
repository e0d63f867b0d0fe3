//! The form of the slices that were collected from members.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::cluster_of_execution_namespace;
use karmada_api::names::{DERIVED_PREFIX, SERVICE_NAME, WORK_NAMESPACE};

/// Selects the `EndpointSlice`s that were collected from members, and no others of the control plane.
pub const COLLECTED: &str =
    "endpointslice.kubernetes.io/managed-by=endpointslice-controller.karmada.io";

/// Selects the `EndpointSlice`s in which nodes of members are published, and no others of the control plane.
pub const NODE_SLICES: &str =
    "endpointslice.kubernetes.io/managed-by=cluster-controller.karmada-rs.io";

/// The label by which we know the slices that we collected, and not a Karmada.
pub(super) const OWNER_LABEL: &str = "app.kubernetes.io/managed-by";
pub(super) const OWNER: &str = "karmada-rs.io_execution-controller";

/// Returns the Service whose endpoints were collected in `slice`.
pub fn slice_service(slice: &EndpointSlice) -> Option<&str> {
    let labels = slice.metadata.labels.as_ref()?;
    labels.get(SERVICE_NAME)?.strip_prefix(DERIVED_PREFIX)
}

/// Returns the cluster from which `slice` was collected.
pub fn slice_cluster(slice: &EndpointSlice) -> Option<&str> {
    let annotations = slice.metadata.annotations.as_ref()?;
    cluster_of_execution_namespace(annotations.get(WORK_NAMESPACE)?)
}

/// Returns `true` if the execution-controller collected a slice, which is its to change.
pub fn is_ours(meta: &ObjectMeta) -> bool {
    let owner = meta
        .labels
        .as_ref()
        .and_then(|labels| labels.get(OWNER_LABEL));
    owner.is_some_and(|owner| owner == OWNER)
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

    /// A slice belongs to the Service its derived one was made for, and to the cluster of its namespace.
    #[test]
    fn slice_names_service_and_cluster() {
        let slice = |service: &str, namespace: &str| -> EndpointSlice {
            let (labels, annotations) = (
                json!({ SERVICE_NAME: service }),
                json!({ WORK_NAMESPACE: namespace }),
            );
            let metadata = json!({ "labels": labels, "annotations": annotations });
            from_value(json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": [] }))
                .unwrap()
        };
        let collected = slice("derived-web", "karmada-es-member1");
        assert_eq!(slice_service(&collected), Some("web"));
        assert_eq!(slice_cluster(&collected), Some("member1"));
        let own = slice("web", "default");
        assert_eq!((slice_service(&own), slice_cluster(&own)), (None, None));
        let bare = EndpointSlice::default();
        assert_eq!((slice_service(&bare), slice_cluster(&bare)), (None, None));
    }
}
