//! What a write brings about: by that it is known again where another client undoes it.

use serde_json::{Value, json};

use crate::patch::JsonPatch;

/// What a write brings about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The fields as they will be. The same write has the same value, whatever the object's version.
    pub value: Value,
    /// The version of the object that it replaces; `None` for a creation.
    pub replaced: Option<String>,
    /// The fields, as JSON pointers (RFC 6901).
    pub paths: Vec<String>,
}

impl Wanted {
    /// Creates what a creation brings about.
    pub fn created(value: Value) -> Self {
        Self {
            value,
            replaced: None,
            paths: Vec::new(),
        }
    }

    /// Creates what a patch brings about. Fields with one of the names `incidental` are left out: they are others each
    /// time.
    pub fn patched(patch: &JsonPatch, incidental: &[&str]) -> Self {
        const VERSION: [&str; 2] = ["metadata", "resourceVersion"];
        let (mut value, mut paths) = (Vec::new(), Vec::new());
        for operation in patch.operations() {
            let field = operation.path();
            let last = field.last().map(|last| last.decoded().into_owned());
            let last = last.unwrap_or_default();
            if last == VERSION[1] || incidental.contains(&last.as_str()) {
                continue;
            }
            let mut operation = json!(operation);
            if let Some(Value::Object(fields)) = operation.get_mut("value") {
                fields.retain(|name, _| !incidental.contains(&name.as_str()));
            }
            value.push(operation);
            paths.push(field.to_string());
        }
        let replaced = patch.value(VERSION).and_then(Value::as_str);
        Self {
            value: value.into(),
            replaced: replaced.map(str::to_owned),
            paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same write is made at each version, and counts its generation, in a map that is there or not.
    #[test]
    fn incidental_fields_make_no_difference() {
        let write = |version, generation| {
            let mut patch = JsonPatch::default();
            patch.add(["metadata", "annotations", "count/er"], json!(generation));
            patch.add(
                ["metadata", "labels"],
                json!({ "count/er": generation, "a": "b" }),
            );
            patch.add(["spec", "workload"], json!({ "manifests": [] }));
            Wanted::patched(&patch.guarded(Some(version)), &["count/er"])
        };
        let (one, other) = (write("1", 1), write("2", 2));
        assert_eq!(one.value, other.value);
        assert_eq!(one.paths, ["/metadata/labels", "/spec/workload"]);
        assert_eq!(other.replaced.as_deref(), Some("2"));
    }
}
