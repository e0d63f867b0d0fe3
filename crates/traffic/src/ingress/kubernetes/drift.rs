use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Secret, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use objects::Metadata;
use objects::patch::JsonPatch;
use serde::Serialize;

use super::managed_by::PASSED_ON_ANNOTATION;

/// A kind of object that we manage in the gateway cluster.
pub trait Managed: Resource<DynamicType = ()> + Serialize {
    /// The kind's name.
    const KIND: &'static str;
    /// The name of writes to such objects in metrics.
    const TARGET: &'static str;

    /// Returns the edits that bring the fields we own in `existing` to those in `self`. They touch no other
    /// field.
    ///
    /// # Errors
    /// Returns an error if a field does not serialize.
    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch>;
}

impl Managed for Service {
    const KIND: &'static str = "Service";
    const TARGET: &'static str = "gateway_service";

    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch> {
        let none = ServiceSpec::default();
        let wanted = self.spec.as_ref().unwrap_or(&none);
        let found = existing.spec.as_ref().unwrap_or(&none);
        let mut edits = edits_of_metadata(&self.metadata, &existing.metadata);
        edit(
            &mut edits,
            ["spec", "type"],
            wanted.type_.as_ref(),
            found.type_.as_ref(),
        )?;
        edit(
            &mut edits,
            ["spec", "ports"],
            wanted.ports.as_ref(),
            found.ports.as_ref(),
        )?;
        // An API server may store an empty selector, which selects nothing here.
        let selector = found.selector.as_ref().filter(|s| !s.is_empty());
        edit(
            &mut edits,
            ["spec", "selector"],
            wanted.selector.as_ref(),
            selector,
        )?;
        Ok(edits)
    }
}

impl Managed for EndpointSlice {
    const KIND: &'static str = "EndpointSlice";
    const TARGET: &'static str = "gateway_endpoint_slice";

    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch> {
        let found: Vec<Endpoint> = existing.endpoints.iter().flatten().map(normal).collect();
        let mut edits = edits_of_metadata(&self.metadata, &existing.metadata);
        edit(
            &mut edits,
            ["endpoints"],
            self.endpoints.as_ref(),
            Some(&found),
        )?;
        edit(
            &mut edits,
            ["ports"],
            self.ports.as_ref(),
            existing.ports.as_ref(),
        )?;
        Ok(edits)
    }
}

/// Returns the endpoint with its conditions, empty if absent, as in the objects that we create.
fn normal(endpoint: &Endpoint) -> Endpoint {
    Endpoint {
        conditions: Some(endpoint.conditions.clone().unwrap_or_default()),
        ..endpoint.clone()
    }
}

impl Managed for Secret {
    const KIND: &'static str = "Secret";
    const TARGET: &'static str = "gateway_secret";

    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch> {
        let mut edits = edits_of_metadata(&self.metadata, &existing.metadata);
        let [wanted, found] = [self, existing].map(|secret| secret.data.as_ref());
        edit(&mut edits, ["data"], wanted, found)?;
        Ok(edits)
    }
}

impl Managed for Ingress {
    const KIND: &'static str = "Ingress";
    const TARGET: &'static str = "gateway_ingress";

    /// The class is ours only if one is desired. Otherwise admission has filled in the gateway cluster's
    /// default class when the object was created.
    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch> {
        let none = IngressSpec::default();
        let wanted = self.spec.as_ref().unwrap_or(&none);
        let found = existing.spec.as_ref().unwrap_or(&none);
        let mut edits = edits_of_metadata(&self.metadata, &existing.metadata);
        edit(
            &mut edits,
            ["spec", "rules"],
            wanted.rules.as_ref(),
            found.rules.as_ref(),
        )?;
        edit(
            &mut edits,
            ["spec", "tls"],
            wanted.tls.as_ref(),
            found.tls.as_ref(),
        )?;
        let backends = (
            wanted.default_backend.as_ref(),
            found.default_backend.as_ref(),
        );
        edit(
            &mut edits,
            ["spec", "defaultBackend"],
            backends.0,
            backends.1,
        )?;
        if let Some(class) = &wanted.ingress_class_name {
            let found = found.ingress_class_name.as_ref();
            edit(&mut edits, ["spec", "ingressClassName"], Some(class), found)?;
        }
        Ok(edits)
    }
}

/// Returns the edits of the labels and annotations that we own. All others belong to other clients.
pub(in crate::ingress) fn edits_of_metadata(wanted: &ObjectMeta, found: &ObjectMeta) -> JsonPatch {
    let mut edits = JsonPatch::default();
    let labels = entries(wanted.labels.as_ref());
    edits.entries("labels", found.labels.as_ref(), labels);
    let annotations = entries(wanted.annotations.as_ref());
    edits.entries("annotations", found.annotations.as_ref(), annotations);
    remove_no_longer_passed_on(&mut edits, wanted, found);
    edits
}

fn entries(map: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (&str, Option<&str>)> {
    let map = map.into_iter().flatten();
    map.map(|(key, value)| (key.as_str(), Some(value.as_str())))
}

/// Adds edits that remove the annotations that the user's objects had once. Annotations that others
/// set on `found` stay.
fn remove_no_longer_passed_on(edits: &mut JsonPatch, wanted: &ObjectMeta, found: &ObjectMeta) {
    let recorded = found.annotation(PASSED_ON_ANNOTATION);
    let recorded = recorded.and_then(|list| serde_json::from_str::<Vec<String>>(list).ok());
    let once: BTreeSet<String> = recorded.into_iter().flatten().collect();
    let once = once
        .iter()
        .map(String::as_str)
        .chain([PASSED_ON_ANNOTATION]);
    let gone = once.filter(|key| wanted.annotation(key).is_none());
    let gone = gone.map(|key| (key, None));
    edits.entries("annotations", found.annotations.as_ref(), gone);
}

/// Adds the edit that sets or removes a field, if it differs.
pub(in crate::ingress) fn edit<'p, T: PartialEq + Serialize>(
    edits: &mut JsonPatch,
    path: impl IntoIterator<Item = &'p str>,
    wanted: Option<&T>,
    found: Option<&T>,
) -> serde_json::Result<()> {
    match wanted {
        _ if wanted == found => {}
        Some(wanted) => edits.add(path, serde_json::to_value(wanted)?),
        None => edits.remove(path),
    }
    Ok(())
}
