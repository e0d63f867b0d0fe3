//! The fields of a manifest that are not applied as they are, for the member has values of its own.

use karmada_api::names::RETAIN_REPLICAS;
use serde_json::{Value, json};

use super::managed_fields::is_owned_by_another;

/// Returns the manifest as it is applied to the object that was read in the member, if there is one.
pub(super) fn retain(manifest: &Value, object: Option<&Value>) -> Value {
    let mut manifest = manifest.clone();
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    match (version.unwrap_or_default(), kind.unwrap_or_default()) {
        ("batch/v1", "Job") => generated_selector(&mut manifest),
        ("v1", "Secret") => token(&mut manifest),
        ("v1", "Service") => health_check_port(&mut manifest, object),
        ("v1", "ServiceAccount") => pull_secrets(&mut manifest, object),
        _ => {}
    }
    replicas(&mut manifest, object);
    manifest
}

fn remove(value: &mut Value, pointer: &str, name: &str) {
    if let Some(map) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.remove(name);
    }
}

fn insert(value: &mut Value, pointer: &str, name: &str, part: Value) {
    if let Some(map) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.insert(name.to_owned(), part);
    }
}

/// The member generates the selector; an empty one would replace it.
fn generated_selector(manifest: &mut Value) {
    if manifest.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
        remove(manifest, "/spec", "selector");
    }
}

/// The member issues the token of its own service account.
fn token(manifest: &mut Value) {
    let kind = manifest.get("type").and_then(Value::as_str);
    if kind == Some("kubernetes.io/service-account-token") {
        remove(manifest, "", "data");
    }
}

/// The member allocates the port, which cannot be changed afterwards.
fn health_check_port(manifest: &mut Value, object: Option<&Value>) {
    let observed = object.and_then(|object| object.pointer("/spec/healthCheckNodePort"));
    if let Some(port) = observed.filter(|port| port.as_i64() != Some(0)) {
        insert(manifest, "/spec", "healthCheckNodePort", port.clone());
    }
}

/// The list is atomic: the member's own would vanish.
fn pull_secrets(manifest: &mut Value, object: Option<&Value>) {
    let list = |value: &Value| {
        value
            .get("imagePullSecrets")
            .and_then(Value::as_array)
            .cloned()
    };
    let (Some(mut wanted), Some(observed)) = (list(manifest), object.and_then(list)) else {
        return;
    };
    let missing: Vec<_> = wanted
        .iter()
        .filter(|secret| !observed.contains(secret))
        .cloned()
        .collect();
    // In the member's order, or each apply would turn it round.
    wanted = observed.into_iter().chain(missing).collect();
    insert(manifest, "", "imagePullSecrets", json!(wanted));
}

/// Another controller scales the object in the member.
fn replicas(manifest: &mut Value, object: Option<&Value>) {
    let labels = manifest.pointer("/metadata/labels");
    let retains = labels.and_then(|labels| labels.get(RETAIN_REPLICAS)?.as_str()) == Some("true");
    let observed = object.and_then(|object| object.pointer("/spec/replicas"));
    let (true, Some(object), Some(observed)) = (retains, object, observed) else {
        return;
    };
    if is_owned_by_another(object, &["spec", "replicas"]) {
        remove(manifest, "/spec", "replicas");
    } else {
        // We own it alone: left out, it would be reset to its default.
        insert(manifest, "/spec", "replicas", observed.clone());
    }
}
