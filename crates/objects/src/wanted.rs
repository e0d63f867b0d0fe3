//! The effect of a write: by that it is known again where another client undoes it.

use serde_json::{Value, json};

use crate::patch::JsonPatch;

/// The effect of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The fields as they will be. The same write has the same value, whatever the object's version.
    pub value: Value,
    /// The fields, as JSON pointers (RFC 6901).
    pub paths: Vec<String>,
}

impl Wanted {
    /// Creates the effect of a creation.
    pub fn created(value: Value) -> Self {
        Self {
            value,
            paths: Vec::new(),
        }
    }

    /// Creates the effect of a patch. Fields with one of the names `incidental` are left out: they are others each
    /// time.
    pub fn patched(patch: &JsonPatch, incidental: &[&str]) -> Self {
        let (mut value, mut paths) = (Vec::new(), Vec::new());
        for operation in patch.operations() {
            let field = operation.path();
            let last = field.last().map(|last| last.decoded().into_owned());
            let last = last.unwrap_or_default();
            if incidental.contains(&last.as_str()) {
                continue;
            }
            let mut operation = json!(operation);
            if let Some(Value::Object(fields)) = operation.get_mut("value") {
                fields.retain(|name, _| !incidental.contains(&name.as_str()));
            }
            value.push(operation);
            paths.push(field.to_string());
        }
        Self {
            value: value.into(),
            paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same write counts its generation, in a map that is there or not.
    #[test]
    fn incidental_fields_make_no_difference() {
        let [one, other] = [1, 2].map(|generation| {
            let mut patch = JsonPatch::default();
            patch.add(["metadata", "annotations", "count/er"], json!(generation));
            patch.add(
                ["metadata", "labels"],
                json!({ "count/er": generation, "a": "b" }),
            );
            patch.add(["spec", "workload"], json!({ "manifests": [] }));
            Wanted::patched(&patch, &["count/er"])
        });
        assert_eq!(one.value, other.value);
        assert_eq!(one.paths, ["/metadata/labels", "/spec/workload"]);
    }
}
