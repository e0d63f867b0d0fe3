//! The client that last wrote a field, by an object's managed fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde::Deserialize;
use serde_json::Value;

use crate::metadata;

/// Returns the entry of the manager that last wrote one of these `fields` of `parent`, which is `status` for
/// example. The time of an entry is that of its last write to any field.
pub fn last_writer<'a>(
    entries: impl IntoIterator<Item = &'a ManagedFieldsEntry>,
    parent: &str,
    fields: &[&str],
) -> Option<&'a ManagedFieldsEntry> {
    let writers = entries.into_iter().filter(|entry| {
        let all = entry.fields_v1.as_ref();
        let parent = all.and_then(|all| all.0.get(format!("f:{parent}")));
        parent.is_some_and(|parent| {
            let mut fields = fields.iter();
            fields.any(|field| parent.get(format!("f:{field}")).is_some())
        })
    });
    newest(writers)
}

fn newest<'a>(
    writers: impl Iterator<Item = &'a ManagedFieldsEntry>,
) -> Option<&'a ManagedFieldsEntry> {
    writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
}

/// Returns the manager other than `own` that last wrote one of the fields at these `paths`, which are JSON pointers
/// (RFC 6901). Of a list whose elements are known by keys, each element counts.
pub fn rival_at<'a>(
    entries: &'a [ManagedFieldsEntry],
    own: &str,
    paths: &[String],
) -> Option<&'a str> {
    let rivals = entries.iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        let is_other = entry.manager.as_deref() != Some(own);
        is_other && fields.is_some_and(|fields| paths.iter().any(|path| owns(&fields.0, path)))
    });
    newest(rivals)?.manager.as_deref()
}

/// Does the same for an object with its managed fields.
pub fn rival_in(object: &Value, own: &str, paths: &[String]) -> Option<String> {
    let entries = metadata::field(object, "managedFields")?;
    let entries = Vec::<ManagedFieldsEntry>::deserialize(entries).ok()?;
    rival_at(&entries, own, paths).map(str::to_owned)
}

fn owns(fields: &Value, path: &str) -> bool {
    let mut part = fields;
    for token in path.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let Some(next) = part.get(format!("f:{name}")) else {
            // A value that is written as a whole has no parts, and a list has elements.
            let parts = part.as_object().filter(|_| !std::ptr::eq(part, fields));
            return parts.is_some_and(|parts| !parts.keys().any(|key| key.starts_with("f:")));
        };
        part = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// The rival is the other manager that last wrote one of the fields.
    #[test]
    fn rival_wrote_last() {
        let entries: Vec<ManagedFieldsEntry> = from_value(json!([
            { "manager": "ours", "time": "2026-01-04T00:00:00Z",
              "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "early", "time": "2026-01-01T00:00:00Z",
              "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "late", "time": "2026-01-02T00:00:00Z",
              "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "elsewhere", "time": "2026-01-03T00:00:00Z",
              "fieldsV1": { "f:status": { "f:b": {} } } },
        ]))
        .unwrap();
        for (path, expected) in [("/status/a", Some("late")), ("/status/c", None)] {
            assert_eq!(rival_at(&entries, "ours", &[path.to_owned()]), expected);
        }
    }

    /// The rival wrote one of the fields that differ, be it a whole value, an element of a list, or a label; who wrote
    /// beside them is none.
    #[test]
    fn rival_wrote_at_path() {
        let entries: Vec<ManagedFieldsEntry> = from_value(json!([
            { "manager": "ours", "time": "2026-01-04T00:00:00Z",
              "fieldsV1": { "f:spec": { "f:replicas": {} } } },
            { "manager": "scaler", "time": "2026-01-01T00:00:00Z", "subresource": "scale",
              "fieldsV1": { "f:spec": { "f:replicas": {} } } },
            { "manager": "injector", "time": "2026-01-02T00:00:00Z", "fieldsV1": { "f:spec": {
                "f:containers": { "k:{\"name\":\"a\"}": { ".": {}, "f:image": {} } },
                "f:workload": { "f:manifests": {} } } } },
            { "manager": "labeler", "time": "2026-01-03T00:00:00Z",
              "fieldsV1": { "f:metadata": { "f:labels": { ".": {}, "f:a/b": {} } } } },
        ]))
        .unwrap();
        for (path, expected) in [
            ("/spec/replicas", Some("scaler")),
            ("/spec/containers/0/image", Some("injector")),
            ("/spec/workload/manifests/0/data", Some("injector")),
            ("/metadata/labels/a~1b", Some("labeler")),
            ("/metadata/labels/c", None),
            ("/spec/paused", None),
        ] {
            assert_eq!(rival_at(&entries, "ours", &[path.to_owned()]), expected);
        }
    }
}
