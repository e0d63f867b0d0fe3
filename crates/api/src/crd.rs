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
    [Cluster::crd(), ResourceBinding::crd()]
        .into_iter()
        .map(definition)
        .collect()
}

fn definition(crd: CustomResourceDefinition) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(crd)?;
    make_structural(&mut value);
    Ok(value)
}

/// Removes the parts of a generated schema that an API server must not get: `nullable`, with which it
/// stores a null, or rejects it for an enum, instead of pruning it; and unsigned formats, which it does
/// not know.
fn make_structural(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let unsigned = value.as_str().is_some_and(|v| v.starts_with("uint"));
                !(key == "nullable" && value.is_boolean() || key == "format" && unsigned)
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
        for crd in [installed(), stand_ins()].into_iter().flatten().flatten() {
            assert!(crd["spec"]["names"]["plural"].is_string());
            assert!(!crd.to_string().contains("\"nullable\""), "{crd}");
        }
    }
}
