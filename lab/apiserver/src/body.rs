//! The bodies of requests: JSON or YAML.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::error::ApiError;
use crate::protobuf;
use crate::repeated;

/// The most a Kubernetes API reads of one body, in bytes.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// How deep objects may be nested. Less than the JSON parser takes, so that whatever is stored can
/// be read, also as part of a list.
pub(crate) const MAX_DEPTH: usize = 100;

/// Whether a value is nested deeper than so many levels.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, left)),
        _ => false,
    }
}

fn shallow(value: Value) -> Result<Value, ApiError> {
    if is_deeper(&value, MAX_DEPTH) {
        let message = format!("the body of the request is nested deeper than {MAX_DEPTH} levels");
        return Err(ApiError::bad_request(message));
    }
    Ok(value)
}

/// The media type of Protocol Buffers, which only built-in kinds have.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Reads a body to its end.
pub(crate) async fn read(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(ApiError::too_large(&format!("limit is {MAX_BODY}")))
        }
        Err(error) => Err(ApiError::bad_request(format!(
            "the body ended early: {error}"
        ))),
    }
}

/// A media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// An object in the format that its content type says; without one, JSON. With it come the paths
/// of the fields that are there twice.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    match media_type(content_type) {
        "" | "application/json" => {
            let (value, repeated) = repeated::read(body).map_err(|error| no_json(&error))?;
            Ok((shallow(value)?, repeated))
        }
        "application/yaml" => Ok((yaml(body)?, Vec::new())),
        PROTOBUF => {
            let object = protobuf::read(body).map_err(|why| {
                ApiError::bad_request(format!("the body of the request cannot be read: {why}"))
            })?;
            Ok((object, Vec::new()))
        }
        _ => Err(ApiError::unsupported_media_type(&[
            "application/json",
            "application/yaml",
        ])),
    }
}

pub(crate) fn json(body: &[u8]) -> Result<Value, ApiError> {
    shallow(serde_json::from_slice(body).map_err(|error| no_json(&error))?)
}

fn no_json(error: &serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("the body of the request is not JSON: {error}"))
}

pub(crate) fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    // JSON is YAML, and this parser has no trouble with any of it.
    if let Ok(value) = serde_json::from_slice(body) {
        return shallow(value);
    }
    let value = serde_saphyr::from_slice(body).map_err(|error| {
        let error = error.to_string();
        let line = error.lines().next().unwrap_or_default();
        ApiError::bad_request(format!("error converting YAML to JSON: {line}"))
    })?;
    shallow(value)
}
