//! Validation of an object that is to be stored.

use serde_json::Value;

use super::Write;
use crate::error::{ApiError, Cause};
use crate::kinds::{self, Kind};
use crate::metadata::{
    FOREGROUND, ORPHAN, finalizers, has_finalizer, is_standard_finalizer, is_terminating, text,
};
use crate::names;

/// The limit for all annotations of an object together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

impl Write<'_> {
    /// Refuses an invalid object, or one that may not replace `before`.
    pub(super) fn validate(&self, object: &Value, before: Option<&Value>) -> Result<(), ApiError> {
        let mut causes = validate_metadata(self.kind, object);
        if let Some(before) = before {
            causes.extend(validate_change_of_metadata(object, before));
            causes.extend(kinds::validate_change(self.kind, object, before));
        }
        causes.extend(self.kind.schema.validate(object));
        causes.extend(kinds::validate(self.kind, object));
        self.refuse(object, &causes)
    }
}

fn validate_metadata(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (name, generated) = (text(object, "name"), text(object, "generateName"));
    if !generated.is_empty()
        && let Some(why) = kind.storage.names.broken_by_prefix(generated)
    {
        causes.push(Cause::invalid("metadata.generateName", generated, &why));
    }
    if name.is_empty() {
        causes.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = kind.storage.names.broken_by(name) {
        causes.push(Cause::invalid("metadata.name", name, &why));
    }
    validate_owned(object, &mut causes);
    validate_labels(object, &mut causes);
    validate_finalizers(kind, object, &mut causes);
    causes
}

fn validate_finalizers(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    for (index, finalizer) in finalizers(object).enumerate() {
        if let Some(why) = names::qualified_name(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, &why));
        } else if !is_standard_finalizer(finalizer) && !finalizer.contains('/') && kind.is_of_core()
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            causes.push(Cause::invalid(field, finalizer, why));
        }
    }
    if has_finalizer(object, FOREGROUND) && has_finalizer(object, ORPHAN) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        let all = object["metadata"]["finalizers"].clone();
        causes.push(Cause::invalid("metadata.finalizers", all, why));
    }
}

fn validate_labels(object: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
    {
        if let Some(why) = names::qualified_name(key) {
            causes.push(Cause::invalid("metadata.labels", key.as_str(), &why));
        }
        let value = value.as_str().unwrap_or_default();
        if let Some(why) = names::label_value(value) {
            causes.push(Cause::invalid("metadata.labels", value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in object["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
    {
        // Annotation keys, unlike label keys, are compared in lower case (`ValidateAnnotations`).
        if let Some(why) = names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", key.as_str(), &why));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
}

fn validate_owned(object: &Value, causes: &mut Vec<Cause>) {
    const FIELD: &str = "metadata.ownerReferences";
    let all = &object["metadata"]["ownerReferences"];
    let mut controllers = Vec::new();
    for owner in all.as_array().into_iter().flatten() {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::invalid(format!("{FIELD}.{field}"), "", why));
            }
        }
        let [version, kind, name] =
            ["apiVersion", "kind", "name"].map(|field| owner[field].as_str().unwrap_or_default());
        // Events expire by themselves and would take their dependents along (`BannedOwners`).
        if (version, kind) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(FIELD, owner.clone(), why));
        }
        if owner["controller"] == true {
            controllers.push(format!("{kind}/{name}"));
        }
    }
    if let [first, second, ..] = &controllers[..] {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        causes.push(Cause::invalid(FIELD, all.clone(), &why));
    }
}

fn validate_change_of_metadata(object: &Value, before: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["name", "namespace", "uid"] {
        let (new, old) = (text(object, field), text(before, field));
        if new != old {
            causes.push(Cause::invalid(
                format!("metadata.{field}"),
                new,
                "field is immutable",
            ));
        }
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let new = &object["metadata"][field];
        if *new != before["metadata"][field] {
            let field = format!("metadata.{field}");
            causes.push(Cause::invalid(field, new.clone(), "field is immutable"));
        }
    }
    // Deletion must make progress: finalizers of a terminating object can only be removed.
    if is_terminating(before) {
        let known: Vec<&str> = finalizers(before).collect();
        let added: Vec<String> = finalizers(object)
            .filter(|one| !known.contains(one))
            .map(|one| format!("{one:?}"))
            .collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    causes
}
