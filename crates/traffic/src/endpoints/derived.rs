//! The Service that stands for a `ServiceImport`: the slices that are collected of the exported Service are its endpoints.

use k8s_openapi::api::core::v1::Service;
use karmada_api::names::DERIVED_PREFIX;
use objects::write::{Guard, ObjectRef, Write};
use objects::{Key, Metadata};
use serde_json::{Map, Value, json};

use super::collected::{OWNER, OWNER_LABEL};

/// Selects the Services that were derived here.
pub const DERIVED: &str = "app.kubernetes.io/managed-by=karmada-rs.io_execution-controller";

/// The fields of the port of an import that its Service has, too.
const OF_PORT: [&str; 4] = ["name", "port", "protocol", "appProtocol"];

/// The name of the writes in metrics.
pub const DERIVED_TARGET: &str = "derived_service";

/// Returns the Service of an import, as Karmada names it.
pub fn derived_service(import: &Key) -> Key {
    Key::new(
        &import.namespace,
        format!("{DERIVED_PREFIX}{}", import.name),
    )
}

/// Returns the write that brings the Service of an import up to date. `existing` is the one that was derived before. It goes
/// with the import, its owner.
pub fn derive_service(import: &Value, existing: Option<&Value>) -> Option<Write> {
    let wanted = ports(import);
    // A Service has a port.
    if import.is_deleting() || wanted.is_empty() {
        return None;
    }
    let key = Key::new(import.namespace(), import.name());
    let named = ObjectRef::named::<Service>(derived_service(&key), &());
    let Some(derived) = existing else {
        // If there is one of its name, that is somebody else's.
        let body = service(import, &wanted);
        return Some(Write::create_as(DERIVED_TARGET, named, body));
    };
    let is_ours = derived.label(OWNER_LABEL) == Some(OWNER) && !derived.is_deleting();
    if !is_ours || ports(derived) == wanted {
        return None;
    }
    let object = ObjectRef {
        version: Some(derived.resource_version().to_owned()),
        ..named
    };
    let body = json!({ "spec": { "ports": wanted } });
    Some(Write::merge(DERIVED_TARGET, object, body).guarded(Guard::Version))
}

fn service(import: &Value, ports: &[Value]) -> Value {
    let owner = json!({
        "apiVersion": import["apiVersion"], "kind": import["kind"],
        "name": import.name(), "uid": import.uid(),
    });
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": format!("{DERIVED_PREFIX}{}", import.name()), "namespace": import.namespace(),
            "labels": { OWNER_LABEL: OWNER }, "ownerReferences": [owner],
        },
        "spec": { "ports": ports },
    });
    if import.pointer("/spec/type").and_then(Value::as_str) == Some("Headless") {
        service["spec"]["clusterIP"] = "None".into();
    }
    service
}

/// Returns the ports of an import, or of a Service as far as an import has them.
fn ports(object: &Value) -> Vec<Value> {
    let ports = object.pointer("/spec/ports").and_then(Value::as_array);
    let ports = ports.into_iter().flatten().map(|port| {
        let fields = OF_PORT.into_iter().filter_map(|field| {
            let value = port.get(field).filter(|value| !value.is_null())?;
            Some((field.to_owned(), value.clone()))
        });
        let mut fields: Map<String, Value> = fields.collect();
        fields.entry("protocol").or_insert_with(|| "TCP".into());
        Value::Object(fields)
    });
    ports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(kind: &str, ports: &Value) -> Value {
        json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
            "metadata": { "name": "web", "namespace": "shop", "uid": "u" },
            "spec": { "type": kind, "ports": ports },
        })
    }

    /// Returns the Service of an import as an API stores it.
    fn stored(import: &Value) -> Value {
        let mut service = derive_service(import, None).unwrap().body().clone();
        service["metadata"]["resourceVersion"] = json!("7");
        for port in service["spec"]["ports"].as_array_mut().unwrap() {
            port["targetPort"] = port["port"].clone();
        }
        service
    }

    /// The Service of an import has its ports and goes with it, and one of a headless import has no address.
    #[test]
    fn service_has_ports_of_import() {
        let ports = json!([{ "name": "http", "port": 80 }]);
        let service = stored(&import("ClusterSetIP", &ports));
        assert_eq!(service["metadata"]["name"], "derived-web");
        assert_eq!(service["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(service["spec"]["ports"][0]["protocol"], "TCP");
        assert_eq!(service["spec"].get("clusterIP"), None);
        let headless = stored(&import("Headless", &ports));
        assert_eq!(headless["spec"]["clusterIP"], "None");
        let selector = format!("{OWNER_LABEL}={OWNER}");
        assert_eq!(selector, DERIVED);
    }

    /// Only other ports are a change, of the version that was read; nobody else's Service is changed, and none is made for an
    /// import that goes or has no port.
    #[test]
    fn other_ports_are_changed() {
        let http = json!([{ "name": "http", "port": 80, "appProtocol": null }]);
        let before = import("ClusterSetIP", &http);
        let service = stored(&before);
        assert_eq!(derive_service(&before, Some(&service)), None);
        let changed = json!([{ "name": "http", "port": 81, "appProtocol": "h2c" }]);
        let after = import("ClusterSetIP", &changed);
        let change = derive_service(&after, Some(&service)).unwrap();
        assert_eq!(change.object.key, Key::new("shop", "derived-web"));
        let patch = change.guarded_body();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let port = json!({ "name": "http", "port": 81, "appProtocol": "h2c", "protocol": "TCP" });
        assert_eq!(patch["spec"]["ports"], json!([port]));
        let mut theirs = service.clone();
        theirs["metadata"]["labels"] = json!({});
        assert_eq!(derive_service(&after, Some(&theirs)), None);
        let mut leaving = after;
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-30T08:00:00Z");
        assert_eq!(derive_service(&leaving, None), None);
        for odd in [json!([]), json!("http"), Value::Null] {
            assert_eq!(derive_service(&import("ClusterSetIP", &odd), None), None);
        }
    }
}
