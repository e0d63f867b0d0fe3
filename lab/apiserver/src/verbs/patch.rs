//! `patch`.

use http::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::write;
use crate::body::{self, APPLY};
use crate::call::Call;
use crate::error::{ApiError, Cause};
use crate::patch::{JsonPatch, Patch, unusable};
use crate::response::Body;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The limit of operations in one JSON patch; that of kube-apiserver.
const MAX_OPERATIONS: usize = 10_000;

pub(super) fn patch(call: &Call) -> Result<Response<Body>, ApiError> {
    let mut options = call.write_options("PatchOptions")?;
    let patch = parse(call)?;
    options.is_apply = matches!(patch, Patch::Apply { .. });
    let subresource = call.path.subresource.as_deref();
    let schema = &call.kind.schema;

    write::write(call, &options, Vec::new(), |write| {
        let applied = |before: Option<&Value>| {
            let object = patch.apply(before, schema, subresource, &options.now)?;
            call.check_name(&object)?;
            Ok(object)
        };
        // Of all patches, only an apply creates, and never through a subresource.
        if options.is_apply && !options.is_status && !write.exists(&call.key()) {
            write.create(call.namespace(), applied(None)?)
        } else {
            write.update(call.namespace(), call.name(), false, |before| {
                applied(Some(before))
            })
        }
    })
}

fn parse(call: &Call) -> Result<Patch, ApiError> {
    let media_type = body::media_type(&call.content_type);
    let has_force = call.query.choice("force").is_some();
    if has_force && media_type != APPLY {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        return Err(ApiError::invalid_options("PatchOptions", &[cause]));
    }
    match media_type {
        MERGE => Ok(Patch::Merge(body::json(&call.body)?)),
        JSON => {
            // In two steps: a body that is not a list of objects is a bad request (400), an unknown
            // operation is invalid (422).
            let operations: Vec<Map<String, Value>> =
                serde_json::from_value(body::json(&call.body)?).map_err(|error| {
                    ApiError::bad_request(format!("error decoding patch: {error}"))
                })?;
            let operations = operations.into_iter().map(Value::Object).collect();
            let operations: json_patch::Patch =
                serde_json::from_value(operations).map_err(|_| unusable())?;
            if operations.0.len() > MAX_OPERATIONS {
                return Err(ApiError::too_large(&format!(
                    "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                    operations.0.len()
                )));
            }
            Ok(Patch::Json(JsonPatch {
                operations,
                encoded_otherwise: encoded_otherwise(&call.body),
            }))
        }
        STRATEGIC if !call.kind.custom => Ok(Patch::Strategic(body::json(&call.body)?)),
        APPLY => apply(call),
        _ if call.kind.custom => Err(ApiError::unsupported_media_type(&[JSON, MERGE, APPLY])),
        _ => Err(ApiError::unsupported_media_type(&[
            JSON, MERGE, STRATEGIC, APPLY,
        ])),
    }
}

/// Returns the places of operations whose values have a character that Go's encoder escapes.
fn encoded_otherwise(operations: &[u8]) -> Vec<usize> {
    #[derive(Deserialize)]
    struct Operation<'o> {
        #[serde(borrow)]
        value: Option<&'o RawValue>,
    }
    let operations: Vec<Operation<'_>> = serde_json::from_slice(operations).unwrap_or_default();
    let operations = operations.iter().enumerate();
    let otherwise = operations.filter(|(_, operation)| {
        let escaped = ['&', '<', '>', '\u{2028}', '\u{2029}'];
        operation
            .value
            .is_some_and(|value| value.get().contains(escaped))
    });
    otherwise.map(|(place, _)| place).collect()
}

fn apply(call: &Call) -> Result<Patch, ApiError> {
    let Some(manager) = call.query.text("fieldManager") else {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid_options("PatchOptions", &[cause]));
    };
    let configuration: Value = body::yaml(&call.body)?;
    if !configuration.is_object() {
        return Err(ApiError::bad_request(
            "error decoding YAML: an applied configuration must be an object",
        ));
    }
    for field in ["kind", "apiVersion"] {
        if configuration[field].as_str().unwrap_or_default().is_empty() {
            return Err(ApiError::type_missing(field));
        }
    }
    Ok(Patch::Apply {
        configuration,
        manager: manager.to_owned(),
        force: call.query.flag("force"),
    })
}
