//! The part that an object keeps of its own when its manifest is applied: the values that its cluster has filled in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::fields::{insert, remove};
use crate::managed_fields::Managers;
use crate::{Metadata, api_version, kind};

/// The annotation by which the API shows how often a `DaemonSet`'s template has changed in its cluster.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The annotation of a `ServiceAccount` with the names of those of its pull secrets that its last manifest had: whose an
/// element of the list is, the API does not tell.
pub const PULL_SECRETS: &str = "kubernetes-fleet.io/image-pull-secrets";

/// The metadata that only a server sets.
const OF_THE_SERVER: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The fields that an API server makes of the class of a Pod, and refuses from another cluster.
const OF_PRIORITY_CLASS: [&str; 2] = ["preemptionPolicy", "priority"];

/// Returns the manifest as its object is created: without the fields that the cluster generates.
pub fn without_generated(manifest: &Value) -> Value {
    let mut body = manifest.clone();
    remove(&mut body, "/metadata", &OF_THE_SERVER);
    match (api_version(manifest), kind(manifest)) {
        ("batch/v1", "Job") => generated_selector(&mut body),
        ("apps/v1", "DaemonSet") => {
            remove(&mut body, "/metadata/annotations", &[TEMPLATE_GENERATION]);
        }
        ("v1", "Pod") => remove(&mut body, "/spec", &OF_PRIORITY_CLASS),
        ("v1", "Secret") => {
            encode(&mut body);
            token(&mut body);
        }
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => aggregated_rules(&mut body),
        _ => {}
    }
    body
}

/// Returns the manifest as it is applied to the object that was read, if there is one.
pub fn retain(manifest: &Value, object: Option<&Value>) -> Value {
    let mut body = without_generated(manifest);
    match (api_version(manifest), kind(manifest)) {
        ("v1", "Service") => health_check_port(&mut body, object),
        // Without a list in the manifest, that of the object stays with whoever wrote it.
        ("v1", "ServiceAccount") if body.get("imagePullSecrets").is_some_and(Value::is_array) => {
            if let Some(object) = object {
                merge_secrets(&mut body, object, ("imagePullSecrets", PULL_SECRETS));
            }
        }
        _ => {}
    }
    body
}

/// Leaves the replicas of `body` to whoever scales the object.
pub fn retain_replicas(body: &mut Value, object: &Value, managers: Managers) {
    let Some(replicas) = object.pointer("/spec/replicas") else {
        return;
    };
    if managers.share(object, &["spec", "replicas"]) {
        remove(body, "/spec", &["replicas"]);
    } else {
        // We own it alone: left out, it would be reset to its default.
        insert(body, "/spec", "replicas", replicas.clone());
    }
}

/// Returns `body` with the uid of `object`, so that it is applied to no other.
pub fn pinned(mut body: Value, object: &Value) -> Value {
    if !object.uid().is_empty() {
        insert(&mut body, "/metadata", "uid", object.uid().into());
    }
    body
}

/// The cluster generates the selector; an empty one would replace it.
fn generated_selector(body: &mut Value) {
    if body.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
        remove(body, "/spec", &["selector"]);
    }
}

/// Puts the plain text of a Secret where its API server puts it, who never shows the text again.
fn encode(secret: &mut Value) {
    let Some(texts) = secret.get("stringData").and_then(Value::as_object) else {
        return;
    };
    let encoded = texts.iter().map(|(key, text)| {
        let text = STANDARD.encode(text.as_str()?);
        Some((key.clone(), Value::from(text)))
    });
    // A value that is no text is for the API server to refuse.
    let Some(encoded) = encoded.collect::<Option<Map<_, _>>>() else {
        return;
    };
    remove(secret, "", &["stringData"]);
    match secret.get_mut("data").and_then(Value::as_object_mut) {
        Some(data) => data.extend(encoded),
        None => insert(secret, "", "data", encoded.into()),
    }
}

/// The cluster issues the token of its own service account.
fn token(body: &mut Value) {
    let kind = body.get("type").and_then(Value::as_str);
    if kind == Some("kubernetes.io/service-account-token") {
        remove(body, "", &["data"]);
    }
}

/// The cluster adds up the rules of other roles.
fn aggregated_rules(body: &mut Value) {
    if body.get("aggregationRule").is_some_and(Value::is_object) {
        remove(body, "", &["rules"]);
    }
}

/// The cluster allocates the port, which cannot be changed afterwards, to a Service that has one.
pub(crate) fn health_check_port(body: &mut Value, object: Option<&Value>) {
    let fields = ["/spec/type", "/spec/externalTrafficPolicy"];
    let fields = fields.map(|field| body.pointer(field).and_then(Value::as_str));
    if fields != [Some("LoadBalancer"), Some("Local")] {
        return;
    }
    let observed = object.and_then(|object| object.pointer("/spec/healthCheckNodePort"));
    if let Some(port) = observed.filter(|port| port.as_i64() != Some(0)) {
        insert(body, "/spec", "healthCheckNodePort", port.clone());
    }
}

/// Adds to a list of Secrets those that the object has in it under other names, in its order, but for those that the annotation
/// names as an earlier manifest's. Without those, an atomic list would lose the cluster's own.
pub(crate) fn merge_secrets(body: &mut Value, object: &Value, (list, annotation): (&str, &str)) {
    let Some(observed) = object.get(list).and_then(Value::as_array) else {
        return;
    };
    let wanted = body.get(list).and_then(Value::as_array);
    let wanted = wanted.map_or(&[][..], Vec::as_slice);
    let written = object.annotation(annotation).unwrap_or_default();
    let kept = observed
        .iter()
        .filter(|secret| is_in(wanted, secret) || !is_listed(secret, written));
    let missing = wanted.iter().filter(|secret| !is_in(observed, secret));
    // In the cluster's order, or each write would turn it round.
    let merged: Vec<_> = kept.chain(missing).cloned().collect();
    insert(body, "", list, merged.into());
}

/// Returns the value of [`PULL_SECRETS`] for a manifest: the names of the Secrets that it lists; `None` for one that has no
/// such list.
pub fn pull_secret_names(manifest: &Value) -> Option<String> {
    let is_account = (api_version(manifest), kind(manifest)) == ("v1", "ServiceAccount");
    names_in(manifest, "imagePullSecrets").filter(|_| is_account)
}

/// Returns the names of the elements of a list, as an annotation has them; `None` without such a list.
pub(crate) fn names_in(object: &Value, list: &str) -> Option<String> {
    let listed = object.get(list)?.as_array()?.iter();
    let names = listed.filter_map(|one| one.get("name")?.as_str());
    Some(names.collect::<Vec<_>>().join(","))
}

/// Returns `true` if an element has the name of one of a list.
fn is_in(list: &[Value], element: &Value) -> bool {
    let name = element.get("name");
    list.iter().any(|one| one.get("name") == name)
}

/// Returns `true` if the name of an element is one of these.
fn is_listed(element: &Value, names: &str) -> bool {
    let name = element.get("name").and_then(Value::as_str);
    names.split(',').any(|listed| Some(listed) == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A value that a cluster generates, issues or allocates is its own; a list without keys is merged in its order.
    #[test]
    fn cluster_keeps_its_values() {
        let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "selector": {} } });
        assert_eq!(retain(&job, None)["spec"], json!({}));
        let manual = json!({ "apiVersion": "batch/v1", "kind": "Job",
            "spec": { "manualSelector": true, "selector": { "matchLabels": { "a": "b" } } } });
        assert_eq!(retain(&manual, None), manual);
        let token = json!({ "apiVersion": "v1", "kind": "Secret", "data": null,
            "type": "kubernetes.io/service-account-token" });
        assert_eq!(retain(&token, None).get("data"), None);
        let service = json!({ "apiVersion": "v1", "kind": "Service", "spec": {
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 1 } });
        let theirs = json!({ "spec": { "healthCheckNodePort": 30_000 } });
        let port = &retain(&service, Some(&theirs))["spec"]["healthCheckNodePort"];
        assert_eq!(port, 30_000);
        let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "aggregationRule": {}, "rules": null });
        assert_eq!(retain(&role, None).get("rules"), None);
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
            "imagePullSecrets": [{ "name": "a" }, { "name": "b" }] });
        let theirs = json!({ "imagePullSecrets": [{ "name": "c" }, { "name": "b" }] });
        let merged = json!([{ "name": "c" }, { "name": "b" }, { "name": "a" }]);
        assert_eq!(retain(&account, Some(&theirs))["imagePullSecrets"], merged);
    }

    /// Case F109: a field of ours that has left the manifest goes, one that the cluster has added stays.
    #[test]
    fn own_pull_secrets_leave() {
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
            "imagePullSecrets": [{ "name": "new" }] });
        assert_eq!(pull_secret_names(&account).as_deref(), Some("new"));
        let theirs = json!({ "metadata": { "annotations": { PULL_SECRETS: "old,new" } },
            "imagePullSecrets": [{ "name": "old" }, { "name": "new" }, { "name": "cluster" }] });
        let left = json!([{ "name": "new" }, { "name": "cluster" }]);
        assert_eq!(retain(&account, Some(&theirs))["imagePullSecrets"], left);
    }

    /// A value that the server of another cluster has set stays there.
    #[test]
    fn metadata_of_servers_stay() {
        let read = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "uid": "u",
                "resourceVersion": "7", "creationTimestamp": null, "managedFields": [], "labels": {} },
            "spec": { "priority": 0, "preemptionPolicy": "PreemptLowerPriority", "priorityClassName": "a" } });
        let expected = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "labels": {} }, "spec": { "priorityClassName": "a" } });
        assert_eq!(without_generated(&read), expected);
    }

    /// A text in a Secret goes where its server would put it, over the data that is there.
    #[test]
    fn secret_texts_are_encoded() {
        for (given, encoded) in [
            (
                json!({ "data": { "a": "eA==", "b": "eA==" }, "stringData": { "a": "ä" } }),
                json!({ "data": { "a": "w6Q=", "b": "eA==" } }),
            ),
            (
                json!({ "stringData": { "a": "" } }),
                json!({ "data": { "a": "" } }),
            ),
            (
                json!({ "data": null, "stringData": null }),
                json!({ "data": null, "stringData": null }),
            ),
            (
                json!({ "stringData": { "a": 1 } }),
                json!({ "stringData": { "a": 1 } }),
            ),
        ] {
            let [given, encoded] = [given, encoded].map(|mut secret| {
                secret["apiVersion"] = json!("v1");
                secret["kind"] = json!("Secret");
                secret
            });
            assert_eq!(without_generated(&given), encoded);
        }
    }

    /// Nothing is pinned to an object without uid.
    #[test]
    fn pinned_body_has_uid() {
        let body = json!({ "metadata": { "name": "web" } });
        let object = json!({ "metadata": { "uid": "u" } });
        assert_eq!(pinned(body.clone(), &object)["metadata"]["uid"], "u");
        assert_eq!(pinned(body.clone(), &json!({})), body);
    }
}
