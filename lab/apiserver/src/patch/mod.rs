//! The four types of patch, each a function of object and patch.

mod managed;
mod paths;
mod strategic;
mod typed;

#[cfg(test)]
mod tests;

use http::StatusCode;
use json_patch::{AddOperation, PatchOperation};
use serde_json::{Value, json};

use crate::body::{MAX_DEPTH, is_deeper};
use crate::error::ApiError;
use crate::schema::Schema;

pub(crate) use self::managed::{Writer, manager_of, record};

/// The limit of bytes that the `copy` operations of one JSON patch may add; that of kube-apiserver.
/// It prevents exponential growth.
const MAX_COPIED: usize = 3 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(crate) enum Patch {
    /// `application/merge-patch+json` (RFC 7396).
    Merge(Value),
    /// `application/json-patch+json` (RFC 6902).
    Json(JsonPatch),
    /// `application/strategic-merge-patch+json`; only for built-in kinds.
    Strategic(Value),
    /// `application/apply-patch+yaml`.
    Apply {
        /// All fields that the manager wants to own.
        configuration: Value,
        manager: String,
        force: bool,
    },
}

/// A JSON patch.
#[derive(Clone, Debug)]
pub(crate) struct JsonPatch {
    pub(crate) operations: json_patch::Patch,
    /// The places of operations whose values have texts in another encoding than that of the stored object: in that of
    /// Go's encoder, `&`, `<` and `>` are escaped. A `test` compares bytes, and never finds such a text.
    pub(crate) encoded_otherwise: Vec<usize>,
}

impl From<json_patch::Patch> for JsonPatch {
    fn from(operations: json_patch::Patch) -> Self {
        Self {
            operations,
            encoded_otherwise: Vec::new(),
        }
    }
}

impl Patch {
    /// Returns the object after the patch. `current` is `None` only for an apply that creates the
    /// object. [`Self::Apply`] updates `metadata.managedFields`; after the others, [`record`] does
    /// so once the object is final. `time` is in RFC 3339, in whole seconds.
    pub(crate) fn apply(
        &self,
        current: Option<&Value>,
        schema: &Schema,
        subresource: Option<&str>,
        time: &str,
    ) -> Result<Value, ApiError> {
        let live = || current.cloned().unwrap_or_default();
        match self {
            Self::Merge(patch) if patch.is_object() => {
                let mut object = live();
                json_patch::merge(&mut object, patch);
                Ok(object)
            }
            Self::Merge(_) => Err(ApiError::bad_request(
                "error decoding patch: a merge patch must be a JSON object",
            )),
            Self::Json(patch) => change(live(), patch),
            Self::Strategic(patch) => strategic::merge(schema.root(), live(), patch),
            Self::Apply {
                configuration,
                manager,
                force,
            } => {
                let writer = Writer {
                    manager,
                    subresource,
                    time,
                };
                managed::apply(current, configuration, schema, writer, *force)
            }
        }
    }
}

/// Applies a JSON patch as kube-apiserver does: unlike RFC 6902, `replace` may name an absent
/// field, and a `test` for null succeeds on one.
fn change(mut object: Value, patch: &JsonPatch) -> Result<Value, ApiError> {
    let mut copied = 0;
    for (place, operation) in patch.operations.0.iter().enumerate() {
        let added = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Move(of) => object.pointer(of.from.as_str()),
            PatchOperation::Copy(of) => object.pointer(of.from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };
        if let Some(added) = added {
            // Checked before each operation: repeated copies could nest an object deeper than any
            // parser reads.
            let levels = MAX_DEPTH.saturating_sub(operation.path().count());
            if is_deeper(added, levels) {
                return Err(unusable());
            }
            if let PatchOperation::Copy(_) = operation {
                copied += added.to_string().len();
            }
        }
        if copied > MAX_COPIED {
            return Err(unusable());
        }
        let operation = match operation {
            PatchOperation::Replace(replace) if is_absent(&object, operation) => {
                let replace = replace.clone();
                PatchOperation::Add(AddOperation {
                    path: replace.path,
                    value: replace.value,
                })
            }
            PatchOperation::Test(test) if test.value.is_null() && is_absent(&object, operation) => {
                continue;
            }
            PatchOperation::Test(_) if patch.encoded_otherwise.contains(&place) => {
                return Err(unusable());
            }
            other => other.clone(),
        };
        json_patch::patch(&mut object, &[operation]).map_err(|_| unusable())?;
    }
    Ok(object)
}

/// Returns `true` if an object could have the field of an operation, and has it not.
fn is_absent(object: &Value, operation: &PatchOperation) -> bool {
    let Some((parent, name)) = operation.path().split_back() else {
        return false;
    };
    let fields = object.pointer(parent.as_str()).and_then(Value::as_object);
    fields.is_some_and(|fields| !fields.contains_key(name.decoded().as_ref()))
}

/// Returns the error for every JSON patch that does not fit the object.
pub(crate) fn unusable() -> ApiError {
    let message = "the server rejected our request due to an error in our request";
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_details(json!({}))
}
