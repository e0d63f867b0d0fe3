//! The parts of a binding that do not depend on who writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use karmada_api::{ClusterResourceBinding, names};
use objects::patch::JsonPatch;
use objects::{Key, Metadata, api_version, kind};
use serde_json::{Map, Value, json};

/// The names of a binding's scope.
struct Scope {
    kind: &'static str,
    id_label: &'static str,
    finalizer: &'static str,
}

impl Scope {
    fn of(object: &Value) -> Self {
        if object.namespace().is_empty() {
            Self {
                kind: ClusterResourceBinding::KIND,
                id_label: names::CLUSTER_BINDING_ID,
                finalizer: names::CLUSTER_BINDING_FINALIZER,
            }
        } else {
            Self {
                kind: "ResourceBinding",
                id_label: names::BINDING_ID,
                finalizer: names::BINDING_FINALIZER,
            }
        }
    }
}

/// Returns the body of a template's new binding `key`, with these labels, annotations and members of the spec
/// besides those that every binding has.
pub(crate) fn body(
    key: &Key,
    object: &Value,
    id: &str,
    mut labels: Map<String, Value>,
    annotations: Map<String, Value>,
    mut spec: Map<String, Value>,
) -> Value {
    let scope = Scope::of(object);
    labels.insert(scope.id_label.to_owned(), json!(id));
    spec.insert("resource".to_owned(), reference(object));
    let mut metadata = json!({
        "name": key.name,
        "labels": labels,
        "finalizers": [scope.finalizer],
        "ownerReferences": [owner(object)],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(key.namespace);
    }
    json!({
        "apiVersion": ClusterResourceBinding::API_VERSION,
        "kind": scope.kind,
        "metadata": metadata,
        "spec": spec,
    })
}

/// Returns `true` if a binding must go before the template can have one: it is that of a former template,
/// or is being deleted.
pub(crate) fn is_former(object: &Value, binding: &ObjectMeta) -> bool {
    let uid = object.uid();
    let owners = binding.owner_references.as_deref().unwrap_or_default();
    let mut controllers = owners.iter().filter(|o| o.controller == Some(true));
    binding.deletion_timestamp.is_some() || controllers.any(|owner| owner.uid != uid)
}

/// Gives the binding of a template the finalizer and the owner that it lacks.
pub(crate) fn ownership(patch: &mut JsonPatch, object: &Value, metadata: &ObjectMeta) {
    patch.add_finalizer(metadata, Scope::of(object).finalizer);
    let owner = owner(object);
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    if !owners.iter().any(|o| o.controller == Some(true)) {
        let others = owners.iter().filter(|o| o.uid != owner.uid);
        let all: Vec<_> = others.chain([&owner]).collect();
        patch.add(["metadata", "ownerReferences"], json!(all));
    }
}

/// Names the owner of a binding in the version in which the template is read. The garbage collector looks for it in no other:
/// once an older one is not served any more, it would take the template for gone, or never see it go.
pub(crate) fn owner_version(patch: &mut JsonPatch, object: &Value, metadata: &ObjectMeta) {
    let version = api_version(object);
    let mut owners = metadata.owner_references.clone().unwrap_or_default();
    let mut is_outdated = false;
    for owner in &mut owners {
        if owner.controller == Some(true) && owner.api_version != version {
            version.clone_into(&mut owner.api_version);
            is_outdated = true;
        }
    }
    if is_outdated {
        patch.add(["metadata", "ownerReferences"], json!(owners));
    }
}

/// Returns the reference to a template in its binding.
pub(crate) fn reference(object: &Value) -> Value {
    let mut reference = json!({
        "apiVersion": api_version(object),
        "kind": kind(object),
        "name": object.name(),
        "uid": object.uid(),
        "resourceVersion": object.resource_version(),
    });
    let namespace = object.namespace();
    if !namespace.is_empty() {
        reference["namespace"] = json!(namespace);
    }
    reference
}

fn owner(object: &Value) -> OwnerReference {
    OwnerReference {
        api_version: api_version(object).to_owned(),
        kind: kind(object).to_owned(),
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
