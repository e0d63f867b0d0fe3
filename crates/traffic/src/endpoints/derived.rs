//! The Service that stands for a `ServiceImport`: the slices that are collected of the exported Service are its endpoints.

use karmada_api::names::DERIVED_PREFIX;
use objects::Metadata;
use objects::patch::guarded;
use serde_json::{Map, Value, json};

use super::collected::{OWNER, OWNER_LABEL};

/// Selects the Services that were derived here.
pub const DERIVED: &str = "app.kubernetes.io/managed-by=karmada-rs.io_execution-controller";

/// The fields of the port of an import that its Service has, too.
const OF_PORT: [&str; 4] = ["name", "port", "protocol", "appProtocol"];

/// The write that brings the Service of an import up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DerivedPlan {
    /// There is nothing to write.
    Unchanged,
    /// Create this Service. If there is one of its name, that is somebody else's.
    Create(Value),
    /// Change the one that is ours: a merge patch (RFC 7396), which fails on another version.
    Change(Value),
}

/// Returns the name of the Service of the import `import`, as Karmada names it.
pub fn derived_service(import: &str) -> String {
    format!("{DERIVED_PREFIX}{import}")
}

impl DerivedPlan {
    /// Plans the Service of an import. `existing` is the one that was derived before. It goes with the import, its owner.
    pub fn of(import: &Value, existing: Option<&Value>) -> Self {
        let wanted = ports(import);
        // A Service has a port.
        if import.is_deleting() || wanted.is_empty() {
            return Self::Unchanged;
        }
        let Some(service) = existing else {
            return Self::Create(service(import, &wanted));
        };
        let is_ours = service.label(OWNER_LABEL) == Some(OWNER) && !service.is_deleting();
        if !is_ours || ports(service) == wanted {
            return Self::Unchanged;
        }
        let body = json!({ "spec": { "ports": wanted } });
        Self::Change(guarded(Some(service.resource_version()), body))
    }
}

fn service(import: &Value, ports: &[Value]) -> Value {
    let owner = json!({
        "apiVersion": import["apiVersion"], "kind": import["kind"],
        "name": import.name(), "uid": import.uid(),
    });
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": derived_service(import.name()), "namespace": import.namespace(),
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
        let DerivedPlan::Create(mut service) = DerivedPlan::of(import, None) else {
            panic!("not created");
        };
        service["metadata"]["resourceVersion"] = json!("7");
        for port in service["spec"]["ports"].as_array_mut().unwrap() {
            port["targetPort"] = port["port"].clone();
        }
        service
    }

    /// The Service of an import has its ports and goes with it, and one of a headless import has no address.
    #[test]
    fn service_has_ports_of_import() {
        let import = |kind| import(kind, &json!([{ "name": "http", "port": 80 }]));
        let service = stored(&import("ClusterSetIP"));
        assert_eq!(service["metadata"]["name"], "derived-web");
        assert_eq!(service["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(service["spec"]["ports"][0]["protocol"], "TCP");
        assert_eq!(service["spec"].get("clusterIP"), None);
        let headless = stored(&import("Headless"));
        assert_eq!(headless["spec"]["clusterIP"], "None");
        let selector = format!("{OWNER_LABEL}={OWNER}");
        assert_eq!(selector, DERIVED);
    }

    /// Only other ports are a change, of the version that was read; nobody else's Service is changed, and none is made for an
    /// import that goes or has no port.
    #[test]
    fn other_ports_are_changed() {
        let import = |ports| import("ClusterSetIP", &ports);
        let http = json!([{ "name": "http", "port": 80, "appProtocol": null }]);
        let before = import(http);
        let service = stored(&before);
        assert_eq!(
            DerivedPlan::of(&before, Some(&service)),
            DerivedPlan::Unchanged
        );
        let after = import(json!([{ "name": "http", "port": 81, "appProtocol": "h2c" }]));
        let DerivedPlan::Change(patch) = DerivedPlan::of(&after, Some(&service)) else {
            panic!("not changed");
        };
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let port = json!({ "name": "http", "port": 81, "appProtocol": "h2c", "protocol": "TCP" });
        assert_eq!(patch["spec"]["ports"], json!([port]));
        let mut theirs = service.clone();
        theirs["metadata"]["labels"] = json!({});
        assert_eq!(
            DerivedPlan::of(&after, Some(&theirs)),
            DerivedPlan::Unchanged
        );
        let mut leaving = after;
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-30T08:00:00Z");
        assert_eq!(DerivedPlan::of(&leaving, None), DerivedPlan::Unchanged);
        for odd in [json!([]), json!("http"), Value::Null] {
            assert_eq!(DerivedPlan::of(&import(odd), None), DerivedPlan::Unchanged);
        }
    }
}
