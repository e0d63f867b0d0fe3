//! Envelopes: objects that are placed without an effect on the hub, for there they are the content of another.

use std::cmp::Reverse;

use fleet_api::Work;
use fleet_api::names::{ENVELOPE_CONFIG_MAP, ENVELOPE_NAME, ENVELOPE_NAMESPACE, ENVELOPE_TYPE};
use fleet_api::placement::EnvelopeIdentifier;
use objects::{Metadata, Mistake, Scope, api_version, kind, yaml};
use serde_json::Value;

use super::content::is_envelope;
use super::select::{identifier, show};

/// The longest name that fits into a label.
const LONGEST_NAME: usize = 63;

/// The objects that are opened, so that those in them are placed instead.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// True if a `ConfigMap` is that is annotated as an envelope.
    pub config_maps: bool,
}

impl Opening {
    /// Returns `true` for an envelope.
    pub(crate) fn applies_to(self, object: &Value) -> bool {
        is_envelope(object) || self.config_maps && is_config_map_envelope(object)
    }
}

/// An envelope whose content may go out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opened {
    pub(crate) identifier: EnvelopeIdentifier,
    /// The objects, in KubeFleet's order, or every Work would be written anew when a fleet changes hands: the texts
    /// of their JSON, descending.
    pub(crate) manifests: Vec<Value>,
}

/// Returns `true` for a `ConfigMap` that its user calls an envelope.
fn is_config_map_envelope(object: &Value) -> bool {
    api_version(object) == "v1"
        && kind(object) == "ConfigMap"
        && object.annotation(ENVELOPE_CONFIG_MAP) == Some("true")
}

/// Returns the envelope whose content is in a Work.
pub(crate) fn envelope_of(work: &Work) -> Option<EnvelopeIdentifier> {
    let [type_, name, namespace] = [ENVELOPE_TYPE, ENVELOPE_NAME, ENVELOPE_NAMESPACE]
        .map(|key| work.metadata.label(key).map(ToOwned::to_owned));
    Some(EnvelopeIdentifier {
        type_: type_?,
        name: name.unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
    })
}

/// Opens an envelope in a placement of this scope.
///
/// # Errors
/// Fails with the entry that may not be in it.
pub(crate) fn open(envelope: &Value, of: Scope) -> Result<Opened, String> {
    let manifests = manifests(envelope, of).map_err(|reason| {
        let name = show(&identifier(envelope));
        format!("{name} cannot be opened: {reason}")
    })?;
    Ok(Opened {
        identifier: EnvelopeIdentifier {
            name: envelope.name().to_owned(),
            namespace: envelope.namespace().to_owned(),
            type_: kind(envelope).to_owned(),
        },
        manifests,
    })
}

/// Returns the objects in an envelope.
fn manifests(envelope: &Value, of: Scope) -> Result<Vec<Value>, String> {
    if envelope.name().len() > LONGEST_NAME {
        return Err(format!("its name is longer than {LONGEST_NAME} characters"));
    }
    let data = envelope["data"].as_object();
    let manifests = data.into_iter().flatten().map(|(key, entry)| {
        let manifest = manifest(entry).and_then(|manifest| fitting((envelope, of), manifest));
        manifest.map_err(|reason| format!("{key} {reason}"))
    });
    let mut manifests = manifests.collect::<Result<Vec<_>, _>>()?;
    manifests.sort_by_cached_key(|manifest| Reverse(manifest.to_string()));
    // Two entries that ask for the same are no contradiction.
    manifests.dedup();
    Ok(manifests)
}

/// Reads an entry: an object, or in a `ConfigMap` its YAML or JSON.
fn manifest(entry: &Value) -> Result<Value, String> {
    let manifest = match entry {
        Value::String(text) => {
            let read = yaml::document(text).and_then(|json| {
                serde_json::from_str(&json).map_err(|error| Mistake::from(&error).to_string())
            });
            read.map_err(|problem| format!("is no YAML of one object: {problem}"))?
        }
        entry => entry.clone(),
    };
    // One that leaves its name to the member fails there, alone.
    let is_named = !manifest.name().is_empty() || manifest["metadata"]["generateName"].is_string();
    if api_version(&manifest).is_empty() || kind(&manifest).is_empty() || !is_named {
        return Err("has no apiVersion, kind and name".to_owned());
    }
    Ok(manifest)
}

/// Returns an entry that is of the scope of its envelope, and of the placement.
fn fitting((envelope, of): (&Value, Scope), manifest: Value) -> Result<Value, String> {
    let (own, namespace) = (envelope.namespace(), manifest.namespace());
    let reason = match kind(envelope) {
        _ if is_envelope(&manifest) => "is an envelope itself",
        "ClusterResourceEnvelope" if !namespace.is_empty() => {
            "is namespaced: it belongs into a ResourceEnvelope"
        }
        "ResourceEnvelope" if namespace.is_empty() => {
            "has no namespace: cluster-scoped, it belongs into a ClusterResourceEnvelope"
        }
        // Whoever may place objects of one namespace may place nothing else by them.
        "ConfigMap" if namespace.is_empty() && of == Scope::Namespaced => {
            "has no namespace, and the placement is of one"
        }
        "ResourceEnvelope" | "ConfigMap" if ![own, ""].contains(&namespace) => {
            "is of another namespace than its envelope"
        }
        _ => return Ok(manifest),
    };
    let name = show(&identifier(&manifest));
    Err(format!("({name}) {reason}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(kind: &str, entry: &Value) -> Value {
        let mut envelope = json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
            "metadata": { "name": "wrapped" }, "data": { "one.yaml": entry } });
        if kind != "ClusterResourceEnvelope" {
            envelope["metadata"]["namespace"] = json!("shop");
        }
        if kind == "ConfigMap" {
            envelope["apiVersion"] = json!("v1");
        }
        envelope
    }

    fn object(namespace: Option<&str>) -> Value {
        json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "x", "namespace": namespace } })
    }

    /// Case P112: the YAML of an envelope has the meaning that it has for kubectl, as KubeFleet reads it.
    #[test]
    fn yaml_is_kubernetes() {
        let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n\
            data: {<<: &base {a: \"1\"}, mode: 0400, on: yes}\n";
        let opened = open(&envelope("ConfigMap", &json!(yaml)), Scope::Cluster).unwrap();
        let data = json!({ "a": "1", "mode": 256, "true": true });
        assert_eq!(opened.manifests[0]["data"], data);
    }

    /// Case F38: the objects that may be in each envelope, and the words about the rest.
    #[test]
    fn scopes_must_fit() {
        let (cluster, own, other) = (object(None), object(Some("shop")), object(Some("b")));
        let yaml = |object: &Value| Value::String(object.to_string());
        for (kind, entry, problem) in [
            ("ClusterResourceEnvelope", cluster.clone(), None),
            (
                "ClusterResourceEnvelope",
                own.clone(),
                Some("is namespaced"),
            ),
            ("ResourceEnvelope", own.clone(), None),
            (
                "ResourceEnvelope",
                cluster.clone(),
                Some("has no namespace"),
            ),
            ("ResourceEnvelope", other.clone(), Some("another namespace")),
            ("ConfigMap", yaml(&cluster), None),
            ("ConfigMap", yaml(&own), None),
            ("ConfigMap", yaml(&other), Some("another namespace")),
            ("ConfigMap", json!("a: ["), Some("one.yaml is no YAML")),
            (
                "ConfigMap",
                json!("a: 1\n---\nb: 2"),
                Some("one.yaml is no YAML"),
            ),
            (
                "ConfigMap",
                json!("some text"),
                Some("no apiVersion, kind and name"),
            ),
            (
                "ResourceEnvelope",
                json!({}),
                Some("no apiVersion, kind and name"),
            ),
            (
                "ResourceEnvelope",
                Value::Null,
                Some("no apiVersion, kind and name"),
            ),
            (
                "ResourceEnvelope",
                envelope("ResourceEnvelope", &own),
                Some("is an envelope itself"),
            ),
        ] {
            let opened = open(&envelope(kind, &entry), Scope::Cluster);
            match problem {
                None => assert_eq!(opened.unwrap().manifests.len(), 1, "{kind} {entry}"),
                Some(problem) => {
                    let refused = opened.unwrap_err();
                    assert!(
                        refused.contains(problem) && !refused.contains('\n'),
                        "{refused}"
                    );
                }
            }
        }
    }

    /// Case F90: a placement of a namespace brings no more out of a `ConfigMap` than the objects of its namespace.
    #[test]
    fn namespace_bounds_content() {
        for (entry, is_good) in [
            (object(Some("shop")), true),
            (object(None), false),
            (object(Some("b")), false),
        ] {
            let envelope = envelope("ConfigMap", &Value::String(entry.to_string()));
            let opened = open(&envelope, Scope::Namespaced);
            assert_eq!(opened.is_ok(), is_good, "{entry}");
        }
    }

    /// A label has the name, and cannot have all that an object may have.
    #[test]
    fn longest_name_fits_a_label() {
        for (length, is_good) in [(63, true), (64, false)] {
            let mut envelope = envelope("ResourceEnvelope", &object(Some("shop")));
            envelope["metadata"]["name"] = json!("x".repeat(length));
            let opened = open(&envelope, Scope::Cluster);
            assert_eq!(opened.is_ok(), is_good, "{length}");
        }
    }
}
