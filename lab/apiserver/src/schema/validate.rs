//! Validation with the `jsonschema` crate, and the messages of a Kubernetes API.

use std::fmt::Write as _;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::formats;
use crate::error::Cause;

/// Compiles a schema translated by [`super::translate`].
pub(super) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(Draft::Draft7)
        // The `regex` crate shares syntax and linear time with Go's RE2.
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .with_format("cidr", formats::is_cidr)
        .with_format("mac", formats::is_mac)
        .with_format("duration", formats::is_duration)
        .with_format("byte", formats::is_base64)
        .with_format("uuid", formats::is_uuid)
        .build(schema)
        .map_err(|error| format!("openAPIV3Schema{}: {error}", field(&error, ".")))
}

/// Validates an object, and returns the causes if it is invalid.
pub(super) fn causes(validator: &Validator, object: &Value) -> Vec<Cause> {
    validator
        .iter_errors(object)
        .flat_map(|error| explain(&error))
        .collect()
}

/// Returns the causes about types and formats only. Built-in kinds bound numbers only by their size
/// in Go, and strings only where Go parses a time.
pub(super) fn mistyped(validator: &Validator, object: &Value) -> Vec<Cause> {
    validator
        .iter_errors(object)
        .filter(is_about_type)
        .flat_map(|error| explain(&error))
        .collect()
}

fn is_about_type(error: &ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        ValidationErrorKind::Type { .. }
            | ValidationErrorKind::Format { .. }
            | ValidationErrorKind::Pattern { .. }
            | ValidationErrorKind::Minimum { .. }
            | ValidationErrorKind::Maximum { .. }
    )
}

fn explain(error: &ValidationError<'_>) -> Vec<Cause> {
    let field = field(error, "");
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let field = if field.is_empty() {
                name.to_owned()
            } else {
                format!("{field}.{name}")
            };
            vec![Cause {
                reason: "FieldValueRequired",
                message: "Required value".to_owned(),
                field,
            }]
        }
        ValidationErrorKind::AnyOf { context } => combined(
            &field,
            "must validate at least one schema (anyOf)",
            nearest(context),
        ),
        ValidationErrorKind::OneOfNotValid { context } => {
            let text = "must validate one and only one schema (oneOf). Found none valid";
            combined(&field, text, nearest(context))
        }
        ValidationErrorKind::OneOfMultipleValid { context } => {
            let count = context.iter().filter(|errors| errors.is_empty()).count();
            let text = "must validate one and only one schema (oneOf). Found";
            combined(
                &field,
                &format!("{text} {count} valid alternatives"),
                Vec::new(),
            )
        }
        ValidationErrorKind::Not { .. } => {
            combined(&field, "must not validate the schema (not)", Vec::new())
        }
        kind => {
            let (reason, message) = worded(kind, error.instance(), &field);
            vec![Cause {
                reason,
                message,
                field,
            }]
        }
    }
}

/// Returns the causes of an error of combined schemas, which belongs to no field and names it in its text.
fn combined(field: &str, text: &str, more: Vec<Cause>) -> Vec<Cause> {
    let cause = Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: \"\": \"{field}\" {text}"),
        field: "<nil>".to_owned(),
    };
    [vec![cause], more].concat()
}

/// Returns the causes of the closest alternative, the only ones that go-openapi lists.
fn nearest(alternatives: &[Vec<ValidationError<'static>>]) -> Vec<Cause> {
    let nearest = alternatives.iter().min_by_key(|errors| errors.len());
    nearest.into_iter().flatten().flat_map(explain).collect()
}

/// Returns the reason and message of an error about one value.
fn worded(kind: &ValidationErrorKind, value: &Value, field: &str) -> (&'static str, String) {
    let shown = shown(value);
    match kind {
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options
                .as_array()
                .into_iter()
                .flatten()
                .map(quoted)
                .collect();
            let options = options.join(", ");
            let message = format!("Unsupported value: {shown}: supported values: {options}");
            ("FieldValueNotSupported", message)
        }
        ValidationErrorKind::Type { kind } => {
            let found = type_name(value);
            let text = format!(
                "{field} in body must be of type {}: \"{found}\"",
                expected(kind)
            );
            (
                "FieldValueTypeInvalid",
                format!("Invalid value: \"{found}\": {text}"),
            )
        }
        ValidationErrorKind::Format { format } => {
            let text = format!("{field} in body must be of type {format}: {shown}");
            (
                "FieldValueTypeInvalid",
                format!("Invalid value: {shown}: {text}"),
            )
        }
        // kube-apiserver counts characters, yet its message names bytes.
        ValidationErrorKind::MaxLength { limit } => (
            "FieldValueTooLong",
            format!("Too long: may not be more than {limit} bytes"),
        ),
        ValidationErrorKind::MaxItems { limit } | ValidationErrorKind::MaxProperties { limit } => {
            let text = format!("Too many: {}: must have at most {limit} items", size(value));
            ("FieldValueTooMany", text)
        }
        ValidationErrorKind::MinItems { .. } | ValidationErrorKind::MinProperties { .. } => {
            let text = format!(
                "Invalid value: {}: {field} in body {}",
                size(value),
                limit(kind)
            );
            ("FieldValueInvalid", text)
        }
        kind => (
            "FieldValueInvalid",
            format!("Invalid value: {shown}: {field} in body {}", limit(kind)),
        ),
    }
}

/// Returns the limit that a value exceeds.
fn limit(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::MinItems { limit } => format!("should have at least {limit} items"),
        ValidationErrorKind::MinProperties { limit } => {
            format!("should have at least {limit} properties")
        }
        ValidationErrorKind::MinLength { limit } => {
            format!("should be at least {limit} chars long")
        }
        ValidationErrorKind::Pattern { pattern } => format!("should match '{pattern}'"),
        ValidationErrorKind::Minimum { limit } => {
            format!("should be greater than or equal to {limit}")
        }
        ValidationErrorKind::Maximum { limit } => {
            format!("should be less than or equal to {limit}")
        }
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            format!("should be greater than {limit}")
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("should be less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("should be a multiple of {multiple_of}")
        }
        ValidationErrorKind::UniqueItems => "shouldn't contain duplicates".to_owned(),
        other => format!("does not satisfy `{}`", other.keyword()),
    }
}

fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            let names = kinds.iter().map(|kind| kind.to_string());
            names
                .filter(|name| name != "null")
                .collect::<Vec<_>>()
                .join(",")
        }
    }
}

fn size(value: &Value) -> usize {
    value
        .as_array()
        .map(Vec::len)
        .or_else(|| value.as_object().map(serde_json::Map::len))
        .unwrap_or_default()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Formats a value in a message. Go quotes printable strings as JSON does.
pub(super) fn shown(value: &Value) -> String {
    value.to_string()
}

fn quoted(option: &Value) -> String {
    match option {
        Value::String(_) => option.to_string(),
        other => format!("\"{other}\""),
    }
}

/// Returns the path of the field that an error is about: `spec.rules[0].host`.
fn field(error: &ValidationError<'_>, start: &str) -> String {
    let mut path = start.to_owned();
    for segment in error.instance_path().segments() {
        match segment {
            LocationSegment::Property(name) => {
                if !path.is_empty() && !path.ends_with('.') {
                    path.push('.');
                }
                path.push_str(&name);
            }
            LocationSegment::Index(index) => {
                // Writing to a `String` cannot fail.
                _ = write!(path, "[{index}]");
            }
        }
    }
    path
}
