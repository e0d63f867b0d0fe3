//! `create` and `update`.

use axum::body::Body;
use http::{Response, StatusCode};

use crate::call::Call;
use crate::collector;
use crate::error::ApiError;
use crate::metadata;
use crate::write::{Write, Written};

pub(super) fn create(call: &Call) -> Result<Response<Body>, ApiError> {
    let options = call.write_options("CreateOptions")?;
    let (object, warnings) = call.object()?;
    if !matches!(metadata::text(&object, "resourceVersion"), "" | "0") {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::of_store(message));
    }
    let mut state = call.server.state();
    let mut write = Write {
        state: &mut state,
        kind: &call.kind,
        options: &options,
        warnings,
    };
    let written = write.create(call.namespace(), object)?;
    let warnings = write.warnings;
    collector::settle(&mut state, &options.now)?;
    drop(state);
    Ok(show(call, &written, &warnings))
}

pub(super) fn update(call: &Call) -> Result<Response<Body>, ApiError> {
    let options = call.write_options("UpdateOptions")?;
    let (object, warnings) = call.object()?;
    call.check_name(&object)?;
    let mut state = call.server.state();
    let is_absent = state.find(&call.kind.collection(), &call.key()).is_none();
    let mut write = Write {
        state: &mut state,
        kind: &call.kind,
        options: &options,
        warnings,
    };
    let creates = call.kind.storage.create_on_update && !options.is_status;
    let written = if is_absent && creates {
        write.create(call.namespace(), object)?
    } else {
        write.update(call.namespace(), call.name(), true, |_| Ok(object))?
    };
    let warnings = write.warnings;
    collector::settle(&mut state, &options.now)?;
    drop(state);
    Ok(show(call, &written, &warnings))
}

pub(super) fn show(call: &Call, written: &Written, warnings: &[String]) -> Response<Body> {
    let code = if written.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    call.show(code, &written.object, warnings)
}
