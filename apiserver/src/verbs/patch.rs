//! `patch`.

use axum::body::Body;
use http::Response;
use serde_json::Value;

use super::write;
use crate::body;
use crate::call::Call;
use crate::collector;
use crate::error::{ApiError, Cause};
use crate::metadata;
use crate::patch::Patch;
use crate::write::Write;

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The most operations of a JSON patch.
const MAX_OPERATIONS: usize = 10_000;

pub(super) fn patch(call: &Call) -> Result<Response<Body>, ApiError> {
    let mut options = call.write_options("PatchOptions")?;
    let patch = parse(call)?;
    options.is_apply = matches!(patch, Patch::Apply { .. });
    let subresource = call.path.subresource.as_deref();
    let schema = &call.kind.schema;

    let mut state = call.server.state();
    let is_absent = state.find(&call.kind.collection(), &call.key()).is_none();
    let mut write = Write {
        state: &mut state,
        kind: &call.kind,
        options: &options,
        warnings: Vec::new(),
    };
    let written = if is_absent && options.is_apply && !options.is_status {
        let mut object = patch.apply(None, schema, subresource, &options.now)?;
        if metadata::text(&object, "name").is_empty() {
            metadata::set(&mut object, "name", call.name());
        }
        call.check_name(&object)?;
        write.create(call.namespace(), object)?
    } else {
        write.update(call.namespace(), call.name(), false, |before| {
            let object = patch.apply(Some(before), schema, subresource, &options.now)?;
            call.check_name(&object)?;
            Ok(object)
        })?
    };
    let warnings = write.warnings;
    collector::settle(&mut state, &options.now)?;
    drop(state);
    Ok(write::show(call, &written, &warnings))
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
            let operations: json_patch::Patch = serde_json::from_value(body::json(&call.body)?)
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
            if operations.0.len() > MAX_OPERATIONS {
                return Err(ApiError::too_large(&format!(
                    "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                    operations.0.len()
                )));
            }
            Ok(Patch::Json(operations))
        }
        STRATEGIC if !call.kind.custom => Ok(Patch::Strategic(body::json(&call.body)?)),
        APPLY => apply(call),
        _ if call.kind.custom => Err(ApiError::unsupported_media_type(&[JSON, MERGE, APPLY])),
        _ => Err(ApiError::unsupported_media_type(&[
            JSON, MERGE, STRATEGIC, APPLY,
        ])),
    }
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
