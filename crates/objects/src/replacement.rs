//! The whole object by which another version of it is replaced.
//!
//! A replacement takes away whatever the manifest lacks, whoever wrote it. So it brings along the fields of the cluster:
//! those of others in metadata and status, those that the cluster has filled in at the creation and does not let go, and
//! those that it adds up by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::allocated::OF_SPEC;
use crate::fields::{insert, remove};
use crate::metadata::Written;
use crate::retain::{
    TEMPLATE_GENERATION, health_check_port, merge_secrets, names_in, without_generated,
};
use crate::{api_version, kind, metadata};

/// The lists of a `ServiceAccount` to which its cluster adds Secrets of its own, each with the annotation that names those of
/// the last manifest: whose an element is, the API does not tell.
const SECRETS: [(&str, &str); 2] = [
    ("secrets", "karmada-rs.io/secrets"),
    ("imagePullSecrets", "karmada-rs.io/image-pull-secrets"),
];

/// Returns the whole object that replaces `object` at the version that was read: the manifest, and the fields that the object
/// keeps.
pub fn replacement(manifest: &Value, object: &Value, written: &Written) -> Value {
    let mut body = without_generated(manifest);
    for name in ["uid", "resourceVersion", "finalizers"] {
        if let Some(value) = metadata::field(object, name) {
            insert(&mut body, "/metadata", name, value.clone());
        }
    }
    keep_owners(&mut body, object);
    keep_others(&mut body, object, "labels", &written.labels);
    keep_others(&mut body, object, "annotations", &written.annotations);
    // Of most kinds it is a subresource, which the write of the object leaves alone.
    if let Some(status) = object.get("status") {
        insert(&mut body, "", "status", status.clone());
    }
    keep_filled(&mut body, object);
    body
}

/// Leaves the replicas of `body` as whoever scales the object has set them.
pub fn keep_replicas(body: &mut Value, object: &Value) {
    copy(body, object, "/spec", "replicas");
}

/// Leaves the fields that a server allocates to a Service, and `body` leaves open, as in another version of the Service.
pub fn keep_allocated(body: &mut Value, object: &Value) {
    fill(body, object, "/spec", &OF_SPEC);
    keep_node_ports(body, object);
}

/// Notes in a `body` that is written which Secrets of a `ServiceAccount` are the manifest's, so that they leave with it.
pub fn note_secrets(body: &mut Value, manifest: &Value) {
    if (api_version(manifest), kind(manifest)) != ("v1", "ServiceAccount") {
        return;
    }
    for (list, annotation) in SECRETS {
        remove(body, "/metadata/annotations", &[annotation]);
        let names = names_in(manifest, list).filter(|names| !names.is_empty());
        if let Some(names) = names {
            metadata::edit(body, "annotations", |annotations| {
                annotations.insert(annotation.to_owned(), names.into());
            });
        }
    }
}

/// Returns `true` if both have the same labels and annotations.
pub fn has_same_metadata(left: &Value, right: &Value) -> bool {
    let nothing = Map::new();
    ["labels", "annotations"].iter().all(|part| {
        let [left, right] = [left, right].map(|object| metadata::field(object, part));
        let [left, right] = [left, right].map(|map| map.and_then(Value::as_object));
        left.unwrap_or(&nothing) == right.unwrap_or(&nothing)
    })
}

/// Keeps the owners that the object has beside those of `body`.
fn keep_owners(body: &mut Value, object: &Value) {
    let [present, owners] = [object, &*body]
        .map(|object| metadata::field(object, "ownerReferences").and_then(Value::as_array));
    let Some(present) = present else {
        return;
    };
    let mut owners = owners.cloned().unwrap_or_default();
    let others = present.iter();
    let others = others.filter(|owner| owners.iter().all(|one| one["uid"] != owner["uid"]));
    let others: Vec<_> = others.cloned().collect();
    owners.extend(others);
    insert(body, "/metadata", "ownerReferences", owners.into());
}

/// Keeps the entries of a map of the object's metadata that are not `written`.
fn keep_others(body: &mut Value, object: &Value, part: &str, written: &BTreeSet<String>) {
    let present = metadata::field(object, part).and_then(Value::as_object);
    let theirs = present.into_iter().flatten();
    let theirs = theirs.filter(|(key, _)| !written.contains(key.as_str()));
    let mut merged: Map<_, _> = theirs
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(wanted) = metadata::field(body, part).and_then(Value::as_object) {
        merged.extend(wanted.clone());
    }
    insert(body, "/metadata", part, Value::Object(merged));
}

/// Keeps the fields that the cluster has filled in, by kind.
fn keep_filled(body: &mut Value, object: &Value) {
    let version = api_version(body).to_owned();
    match (version.as_str(), kind(body).to_owned().as_str()) {
        ("v1", "Service") => service(body, object),
        ("v1", "ServiceAccount") => {
            for (list, annotation) in SECRETS {
                merge_secrets(body, object, (list, annotation));
                // That of the last write is written anew with the next change only. One in the manifest is of another copy.
                remove(body, "/metadata/annotations", &[annotation]);
                copy(body, object, "/metadata/annotations", annotation);
            }
        }
        ("v1", "PersistentVolumeClaim") => {
            fill(body, object, "/spec", &["volumeName", "storageClassName"]);
        }
        ("v1", "PersistentVolume") => {
            copy(body, object, "/spec", "claimRef");
            fill(body, object, "/spec", &["nodeAffinity"]);
        }
        ("v1", "Pod") => fill_all(body, object, "/spec"),
        ("v1", "Secret")
            if text(body, "/type") == "kubernetes.io/service-account-token"
                && body.get("data").is_none() =>
        {
            copy(body, object, "", "data");
        }
        ("batch/v1", "Job") => job(body, object),
        ("apps/v1", "DaemonSet") => {
            copy(body, object, "/metadata/annotations", TEMPLATE_GENERATION);
        }
        ("rbac.authorization.k8s.io/v1", "ClusterRole")
            if body.get("aggregationRule").is_some_and(Value::is_object) =>
        {
            copy(body, object, "", "rules");
        }
        ("networking.k8s.io/v1", "Ingress") => ingress(body, object),
        (
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => webhooks(body, object),
        ("apiregistration.k8s.io/v1", "APIService") => certificates(body, object, "/spec"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            certificates(body, object, "/spec/conversion/webhook/clientConfig");
        }
        _ => {}
    }
}

fn service(body: &mut Value, object: &Value) {
    let type_ = text(body, "/spec/type").to_owned();
    if type_ == "ExternalName" {
        return;
    }
    fill(
        body,
        object,
        "/spec",
        &["clusterIP", "ipFamilies", "ipFamilyPolicy"],
    );
    if body.pointer("/spec/clusterIP") == object.pointer("/spec/clusterIP") {
        fill(body, object, "/spec", &["clusterIPs"]);
    }
    if !["NodePort", "LoadBalancer"].contains(&type_.as_str()) {
        return;
    }
    if type_ == text(object, "/spec/type") {
        fill(body, object, "/spec", &["loadBalancerClass"]);
    }
    health_check_port(body, Some(object));
    keep_node_ports(body, object);
}

fn keep_node_ports(body: &mut Value, object: &Value) {
    let ports = body
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if let Some(node_port) = node_port(port, object)
            && let Some(port) = port.as_object_mut()
        {
            port.insert("nodePort".to_owned(), node_port);
        }
    }
}

/// Leaves those node ports of a Service's manifest open that were `allocated` to it elsewhere, and that the object has
/// otherwise. Returns them. Without an object it has none of them.
pub fn leave_node_ports(
    manifest: &mut Value,
    allocated: &BTreeSet<u16>,
    object: Option<&Value>,
) -> BTreeSet<u16> {
    let mut left = BTreeSet::new();
    if (api_version(manifest), kind(manifest)) != ("v1", "Service") {
        return left;
    }
    let ports = manifest.pointer_mut("/spec/ports");
    let ports = ports.and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let own = object.and_then(|object| given_node_port(counterpart(port, object)?));
        let given = given_node_port(port).filter(|given| Some(*given) != own);
        let given = given.and_then(|given| u16::try_from(given.as_u64()?).ok());
        if let Some(given) = given.filter(|given| allocated.contains(given)) {
            remove(port, "", &["nodePort"]);
            left.insert(given);
        }
    }
    left
}

/// Returns the node ports of a Service, by the names of its ports; none of another kind.
pub fn node_ports(service: &Value) -> BTreeMap<&str, u16> {
    if (api_version(service), kind(service)) != ("v1", "Service") {
        return BTreeMap::new();
    }
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let given = ports.into_iter().flatten().filter_map(|port| {
        let number = u16::try_from(given_node_port(port)?.as_u64()?).ok()?;
        Some((text(port, "/name"), number))
    });
    given.collect()
}

/// Returns the node port that a port of a manifest leaves open and the object has.
fn node_port(port: &Value, object: &Value) -> Option<Value> {
    if given_node_port(port).is_some() {
        return None;
    }
    given_node_port(counterpart(port, object)?).cloned()
}

/// Returns the port of an object that a port of a manifest is: that of its name, or else of its number and protocol.
fn counterpart<'a>(port: &Value, object: &'a Value) -> Option<&'a Value> {
    let ports = object.pointer("/spec/ports")?.as_array()?;
    let name = port.get("name").filter(|name| *name != "");
    let of_name = ports
        .iter()
        .find(|other| name.is_some() && other.get("name") == name);
    of_name.or_else(|| {
        ports.iter().find(|other| {
            other.get("port") == port.get("port") && protocol(other) == protocol(port)
        })
    })
}

fn given_node_port(port: &Value) -> Option<&Value> {
    let given = port.get("nodePort");
    given.filter(|port| port.as_i64().is_some_and(|port| port != 0))
}

fn protocol(port: &Value) -> &str {
    let protocol = port.get("protocol").and_then(Value::as_str);
    protocol.unwrap_or("TCP")
}

/// Keeps the selector that the cluster generated, and the labels that it selects.
fn job(body: &mut Value, object: &Value) {
    const GENERATED: [&str; 4] = [
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "controller-uid",
        "job-name",
    ];
    if body.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    copy(body, object, "/spec", "selector");
    let Some(template) = body.pointer_mut("/spec/template") else {
        return;
    };
    metadata::edit(template, "labels", |labels| {
        for key in GENERATED {
            let label = object.pointer("/spec/template/metadata/labels");
            if let Some(label) = label.and_then(|labels| labels.get(key)) {
                labels.insert(key.to_owned(), label.clone());
            }
        }
    });
}

/// The cluster fills in its default class at the creation alone.
fn ingress(body: &mut Value, object: &Value) {
    let annotations = metadata::field(body, "annotations");
    let is_of_class =
        annotations.is_some_and(|map| map.get("kubernetes.io/ingress.class").is_some());
    if !is_of_class {
        fill(body, object, "/spec", &["ingressClassName"]);
    }
}

fn webhooks(body: &mut Value, object: &Value) {
    let Some(observed) = object.get("webhooks").and_then(Value::as_array) else {
        return;
    };
    let webhooks = body.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let found = observed
            .iter()
            .find(|found| found.get("name") == webhook.get("name"));
        if let Some(found) = found {
            certificates(webhook, found, "/clientConfig");
        }
    }
}

/// Keeps the certificates that a controller of the cluster has put where the manifest has none, or a blank.
fn certificates(body: &mut Value, object: &Value, pointer: &str) {
    let given = text(body, &format!("{pointer}/caBundle"));
    if ["", "Cg=="].contains(&given) {
        copy(body, object, pointer, "caBundle");
    }
}

/// Copies fields that the body leaves open.
fn fill(body: &mut Value, object: &Value, pointer: &str, names: &[&str]) {
    for name in names {
        let given = body.pointer(pointer).and_then(|part| part.get(*name));
        if given.is_none_or(|given| given.is_null() || given == "") {
            copy(body, object, pointer, name);
        }
    }
}

/// Copies a field that the object has.
fn copy(body: &mut Value, object: &Value, pointer: &str, name: &str) {
    let observed = object.pointer(pointer).and_then(|part| part.get(name));
    if let Some(observed) = observed {
        insert(body, pointer, name, observed.clone());
    }
}

/// Copies all that the body leaves open: elements of lists by their names, in the object's order, for that may not
/// change either.
fn fill_all(body: &mut Value, object: &Value, pointer: &str) {
    if let (Some(body), Some(object)) = (body.pointer_mut(pointer), object.pointer(pointer)) {
        complete(body, object);
    }
}

fn complete(part: &mut Value, observed: &Value) {
    match (part, observed) {
        (Value::Object(part), Value::Object(observed)) => {
            for (name, value) in observed {
                complete(part.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(part), Value::Array(observed)) => {
            if observed.iter().any(|value| key_of(value).is_none()) {
                return;
            }
            let mut wanted = std::mem::take(part);
            for value in observed {
                let found = wanted.iter().position(|one| key_of(one) == key_of(value));
                let mut one = found.map_or(Value::Null, |index| wanted.remove(index));
                complete(&mut one, value);
                part.push(one);
            }
            part.append(&mut wanted);
        }
        (part @ Value::Null, observed) => *part = observed.clone(),
        _ => {}
    }
}

/// Returns the field by which an element of a list of a Pod is known.
fn key_of(element: &Value) -> Option<(&'static str, &Value)> {
    let mut keys = ["mountPath", "name", "key"].iter();
    keys.find_map(|key| Some((*key, element.get(*key)?)))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests;
