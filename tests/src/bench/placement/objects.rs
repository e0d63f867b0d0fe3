//! The objects of the benchmark, and the parts of them that it reads.

use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::condition::TRUE;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::{NotUsed, Object},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// An object of which only the conditions are decoded.
pub(super) type Told = Object<NotUsed, Conditions>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conditions {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

fn is_true(object: &Told, kind: &str) -> bool {
    let status = object.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|one| one.type_ == kind && one.status == TRUE)
}

/// Returns `true` if the Works of a binding are there.
pub(super) fn is_synchronized(binding: &Told) -> bool {
    is_true(binding, "WorkSynchronized")
}

/// Returns `true` if everything of a binding or a placement is available in its clusters.
pub(super) fn is_available(object: &Told) -> bool {
    is_true(object, "Available") || is_true(object, "ClusterResourcePlacementAvailable")
}

/// Returns `true` if everything of a placement is applied in its clusters.
pub(super) fn is_applied(placement: &Told) -> bool {
    is_true(placement, "ClusterResourcePlacementApplied")
}

/// Returns `true` if a cluster has all that it needs on the hub.
pub(super) fn is_ready_to_join(cluster: &Told) -> bool {
    is_true(cluster, "ReadyToJoin")
}

/// Returns `true` if a cluster is a part of the fleet.
pub(super) fn is_joined(cluster: &Told) -> bool {
    is_true(cluster, "Joined")
}

/// Returns `true` for a map of ours.
pub(super) fn is_placed(map: &ConfigMap) -> bool {
    map.name_any().starts_with("map-")
}

/// Returns `true` for a map with an edit.
pub(super) fn is_edited(map: &ConfigMap) -> bool {
    let data = map.data.as_ref();
    data.and_then(|data| data.get("edit"))
        .is_some_and(|edit| edit == "on")
}

/// Returns the conditions of all objects of a kind.
pub(super) fn told<K: Resource<DynamicType: Default>>(client: Client) -> Api<Told> {
    let kind = K::DynamicType::default();
    Api::all_with(client, &ApiResource::erase::<K>(&kind))
}

/// Returns the objects of a kind, in a namespace unless that is empty.
pub(super) fn untyped<K: Resource<DynamicType: Default>>(
    client: Client,
    namespace: &str,
) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&K::DynamicType::default());
    if namespace.is_empty() {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, namespace, &resource)
    }
}

/// Returns a map of the size that users write.
pub(super) fn map(nth: usize) -> Value {
    let data = json!({ "edit": "off", "settings": "a = 1\n".repeat(20) });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": format!("map-{nth}") }, "data": data,
    })
}

/// Returns an override of a map of a placement, by which each cluster has its name in it.
pub(super) fn override_of(placement: &str, nth: usize) -> Value {
    let map = format!("map-{nth}");
    let rule = json!({
        "clusterSelector": { "clusterSelectorTerms": [] },
        "jsonPatchOverrides": [{ "op": "add", "path": "/data/cluster", "value": "${MEMBER-CLUSTER-NAME}" }],
    });
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourceOverride",
        "metadata": { "name": override_name(placement, nth) },
        "spec": {
            "placement": { "name": placement },
            "resourceSelectors": [{ "group": "", "version": "v1", "kind": "ConfigMap", "name": map }],
            "policy": { "overrideRules": [rule] },
        },
    })
}

/// Returns the name of that override.
pub(super) fn override_name(placement: &str, nth: usize) -> String {
    format!("{placement}-{nth}")
}

/// Returns the spec of the placement of a namespace, everywhere.
pub(super) fn everywhere(namespace: &str) -> Value {
    json!({
        "resourceSelectors": [{ "group": "", "version": "v1", "kind": "Namespace", "name": namespace }],
        "policy": { "placementType": "PickAll" },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "unavailablePeriodSeconds": 1 } },
    })
}
