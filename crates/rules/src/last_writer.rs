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
