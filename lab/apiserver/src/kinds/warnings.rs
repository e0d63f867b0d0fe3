//! Warnings about accepted writes.

use serde_json::Value;

use super::kind::Kind;
use crate::metadata;
use crate::schema::rules;

/// Returns the warnings about an object that replaces `before`.
pub(crate) fn warnings(kind: &Kind, object: &Value, before: Option<&Value>) -> Vec<String> {
    if kind.custom {
        let known: Vec<&str> = before.into_iter().flat_map(metadata::finalizers).collect();
        return metadata::finalizers(object)
            .filter(|one| !one.contains('/') && !metadata::is_standard_finalizer(one))
            .filter(|one| !known.contains(one))
            .map(|finalizer| {
                format!(
                    "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name to \
                     avoid accidental conflicts with other finalizer writers"
                )
            })
            .collect();
    }
    if kind.is_definition() && before.is_none_or(|before| before["spec"] != object["spec"]) {
        return of_definition(&object["spec"]);
    }
    Vec::new()
}

/// Returns warnings about the features of a definition that this server lacks.
fn of_definition(spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if spec["conversion"]["strategy"] == "Webhook" {
        warnings.push("spec.conversion: this server calls no webhook".to_owned());
    }
    let versions = spec["versions"].as_array().into_iter().flatten();
    for (index, version) in versions.enumerate() {
        if rules::has_unknown(&version["schema"]) {
            warnings.push(format!(
                "spec.versions[{index}].schema: this server does not evaluate all x-kubernetes-validations"
            ));
        }
    }
    warnings
}
