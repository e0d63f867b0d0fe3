//! The labels and annotations that an object has only because it was propagated.

use karmada_api::names::{
    BINDING_ID, BINDING_NAME, BINDING_NAMESPACE, CLUSTER_BINDING_ID, CLUSTER_BINDING_NAME,
    CLUSTER_POLICY_ID, CLUSTER_POLICY_NAME, CONFLICT_RESOLUTION, MANAGED, MANAGED_ANNOTATIONS,
    MANAGED_LABELS, POLICY_ID, POLICY_NAME, POLICY_NAMESPACE, TEMPLATE_GENERATION, TEMPLATE_UID,
    WORK_ID, WORK_NAME, WORK_NAMESPACE,
};
use objects::{Metadata, metadata};
use serde_json::{Map, Value, json};

const MARKS: [&str; 19] = [
    MANAGED,
    POLICY_ID,
    POLICY_NAMESPACE,
    POLICY_NAME,
    CLUSTER_POLICY_ID,
    CLUSTER_POLICY_NAME,
    BINDING_ID,
    BINDING_NAMESPACE,
    BINDING_NAME,
    CLUSTER_BINDING_ID,
    CLUSTER_BINDING_NAME,
    WORK_ID,
    WORK_NAMESPACE,
    WORK_NAME,
    CONFLICT_RESOLUTION,
    TEMPLATE_UID,
    TEMPLATE_GENERATION,
    MANAGED_LABELS,
    MANAGED_ANNOTATIONS,
];

/// Returns the merge patch (RFC 7396) that takes the marks off an object.
pub(super) fn without_marks(object: &Value) -> Value {
    json!({ "metadata": {
        "uid": object.uid(),
        "labels": nulls(object, "labels"),
        "annotations": nulls(object, "annotations"),
    } })
}

fn nulls(object: &Value, part: &str) -> Map<String, Value> {
    let map = metadata::field(object, part).and_then(Value::as_object);
    let keys = map.into_iter().flatten().map(|(key, _)| key);
    let marks = keys.filter(|key| MARKS.contains(&key.as_str()));
    marks.map(|key| (key.clone(), Value::Null)).collect()
}
