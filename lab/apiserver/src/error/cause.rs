//! Causes of invalid objects.

use serde_json::Value;

/// A `StatusCause`: one invalid field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired` and similar.
    pub(crate) reason: &'static str,
    /// The human-readable description.
    pub(crate) message: String,
    /// The path of the field: `spec.rules[0].host`.
    pub(crate) field: String,
}

impl Cause {
    /// Creates the cause for a value that is not allowed.
    pub(crate) fn invalid(field: impl Into<String>, value: impl Into<Value>, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {why}", value.into()),
            field: field.into(),
        }
    }

    /// Creates the cause for a value that is not one of the supported ones.
    pub(crate) fn unsupported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        Self {
            reason: "FieldValueNotSupported",
            message: format!(
                "Unsupported value: {}: supported values: {}",
                value.into(),
                supported.join(", ")
            ),
            field: field.into(),
        }
    }

    /// Creates the cause for a value that exceeds `most` bytes.
    pub(crate) fn too_long(field: impl Into<String>, most: usize) -> Self {
        Self {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {most} bytes"),
            field: field.into(),
        }
    }

    /// Creates the cause for a field that must not be set.
    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {why}"),
            field: field.into(),
        }
    }

    /// Creates the cause for a required field that is not set.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        Self {
            reason: "FieldValueRequired",
            message: if why.is_empty() {
                "Required value".to_owned()
            } else {
                format!("Required value: {why}")
            },
            field: field.into(),
        }
    }
}
