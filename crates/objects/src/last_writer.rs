//! The client that last wrote a field, by an object's managed fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

/// Returns the entry of the manager that last wrote one of these `fields` of `parent`, which is `status` for
/// example. The time of an entry is that of its last write to any field.
pub fn last_writer<'a>(
    entries: impl IntoIterator<Item = &'a ManagedFieldsEntry>,
    parent: &str,
    fields: &[&str],
) -> Option<&'a ManagedFieldsEntry> {
    let has = |entry: &&ManagedFieldsEntry| {
        let all = entry.fields_v1.as_ref();
        let parent = all.and_then(|all| all.0.get(format!("f:{parent}")));
        parent.is_some_and(|parent| {
            let mut fields = fields.iter();
            fields.any(|field| parent.get(format!("f:{field}")).is_some())
        })
    };
    let writers = entries.into_iter().filter(has);
    writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
}

/// Returns the manager other than `own` that last wrote one of these `fields` of `parent`.
pub fn rival<'a>(
    entries: &'a [ManagedFieldsEntry],
    own: &str,
    parent: &str,
    fields: &[&str],
) -> Option<&'a str> {
    let others = entries.iter();
    let others = others.filter(|entry| entry.manager.as_deref() != Some(own));
    last_writer(others, parent, fields)?.manager.as_deref()
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
        assert_eq!(rival(&entries, "ours", "status", &["a"]), Some("late"));
        assert_eq!(rival(&entries, "ours", "status", &["c"]), None);
    }
}
