//! Request bodies in JSON, YAML and Protocol Buffers.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::error::ApiError;
use crate::protobuf;
use crate::repeated;
use crate::response::Body;
use crate::yaml;

/// The limit of one request body, in bytes; that of kube-apiserver.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// The limit for the nesting of objects. Lower than the JSON parser's own, so that every stored
/// object can be read again, also as part of a list.
pub(crate) const MAX_DEPTH: usize = 100;

/// Returns `true` if a value has more levels than `levels`.
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

/// The media type of Protocol Buffers; kube-apiserver has it for built-in kinds only.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Reads a whole body.
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

/// Returns a media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Parses an object in the format of its content type (JSON if there is none), and returns it with
/// the paths of its duplicate fields.
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
    let value = yaml::parse(body).map_err(|error| {
        ApiError::bad_request(format!("error converting YAML to JSON: {error}"))
    })?;
    shallow(value)
}
