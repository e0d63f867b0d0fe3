//! The answer of a webhook.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use karmada_api::Component;
use objects::{Mistake, patch};
use serde::Deserialize;
use serde_json::Value;

use super::request::{API_VERSION, KIND};
use crate::customization::fields::text;
use crate::customization::results;
use crate::dependencies::Dependency;
use crate::interpret::Replicas;

/// The answer of a webhook that could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response(Value);

impl Response {
    /// Reads the body of the response to the request `uid`.
    ///
    /// # Errors
    /// Fails if it is not one, or tells of a failure; in Karmada's words.
    pub fn read(uid: &str, body: &[u8]) -> Result<Self, String> {
        let mut context: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the answer is no JSON: {}", Mistake::from(&error)))?;
        let (version, kind) = (text(&context, "apiVersion"), text(&context, "kind"));
        // Servers made with Karmada's own package send neither.
        if !matches!(version, "" | API_VERSION) || !matches!(kind, "" | KIND) {
            return Err(format!(
                "the answer is no {API_VERSION} {KIND}, but a {version} {kind}"
            ));
        }
        let response = context.get_mut("response").map(Value::take);
        let Some(response) = response.filter(Value::is_object) else {
            return Err("webhook response was absent".to_owned());
        };
        let answered = text(&response, "uid");
        if answered != uid {
            return Err(format!("expected response.uid {uid:?}, got {answered:?}"));
        }
        if response.get("successful") == Some(&Value::Bool(true)) {
            return Ok(Self(response));
        }
        let Some(status) = response.get("status").filter(|status| status.is_object()) else {
            let missing = "webhook require response.status when response.successful is false";
            return Err(missing.to_owned());
        };
        let code = status
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let message = text(status, "message");
        Err(format!(
            "webhook call failed, get status code: {code}, msg: {message}"
        ))
    }

    /// Returns the replicas of a template, and the requirements of each.
    ///
    /// # Errors
    /// Fails if they are missing, or none.
    pub fn replicas(&self) -> Result<Replicas, String> {
        let count: i32 = self.required("replicas")?;
        let requirements = self.given("replicaRequirements");
        Ok(Replicas {
            count: Some(count).filter(|count| *count > 0),
            requirements: requirements.map_or(Ok(None), results::requirements)?,
        })
    }

    /// Returns the object that the webhook makes of `object`.
    ///
    /// # Errors
    /// Fails if there is a patch without its type or a type without a patch, or it does not apply.
    pub fn patched(&self, object: &Value) -> Result<Value, String> {
        let patch: String = self.optional("patch")?.unwrap_or_default();
        let kind: Option<String> = self.optional("patchType")?;
        let mut object = object.clone();
        match (patch.as_str(), kind.as_deref()) {
            ("", None) => return Ok(object),
            (_, None) => return Err("webhook returned nil response.patchType".to_owned()),
            ("", Some(_)) => return Err("webhook returned empty response.patch".to_owned()),
            (_, Some("JSONPatch")) => {}
            (_, Some(kind)) => {
                let invalid = "webhook returned invalid response.patchType of";
                return Err(format!("{invalid} {kind:?}"));
            }
        }
        let patch = BASE64_STANDARD.decode(patch);
        let patch = patch.map_err(|error| format!("response.patch is no base64: {error}"))?;
        let patch: json_patch::Patch = serde_json::from_slice(&patch).map_err(|error| {
            format!("response.patch is no JSON patch: {}", Mistake::from(&error))
        })?;
        patch::apply(&patch, &mut object)
            .map_err(|error| format!("response.patch does not apply: {error}"))?;
        results::object(object)
    }

    /// Returns the status that the webhook puts together for `template`; null if it has none.
    ///
    /// # Errors
    /// Fails as [`Self::patched`] does.
    pub fn aggregated(&self, template: &Value) -> Result<Value, String> {
        let mut object = self.patched(template)?;
        Ok(object
            .get_mut("status")
            .map(Value::take)
            .unwrap_or_default())
    }

    /// Returns the components of a template; `None` if it has none.
    ///
    /// # Errors
    /// Fails if they are of another form.
    pub fn components(&self) -> Result<Option<Vec<Component>>, String> {
        let components = self.given("components");
        components.map(results::components).transpose()
    }

    /// Returns the part of an object's status that is reported.
    ///
    /// # Errors
    /// Fails if it is missing.
    pub fn status(&self) -> Result<Value, String> {
        self.required("rawStatus")
    }

    /// Returns `true` if an object is well.
    ///
    /// # Errors
    /// Fails if that is missing.
    pub fn is_healthy(&self) -> Result<bool, String> {
        self.required("healthy")
    }

    /// Returns the references of a template.
    ///
    /// # Errors
    /// Fails if one of them names nothing.
    pub fn dependencies(&self) -> Result<BTreeSet<Dependency>, String> {
        let listed = self.given("dependencies").map(results::dependencies);
        Ok(listed.transpose()?.into_iter().flatten().collect())
    }

    fn given(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn optional<T: for<'de> Deserialize<'de>>(&self, field: &str) -> Result<Option<T>, String> {
        let value = self.given(field).map(T::deserialize);
        let value = value.transpose();
        value.map_err(|error| format!("response.{field}: {}", Mistake::from(&error)))
    }

    fn required<T: for<'de> Deserialize<'de>>(&self, field: &str) -> Result<T, String> {
        let value = self.optional(field)?;
        value.ok_or_else(|| format!("webhook returned nil response.{field}"))
    }
}
