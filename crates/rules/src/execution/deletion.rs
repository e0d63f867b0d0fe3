//! The object in the member after its Work is deleted.

use karmada_api::Work;
use karmada_api::names::{
    BINDING_ID, BINDING_NAME, BINDING_NAMESPACE, CLUSTER_BINDING_ID, CLUSTER_BINDING_NAME,
    CLUSTER_POLICY_ID, CLUSTER_POLICY_NAME, CONFLICT_RESOLUTION, MANAGED, MANAGED_ANNOTATIONS,
    MANAGED_LABELS, POLICY_ID, POLICY_NAME, POLICY_NAMESPACE, TEMPLATE_GENERATION, TEMPLATE_UID,
    WORK_ID, WORK_NAME, WORK_NAMESPACE,
};
use serde_json::{Map, Value, json};

use super::apply::{label, metadata, names_work};

/// The labels and annotations that an object has only because it was propagated.
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

/// The write by which a Work gives an object up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// There is none, or it is not the Work's.
    Nothing,
    /// Delete the object, in the background and only if it still has this uid.
    Delete {
        /// The uid.
        uid: String,
    },
    /// Keep the object and take our marks off it: a merge patch (RFC 7396).
    Release {
        /// The body of the patch.
        patch: Value,
    },
}

/// Plans what becomes of the member's object of a Work that is being deleted.
pub fn deletion(work: &Work, object: Option<&Value>) -> Deletion {
    let Some(object) = object else {
        return Deletion::Nothing;
    };
    // It may have been made anew by another Work or by a person meanwhile.
    if label(object, MANAGED) != Some("true") || !names_work(object, work) {
        return Deletion::Nothing;
    }
    if work.spec.preserve_resources_on_deletion == Some(true) {
        let patch = release(object);
        return Deletion::Release { patch };
    }
    if metadata(object, "deletionTimestamp").is_some() {
        return Deletion::Nothing;
    }
    match metadata(object, "uid").and_then(Value::as_str) {
        Some(uid) => Deletion::Delete {
            uid: uid.to_owned(),
        },
        None => Deletion::Nothing,
    }
}

/// Returns the patch that takes the labels and annotations of Karmada off an object.
fn release(object: &Value) -> Value {
    let marks = |part: &str| -> Map<String, Value> {
        let map = metadata(object, part).and_then(Value::as_object);
        let marks = map.into_iter().flatten().map(|(key, _)| key);
        let marks = marks.filter(|key| MARKS.contains(&key.as_str()));
        marks.map(|key| (key.clone(), Value::Null)).collect()
    };
    json!({ "metadata": {
        "uid": metadata(object, "uid"),
        "labels": marks("labels"),
        "annotations": marks("annotations"),
    } })
}
