//! The definitions of these kinds, made from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{Cluster, MultiClusterIngress, Remedy, ResourceBinding};

/// The kinds that are installed on a Karmada control plane.
///
/// # Errors
/// When a definition does not serialize, which a test rules out.
pub fn installed() -> serde_json::Result<Vec<Value>> {
    [Remedy::crd(), MultiClusterIngress::crd()]
        .into_iter()
        .map(definition)
        .collect()
}

/// The kinds that a Karmada serves itself, for a plain API server to stand in for it in tests.
///
/// # Errors
/// When a definition does not serialize, which a test rules out.
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

/// Removes what Rust's types say and an API server has no use for: `nullable`, with which a null is
/// stored or, for an enum, refused, where without it a null is pruned; and unsigned formats, which
/// it does not know.
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
