//! Decoding of a body into an object of the kind.

use serde_json::{Value, json};

use super::{FieldValidation, Write};
use crate::body::{MAX_DEPTH, is_deeper};
use crate::error::{ApiError, Cause, Qualified};
use crate::metadata;

impl Write<'_> {
    /// Checks and prunes an object, and fills in its defaults. `is_sent` is `true` for the body of
    /// a request, `false` for the result of a patch.
    pub(super) fn decode(&mut self, mut object: Value, is_sent: bool) -> Result<Value, ApiError> {
        if is_deeper(&object, MAX_DEPTH) {
            let why = format!("the object is nested deeper than {MAX_DEPTH} levels");
            return Err(self.unusable(&why));
        }
        // Go decodes `null` into an empty struct.
        if object.is_null() && !self.kind.custom {
            object = json!({});
        }
        let Value::Object(fields) = &mut object else {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): it is not an object",
                self.kind.kind
            )));
        };
        for (field, expected) in [
            ("apiVersion", self.kind.api_version()),
            ("kind", self.kind.kind.clone()),
        ] {
            match fields.get(field) {
                // The types of built-in kinds follow from the path.
                None if !self.kind.custom => {
                    fields.insert(field.to_owned(), expected.into());
                }
                Some(Value::String(given)) if *given == expected => {}
                given => {
                    let given = given.and_then(Value::as_str).unwrap_or_default();
                    let name = fields.get("metadata").and_then(|of| of["name"].as_str());
                    let name = name.unwrap_or_default();
                    return Err(self.mismatch(name, field, given, &expected, is_sent));
                }
            }
        }
        if !fields
            .get("metadata")
            .is_none_or(|metadata| metadata.is_object() || metadata.is_null())
        {
            return Err(self.unusable("metadata: must be an object"));
        }
        metadata::of(&mut object);
        let unknown = self.kind.schema.prune(&mut object);
        self.warnings.extend(
            unknown
                .iter()
                .map(|field| format!("unknown field {field:?}")),
        );
        match self.options.validation {
            FieldValidation::Warn => {}
            FieldValidation::Ignore => self.warnings.clear(),
            FieldValidation::Strict if self.warnings.is_empty() => {}
            FieldValidation::Strict => {
                let unknown = std::mem::take(&mut self.warnings);
                let why = format!("strict decoding error: {}", unknown.join(", "));
                if is_sent {
                    return Err(self.unusable(&why));
                }
                let cause = Cause::invalid("patch", object.to_string(), &why);
                return Err(ApiError::invalid(Qualified::NOTHING, "", &[cause]));
            }
        }
        self.kind.schema.default(&mut object);
        metadata::of(&mut object);
        Ok(object)
    }

    /// Returns the error for types other than those of the path. For custom resources it is an
    /// invalid field, except for the version of an object in a body.
    fn mismatch(
        &self,
        name: &str,
        field: &str,
        given: &str,
        expected: &str,
        is_sent: bool,
    ) -> ApiError {
        if self.kind.custom && !given.is_empty() && (field == "kind" || !is_sent) {
            let cause = Cause::invalid(field, given, &format!("must be {expected}"));
            let (group, kind) = match field {
                "kind" => (self.kind.group.as_str(), given),
                _ => ("", self.kind.kind.as_str()),
            };
            return ApiError::invalid(Qualified { group, name: kind }, name, &[cause]);
        }
        match field {
            "apiVersion" if !given.is_empty() => ApiError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version \
                 ({expected})"
            )),
            _ if given.is_empty() => ApiError::type_missing(field),
            _ => ApiError::bad_request(format!(
                "{given} in version {:?} cannot be handled as a {expected}: the kind does not match",
                self.kind.version
            )),
        }
    }

    fn unusable(&self, why: &str) -> ApiError {
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}",
            kind = self.kind.kind,
            version = self.kind.version
        ))
    }

    /// Checks that the object fits the Go types. A body that does not is a bad request, the result
    /// of a patch an invalid object.
    pub(super) fn check_readable(&self, object: &Value, is_sent: bool) -> Result<(), ApiError> {
        let causes = self.kind.schema.unreadable(object);
        match &causes[..] {
            [] => Ok(()),
            [cause, ..] if is_sent => Err(self.unusable(&format!(
                "json: cannot unmarshal into {}: {}",
                cause.field, cause.message
            ))),
            causes => self.refuse(object, causes),
        }
    }
}
