//! The form of a definition, whatever its kind.

use kube::Resource;
use serde_json::{Value, json};

use objects::Scope;

/// The version in which every object is stored.
const STORED: &str = "v1beta1";

/// The parts of a definition that differ from kind to kind.
pub(super) struct Definition {
    pub(super) short_names: Value,
    pub(super) spec: Value,
    pub(super) status: Option<Value>,
    pub(super) columns: Vec<Value>,
}

impl Definition {
    /// Returns that of a kind which has one scope.
    pub(super) fn of<K: Resource<DynamicType = ()>>(self, scope: Scope) -> Value {
        self.in_versions::<K>((&(), scope), &["v1", "v1beta1"])
    }

    /// Returns that of the kind which has this scope. KubeFleet has the namespaced ones in one version.
    pub(super) fn of_scope<K: Resource<DynamicType = Scope>>(self, scope: Scope) -> Value {
        let versions: &[&str] = match scope {
            Scope::Cluster => &["v1", "v1beta1"],
            Scope::Namespaced => &["v1beta1"],
        };
        self.in_versions::<K>((&scope, scope), versions)
    }

    fn in_versions<K: Resource>(self, kind: (&K::DynamicType, Scope), versions: &[&str]) -> Value {
        let mut properties = json!({ "spec": self.spec });
        if let Some(status) = &self.status {
            properties["status"] = status.clone();
        }
        let versions = versions.iter().map(|name| {
            let mut version = json!({
                "name": name, "served": true, "storage": *name == STORED,
                "additionalPrinterColumns": self.columns,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "required": ["spec"], "properties": properties } },
            });
            if self.status.is_some() {
                version["subresources"] = json!({ "status": {} });
            }
            version
        });
        let versions: Value = versions.collect();
        definition::<K>(kind, &self.short_names, &versions)
    }
}

/// Returns a definition with these versions.
pub(super) fn definition<K: Resource>(
    (kind, scope): (&K::DynamicType, Scope),
    short_names: &Value,
    versions: &Value,
) -> Value {
    let (group, plural, kind) = (K::group(kind), K::plural(kind), K::kind(kind));
    let category = group.split('.').next().unwrap_or_default();
    let mut names = json!({
        "categories": ["fleet", format!("fleet-{category}")],
        "kind": kind, "plural": plural, "singular": kind.to_lowercase(),
    });
    if short_names
        .as_array()
        .is_some_and(|names| !names.is_empty())
    {
        names["shortNames"] = short_names.clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": scope.as_str(), "names": names, "versions": versions },
    })
}
