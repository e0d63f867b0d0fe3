//! The `CustomResourceDefinition`s of these kinds, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{Cluster, MultiClusterIngress, Remedy, ResourceBinding};

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

/// Returns the definitions of kinds that Karmada serves itself, for a plain API server that stands in for
/// it in tests.
///
/// # Errors
/// Returns an error if a definition does not serialize, which a test rules out.
pub fn stand_ins() -> serde_json::Result<Vec<Value>> {
    let crds = [Cluster::crd(), ResourceBinding::crd()].into_iter();
    let lenient = crds.map(|crd| {
        let mut value = definition(crd)?;
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

fn definition(crd: CustomResourceDefinition) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(crd)?;
    make_structural(&mut value);
    Ok(value)
}

/// Makes the schemas of fields as lenient as an API server that decodes JSON into Go types, as Karmada's
/// does: any field may be absent or null, and so may list elements.
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
    if let Some(items) = map.get_mut("items") {
        accept_nothing_in_its_place(items);
    }
    if let Some(fields) = map.get_mut("properties") {
        accept_what_go_decodes(fields);
    }
}

/// Removes the parts of a generated schema that an API server must not get: `nullable`, with which it
/// stores a null, or rejects it for an enum, instead of pruning it; unsigned formats, which it does not
/// know; and defaults, with which it would fill in what a reader takes for absent.
fn make_structural(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let unsigned = value.as_str().is_some_and(|v| v.starts_with("uint"));
                let nullable = key == "nullable" && value.is_boolean();
                !(nullable || key == "default" || key == "format" && unsigned)
            });
            map.values_mut().for_each(make_structural);
        }
        Value::Array(list) => list.iter_mut().for_each(make_structural),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_made_without_nullable_members() {
        for crd in installed().unwrap() {
            assert!(crd["spec"]["names"]["plural"].is_string());
            assert!(!crd.to_string().contains("\"nullable\""), "{crd}");
        }
    }

    #[test]
    fn a_stand_in_requires_nothing_and_accepts_null_everywhere() {
        for crd in stand_ins().unwrap() {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert!(!schema.to_string().contains("\"required\""));
            let text = schema["properties"].to_string();
            let schemas = text.matches("\"type\":").count() - text.matches("\"type\":{").count();
            assert_eq!(text.matches("\"nullable\":true").count(), schemas, "{text}");
        }
    }

    #[test]
    fn a_remedy_must_have_every_field_of_a_requirement() {
        let crd = &installed().unwrap()[0];
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let entry = &spec["properties"]["decisionMatches"]["items"];
        let requirement = &entry["properties"]["clusterConditionMatch"];
        let required = serde_json::json!(["conditionStatus", "conditionType", "operator"]);
        assert_eq!(requirement["required"], required);
    }
}
