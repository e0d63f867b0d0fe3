//! From what a client sent to an object of the kind.

use serde_json::Value;

use super::{FieldValidation, Write};
use crate::body::{MAX_DEPTH, is_deeper};
use crate::error::ApiError;
use crate::metadata;

impl Write<'_> {
    /// What the client sent, as an object of the kind: checked, pruned and with its defaults.
    pub(super) fn decode(&mut self, mut object: Value) -> Result<Value, ApiError> {
        if is_deeper(&object, MAX_DEPTH) {
            let why = format!("the object is nested deeper than {MAX_DEPTH} levels");
            return Err(self.unusable(&why));
        }
        let Value::Object(fields) = &mut object else {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): it is not an object",
                self.kind.kind
            )));
        };
        for (field, expected) in [
            ("kind", self.kind.kind.clone()),
            ("apiVersion", self.kind.api_version()),
        ] {
            match fields.get(field) {
                // Types that are built in follow from the path.
                None if !self.kind.custom => {
                    fields.insert(field.to_owned(), expected.into());
                }
                Some(Value::String(given)) if *given == expected => {}
                given => return Err(self.mismatch(field, given, &expected)),
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
                let why = format!("strict decoding error: {}", self.warnings.join(", "));
                return Err(self.unusable(&why));
            }
        }
        self.kind.schema.default(&mut object);
        metadata::of(&mut object);
        Ok(object)
    }

    fn mismatch(&self, field: &str, given: Option<&Value>, expected: &str) -> ApiError {
        let given = given.and_then(Value::as_str).unwrap_or_default();
        match (field, given) {
            (_, "") => ApiError::type_missing(field),
            ("apiVersion", given) => ApiError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version \
                 ({expected})"
            )),
            (_, given) => ApiError::bad_request(format!(
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

    /// What cannot be read at all is no invalid object but a bad request, unless a patch made it so.
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
