//! `create` and `update`, and the steps common to all writes.

use http::{Response, StatusCode};

use crate::call::Call;
use crate::collector;
use crate::error::ApiError;
use crate::metadata;
use crate::response::Body;
use crate::write::{Write, WriteOptions, WriteOutcome};

pub(super) fn create(call: &Call) -> Result<Response<Body>, ApiError> {
    let options = call.write_options("CreateOptions")?;
    let (object, warnings) = call.object()?;
    if !matches!(metadata::text(&object, "resourceVersion"), "" | "0") {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::of_store(message));
    }
    write(call, &options, warnings, |write| {
        write.create(call.namespace(), object)
    })
}

pub(super) fn update(call: &Call) -> Result<Response<Body>, ApiError> {
    let options = call.write_options("UpdateOptions")?;
    let (object, warnings) = call.object()?;
    call.check_name(&object)?;
    let creates = call.kind.storage.create_on_update && !options.is_status;
    write(call, &options, warnings, |write| {
        if creates && !write.exists(&call.key()) {
            write.create(call.namespace(), object)
        } else {
            write.update(call.namespace(), call.name(), true, |_| Ok(object))
        }
    })
}

/// Performs a write and the collection it triggers, and returns the object. Warnings are sent
/// whether or not the write succeeds.
pub(super) fn write(
    call: &Call,
    options: &WriteOptions,
    warnings: Vec<String>,
    change: impl FnOnce(&mut Write<'_>) -> Result<WriteOutcome, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let mut state = call.server.state();
    let mut write = Write {
        state: &mut state,
        kind: &call.kind,
        options,
        warnings,
    };
    let outcome = change(&mut write);
    let warnings = write.warnings;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Err(error.with_warnings(warnings)),
    };
    // Under the same lock, so that no client sees the state in between.
    collector::settle(&mut state, &options.now)?;
    drop(state);
    Ok(show(call, &outcome, &warnings))
}

fn show(call: &Call, outcome: &WriteOutcome, warnings: &[String]) -> Response<Body> {
    let code = if outcome.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    call.show(code, &outcome.object, warnings)
}
