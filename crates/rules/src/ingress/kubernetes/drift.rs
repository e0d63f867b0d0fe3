use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use super::objects::PASSED_ON_ANNOTATION;

/// One operation of a JSON patch (RFC 6902) on a field that we own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The field, as a JSON pointer (RFC 6901).
    pub path: String,
    /// The desired value; `None` removes the field.
    pub value: Option<Value>,
}

/// A kind of object that we manage in the gateway cluster.
pub trait Managed: Sized {
    /// The kind's name.
    const KIND: &'static str;

    /// Returns the object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// Returns the edits that bring the fields we own in `existing` to those in `self`. They touch no other
    /// field.
    ///
    /// # Errors
    /// Returns an error if a field does not serialize.
    fn edits(&self, existing: &Self) -> serde_json::Result<Vec<Edit>>;
}

impl Managed for Service {
    const KIND: &'static str = "Service";

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn edits(&self, existing: &Self) -> serde_json::Result<Vec<Edit>> {
        let none = ServiceSpec::default();
        let wanted = self.spec.as_ref().unwrap_or(&none);
        let found = existing.spec.as_ref().unwrap_or(&none);
        let mut edits = Edits::of_metadata(&self.metadata, &existing.metadata)?;
        edits.part("/spec/type", wanted.type_.as_ref(), found.type_.as_ref())?;
        edits.part("/spec/ports", wanted.ports.as_ref(), found.ports.as_ref())?;
        // An API server may store an empty selector, which selects nothing here.
        let selector = found.selector.as_ref().filter(|s| !s.is_empty());
        edits.part("/spec/selector", wanted.selector.as_ref(), selector)?;
        Ok(edits.0)
    }
}

impl Managed for EndpointSlice {
    const KIND: &'static str = "EndpointSlice";

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn edits(&self, existing: &Self) -> serde_json::Result<Vec<Edit>> {
        let found: Vec<Endpoint> = existing.endpoints.iter().flatten().map(normal).collect();
        let mut edits = Edits::of_metadata(&self.metadata, &existing.metadata)?;
        edits.part("/endpoints", self.endpoints.as_ref(), Some(&found))?;
        edits.part("/ports", self.ports.as_ref(), existing.ports.as_ref())?;
        Ok(edits.0)
    }
}

/// Returns the endpoint with its conditions, empty if absent, as in the objects that we create.
fn normal(endpoint: &Endpoint) -> Endpoint {
    Endpoint {
        conditions: Some(endpoint.conditions.clone().unwrap_or_default()),
        ..endpoint.clone()
    }
}

impl Managed for Ingress {
    const KIND: &'static str = "Ingress";

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The class is ours only if one is desired. Otherwise admission has filled in the gateway cluster's
    /// default class when the object was created.
    fn edits(&self, existing: &Self) -> serde_json::Result<Vec<Edit>> {
        let none = IngressSpec::default();
        let wanted = self.spec.as_ref().unwrap_or(&none);
        let found = existing.spec.as_ref().unwrap_or(&none);
        let mut edits = Edits::of_metadata(&self.metadata, &existing.metadata)?;
        edits.remove_no_longer_passed_on(&self.metadata, &existing.metadata);
        edits.part("/spec/rules", wanted.rules.as_ref(), found.rules.as_ref())?;
        edits.part("/spec/tls", wanted.tls.as_ref(), found.tls.as_ref())?;
        let backends = (
            wanted.default_backend.as_ref(),
            found.default_backend.as_ref(),
        );
        edits.part("/spec/defaultBackend", backends.0, backends.1)?;
        if let Some(class) = &wanted.ingress_class_name {
            let found = found.ingress_class_name.as_ref();
            edits.part("/spec/ingressClassName", Some(class), found)?;
        }
        Ok(edits.0)
    }
}

/// Returns the JSON pointer of the entry `key` in the map at `path`.
fn entry(path: &str, key: &str) -> String {
    // RFC 6901, section 3: `~` first, or the `~` of `~1` would be escaped again.
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[derive(Default)]
struct Edits(Vec<Edit>);

impl Edits {
    fn of_metadata(wanted: &ObjectMeta, found: &ObjectMeta) -> serde_json::Result<Self> {
        let mut edits = Self::default();
        edits.entries(
            "/metadata/labels",
            wanted.labels.as_ref(),
            found.labels.as_ref(),
        )?;
        let annotations = (wanted.annotations.as_ref(), found.annotations.as_ref());
        edits.entries("/metadata/annotations", annotations.0, annotations.1)?;
        Ok(edits)
    }

    /// Adds edits for the entries that we own. All other entries belong to other clients.
    fn entries(
        &mut self,
        path: &str,
        wanted: Option<&BTreeMap<String, String>>,
        found: Option<&BTreeMap<String, String>>,
    ) -> serde_json::Result<()> {
        let Some(found) = found else {
            return self.part(path, wanted, None);
        };
        for (key, value) in wanted.into_iter().flatten() {
            self.part(&entry(path, key), Some(value), found.get(key))?;
        }
        Ok(())
    }

    /// Adds edits that remove the annotations that the user's ingress had once. Annotations that others
    /// set on `found` stay.
    fn remove_no_longer_passed_on(&mut self, wanted: &ObjectMeta, found: &ObjectMeta) {
        let Some(found) = &found.annotations else {
            return;
        };
        let recorded = found.get(PASSED_ON_ANNOTATION);
        let recorded = recorded.and_then(|list| serde_json::from_str::<Vec<String>>(list).ok());
        let once: BTreeSet<String> = recorded.into_iter().flatten().collect();
        let is_wanted = |key: &String| wanted.annotations.iter().any(|all| all.contains_key(key));
        for key in once.into_iter().chain([PASSED_ON_ANNOTATION.to_owned()]) {
            if found.contains_key(&key) && !is_wanted(&key) {
                self.0.push(Edit {
                    path: entry("/metadata/annotations", &key),
                    value: None,
                });
            }
        }
    }

    fn part<T: PartialEq + Serialize>(
        &mut self,
        path: &str,
        wanted: Option<&T>,
        found: Option<&T>,
    ) -> serde_json::Result<()> {
        if wanted != found {
            self.0.push(Edit {
                path: path.to_owned(),
                value: wanted.map(serde_json::to_value).transpose()?,
            });
        }
        Ok(())
    }
}
