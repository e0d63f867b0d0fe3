//! The `CustomResourceDefinition`s of these kinds, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use objects::schema::{age_column, make_structural, structural};
use serde_json::{Value, json};

use crate::cluster_view::{ClusterViewSpec, ClusterViewStatus};
use crate::customization::CustomizationSpec;
use crate::interpreter_webhook::InterpreterWebhook;
use crate::overrides::OverrideSpec;
use crate::policy::{CONFLICT_ABORT, DEFAULT_SCHEDULER, PropagationSpec};
use crate::rebalancer::{WorkloadRebalancerSpec, WorkloadRebalancerStatus};
use crate::work::{WorkSpec, WorkStatus};
use crate::{
    Cluster, ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding,
    MultiClusterIngress, OverridePolicy, PropagationPolicy, Remedy, ResourceBinding,
    ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration, ServiceExport, Work,
    WorkloadRebalancer,
};

/// Returns the definitions that Karmada has too, with our additions to them.
///
/// # Errors
/// Returns an error if a definition does not serialize, which a test rules out.
pub fn installed() -> serde_json::Result<Vec<Value>> {
    [Remedy::crd(), MultiClusterIngress::crd()]
        .into_iter()
        .map(definition)
        .collect()
}

/// Returns the definitions of the kinds that Karmada serves itself, for a fleet without Karmada: its
/// clusters, policies, bindings and Works, requests to schedule anew, the scripts and webhooks that interpret
/// kinds, and the exports of Services.
///
/// # Errors
/// Returns an error if a definition does not serialize, which a test rules out.
pub fn fleet() -> serde_json::Result<Vec<Value>> {
    let mut definitions = stand_ins()?;
    let [_, namespaced] = &*definitions else {
        return Ok(definitions);
    };
    // Two kinds of one spec: only the names and the scope differ.
    let mut cluster_scoped = namespaced.clone();
    let plural = ClusterResourceBinding::plural(&());
    cluster_scoped["metadata"]["name"] = format!("{plural}.work.karmada.io").into();
    cluster_scoped["spec"]["scope"] = "Cluster".into();
    cluster_scoped["spec"]["names"] = json!({ "categories": ["karmada-io"], "plural": plural,
        "singular": "clusterresourcebinding", "kind": ClusterResourceBinding::KIND,
        "shortNames": ["crb"] });
    definitions.push(cluster_scoped);
    definitions.extend([
        policy::<PropagationPolicy>("Namespaced", "pp", &propagation()),
        policy::<ClusterPropagationPolicy>("Cluster", "cpp", &propagation()),
        policy::<OverridePolicy>("Namespaced", "op", &structural::<OverrideSpec>()),
        policy::<ClusterOverridePolicy>("Cluster", "cop", &structural::<OverrideSpec>()),
        work(),
        rebalancer(),
        customization(),
        interpreter_webhooks(),
        kind_definition::<ServiceExport>("Namespaced", "svcex", json!({}), json!([age_column()])),
    ]);
    Ok(definitions)
}

/// Returns the schema of a propagation policy's spec, with the defaults of Karmada's.
fn propagation() -> Value {
    let mut spec = structural::<PropagationSpec>();
    let fields = &mut spec["properties"];
    fields["conflictResolution"]["default"] = CONFLICT_ABORT.into();
    fields["preemption"]["default"] = "Never".into();
    fields["priority"]["default"] = 0.into();
    fields["schedulerName"]["default"] = DEFAULT_SCHEDULER.into();
    spec
}

fn policy<K: Resource<DynamicType = ()>>(scope: &str, short: &str, spec: &Value) -> Value {
    let columns = json!([
        { "name": "Conflict-Resolution", "type": "string", "jsonPath": ".spec.conflictResolution" },
        { "name": "Priority", "type": "string", "jsonPath": ".spec.priority" },
        age_column(),
    ]);
    kind_definition::<K>(scope, short, json!({ "spec": spec }), columns)
}

fn work() -> Value {
    let applied = ".status.conditions[?(@.type==\"Applied\")].status";
    let columns = json!([
        { "name": "Workload-Kind", "type": "string", "jsonPath": ".spec.workload.manifests[*].kind" },
        { "name": "Applied", "type": "string", "jsonPath": applied },
        age_column(),
    ]);
    let properties =
        json!({ "spec": structural::<WorkSpec>(), "status": structural::<WorkStatus>() });
    kind_definition::<Work>("Namespaced", "wk", properties, columns)
}

fn rebalancer() -> Value {
    let spec = structural::<WorkloadRebalancerSpec>();
    let status = structural::<WorkloadRebalancerStatus>();
    let properties = json!({ "spec": spec, "status": status });
    kind_definition::<WorkloadRebalancer>("Cluster", "", properties, json!([age_column()]))
}

fn customization() -> Value {
    let columns = json!([
        { "name": "TARGET-API-VERSION", "type": "string", "jsonPath": ".spec.target.apiVersion" },
        { "name": "TARGET-KIND", "type": "string", "jsonPath": ".spec.target.kind" },
        age_column(),
    ]);
    let properties = json!({ "spec": structural::<CustomizationSpec>() });
    kind_definition::<ResourceInterpreterCustomization>("Cluster", "ric", properties, columns)
}

fn interpreter_webhooks() -> Value {
    let (webhook, columns) = (structural::<InterpreterWebhook>(), json!([age_column()]));
    let webhooks = json!({ "description": "The webhooks.", "type": "array", "items": webhook });
    let properties = json!({ "webhooks": webhooks });
    kind_definition::<ResourceInterpreterWebhookConfiguration>("Cluster", "", properties, columns)
}

/// Returns the definition of a kind of this crate without a derived schema.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the arguments become parts of the definition"
)]
fn kind_definition<K: Resource<DynamicType = ()>>(
    scope: &str,
    short: &str,
    properties: Value,
    columns: Value,
) -> Value {
    let (group, plural) = (K::group(&()), K::plural(&()));
    let kind = K::kind(&());
    let mut version = json!({
        "name": K::version(&()), "served": true, "storage": true,
        "additionalPrinterColumns": columns,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
    });
    if properties.get("status").is_some() {
        version["subresources"] = json!({ "status": {} });
    }
    let mut names = json!({ "kind": kind, "plural": plural, "singular": kind.to_lowercase() });
    if !short.is_empty() {
        names["shortNames"] = json!([short]);
    }
    if group.ends_with(".karmada.io") {
        names["categories"] = json!(["karmada-io"]);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": scope,
            "names": names,
            "versions": [version],
        },
    })
}

/// Returns the definitions of the two kinds on which health and traffic depend.
///
/// # Errors
/// Returns an error if a definition does not serialize, which a test rules out.
pub fn stand_ins() -> serde_json::Result<Vec<Value>> {
    let definitions = [cluster(), definition(ResourceBinding::crd())].into_iter();
    let lenient = definitions.map(|definition| {
        let mut value = definition?;
        for version in value["spec"]["versions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let root = &mut version["schema"]["openAPIV3Schema"];
            accept_what_go_decodes(&mut root["properties"]);
            root.as_object_mut()
                .and_then(|root| root.remove("required"));
        }
        Ok(value)
    });
    lenient.collect()
}

/// Returns the definition of a cluster, with the fields of its health and those of its view.
fn cluster() -> serde_json::Result<Value> {
    let mut definition = definition(Cluster::crd())?;
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for (part, mut view) in [
        ("spec", structural::<ClusterViewSpec>()),
        ("status", structural::<ClusterViewStatus>()),
    ] {
        let fields = &mut root["properties"][part]["properties"];
        let of_health = fields.take();
        *fields = view["properties"].take();
        for (name, field) in of_health.as_object().into_iter().flatten() {
            fields[name] = field.clone();
        }
    }
    Ok(definition)
}

fn definition(crd: CustomResourceDefinition) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(crd)?;
    make_structural(&mut value);
    Ok(value)
}

/// Makes the schemas of fields as lenient as an API server that decodes JSON into Go types, as Karmada's
/// does: any field may be absent or null, and so may the elements of lists and maps.
fn accept_what_go_decodes(fields: &mut Value) {
    for schema in fields
        .as_object_mut()
        .into_iter()
        .flat_map(|map| map.values_mut())
    {
        accept_nothing_in_its_place(schema);
    }
}

fn accept_nothing_in_its_place(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove("required");
    map.insert("nullable".to_owned(), Value::Bool(true));
    for elements in ["items", "additionalProperties"] {
        if let Some(schema) = map.get_mut(elements) {
            accept_nothing_in_its_place(schema);
        }
    }
    if let Some(fields) = map.get_mut("properties") {
        accept_what_go_decodes(fields);
        // Those of a newer Karmada.
        map.insert(
            "x-kubernetes-preserve-unknown-fields".to_owned(),
            Value::Bool(true),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_no_nullable_members() {
        for crd in installed().unwrap() {
            assert!(crd["spec"]["names"]["plural"].is_string());
            assert!(!crd.to_string().contains("\"nullable\""), "{crd}");
        }
    }

    /// A stand-in for Karmada's definition requires nothing, and accepts null everywhere.
    #[test]
    fn stand_in_requires_nothing() {
        for crd in stand_ins().unwrap() {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert!(!schema.to_string().contains("\"required\""));
            let text = schema["properties"].to_string();
            let of_one_type =
                text.matches("\"type\":").count() - text.matches("\"type\":{").count();
            let schemas = of_one_type + text.matches("int-or-string").count();
            assert_eq!(text.matches("\"nullable\":true").count(), schemas, "{text}");
        }
    }

    /// A Remedy must have every field of a requirement.
    #[test]
    fn requirement_fields_are_required() {
        let crd = &installed().unwrap()[0];
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let entry = &spec["properties"]["decisionMatches"]["items"];
        let requirement = &entry["properties"]["clusterConditionMatch"];
        let required = serde_json::json!(["conditionStatus", "conditionType", "operator"]);
        assert_eq!(requirement["required"], required);
    }
}
