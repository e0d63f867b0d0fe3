use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::{Key, Metadata};
use serde_json::json;

use super::names::managed_by;
use crate::ingress::ControllerName;

pub(in crate::ingress) const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const INGRESS_ANNOTATION: &str = "karmada-rs.io/multi-cluster-ingress";
/// Lists the annotations that an object has from the user's objects, as JSON.
pub(super) const PASSED_ON_ANNOTATION: &str = "karmada-rs.io/passed-on-annotations";

/// The label by which a controller recognizes its objects in a gateway cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedBy(String);

impl ManagedBy {
    /// Returns that of `controller`.
    pub fn new(controller: &ControllerName) -> Self {
        Self(managed_by(controller))
    }

    /// Returns the label's value.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Returns the label selector of our objects.
    pub fn selector(&self) -> String {
        format!("{MANAGED_BY_LABEL}={}", self.0)
    }

    /// Returns the label selector of all other objects.
    pub fn others(&self) -> String {
        format!("{MANAGED_BY_LABEL}!={}", self.0)
    }

    /// Returns `true` if an object is ours to change.
    pub fn owns(&self, meta: &ObjectMeta) -> bool {
        meta.label(MANAGED_BY_LABEL) == Some(&self.0)
    }

    /// Returns the metadata of the object `name` for an ingress.
    pub(in crate::ingress) fn metadata(&self, ingress: &Key, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(ingress.namespace.clone()),
            labels: Some(map([(MANAGED_BY_LABEL, self.0.as_str())])),
            annotations: Some(map([(INGRESS_ANNOTATION, ingress.name.as_str())])),
            ..ObjectMeta::default()
        }
    }
}

/// Returns the ingress for which one of our objects was created. It is in the same namespace unless the object names another.
pub fn ingress_of(meta: &ObjectMeta) -> Option<Key> {
    let ingress = meta.annotations.as_ref()?.get(INGRESS_ANNOTATION)?;
    Some(match ingress.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None => Key::new(meta.namespace.clone()?, ingress),
    })
}

/// Adds annotations that go when they are no longer wanted, which takes a record of them.
pub(in crate::ingress) fn add_recorded(
    metadata: &mut ObjectMeta,
    annotations: BTreeMap<String, String>,
) {
    if annotations.is_empty() {
        return;
    }
    let names: Vec<&String> = annotations.keys().collect();
    let names = json!(names).to_string();
    let all = metadata.annotations.get_or_insert_default();
    all.extend(annotations);
    all.insert(PASSED_ON_ANNOTATION.to_owned(), names);
}

pub(super) fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
