//! The answers that scripts and webhooks may give. No error quotes a value of it, which may be one of a Secret.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, Toleration};
use karmada_api::Component;
use objects::Mistake;
use objects::lenient::nullable;
use objects::quantity::Quantity;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dependencies::{Dependency, Labels};

/// A component as it must be: one that is stored is read leniently.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Part {
    name: String,
    replicas: i32,
    replica_requirements: Option<Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Requirements {
    #[serde(
        skip_serializing_if = "NodeClaim::is_empty",
        default,
        deserialize_with = "nullable"
    )]
    node_claim: NodeClaim,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_class_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_request: Option<BTreeMap<String, Value>>,
}

#[derive(Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeClaim {
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_node_affinity: Option<NodeSelector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_selector: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerations: Option<Vec<Toleration>>,
}

impl NodeClaim {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a typed result. Fields that the type does not have are ignored.
fn read<T: DeserializeOwned>(json: &Value) -> Result<T, String> {
    T::deserialize(json).map_err(|error| format!("can not unmarshal it: {}", Mistake::from(&error)))
}

/// Reads the requirements of each replica, as a binding has them; `None` if there are none.
///
/// # Errors
/// Fails if it is of another form, or an amount is no quantity.
pub fn requirements(json: &Value) -> Result<Option<Value>, String> {
    let mut requirements: Requirements = read(json)?;
    for (name, amount) in requirements.resource_request.iter_mut().flatten() {
        let text = match &*amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(format!("can not unmarshal it: resourceRequest.{name}")),
        };
        if Quantity::parse(&text).is_none() {
            return Err(format!("resourceRequest.{name} is not a quantity"));
        }
        *amount = text.into();
    }
    let json = json!(requirements);
    Ok(Some(json).filter(|json| *json != json!({})))
}

/// Reads the components of a template.
///
/// # Errors
/// Fails if they are of another form.
pub fn components(json: &Value) -> Result<Vec<Component>, String> {
    let parts: Vec<Part> = read(json)?;
    let components = parts.into_iter().map(|part| {
        let needs = part.replica_requirements.as_ref().map(requirements);
        Ok(Component {
            name: part.name,
            replicas: part.replicas,
            replica_requirements: needs.transpose()?.flatten(),
        })
    });
    components.collect()
}

/// Reads the objects that a template refers to.
///
/// # Errors
/// Fails if one of them names nothing.
pub fn dependencies(json: &Value) -> Result<Vec<Dependency>, String> {
    let dependencies: Vec<Dependency> = read(json)?;
    for (place, one) in dependencies.iter().enumerate() {
        let selects = one.label_selector.as_ref().is_some_and(Labels::is_valid);
        let missing = if one.api_version.is_empty() {
            "apiVersion is required"
        } else if one.kind.is_empty() {
            "kind is required"
        } else if one.name.is_empty() && !selects {
            "name or a valid labelSelector is required"
        } else {
            continue;
        };
        return Err(format!("dependencies[{place}]: {missing}"));
    }
    Ok(dependencies)
}

/// Checks an object that was answered whole.
///
/// # Errors
/// Fails if it has no kind.
pub fn object(json: Value) -> Result<Value, String> {
    if objects::kind(&json).is_empty() {
        return Err("Object 'Kind' is missing in the result".to_owned());
    }
    Ok(json)
}
