//! The clients that last wrote a field, by an object's managed fields.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;
use kube::{Api, Resource};
use objects::last_writer::last_writer;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::lists::list_each_metadata;

/// Reads the metadata of the objects of `api`, with their managed fields.
pub(crate) async fn metadata<K>(api: &Api<K>) -> Result<Vec<ObjectMeta>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut found = Vec::new();
    let read = list_each_metadata(api, |object| found.push(object.metadata)).await;
    read.map_err(|source| Error::request(format!("list {}", K::plural(&())), source))?;
    Ok(found)
}

/// The last writer of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Writer {
    /// The field manager: the name of a program as a rule.
    pub(crate) name: String,
    /// The time of its last write to this or another field.
    pub(crate) time: Option<Time>,
}

impl Writer {
    /// Returns the last writer of `<parent>.<field>`, such as `status` and one of its fields, if the object has it.
    pub(crate) fn of(metadata: &ObjectMeta, parent: &str, field: &str) -> Option<Self> {
        let entries = metadata.managed_fields.iter().flatten();
        let last = last_writer(entries, parent, &[field])?;
        Some(Self {
            name: last.manager.clone().unwrap_or_default(),
            time: last.time.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn entry(manager: &str, time: &str, field: &str) -> Value {
        json!({ "manager": manager, "operation": "Update", "time": time,
            "fieldsV1": { "f:status": { field: {} } } })
    }

    /// The last writer of a field is the latest manager that has it.
    #[test]
    fn last_writer_is_latest_manager() {
        let metadata: ObjectMeta = from_value(json!({ "managedFields": [
            entry("early", "2026-01-01T00:00:00Z", "f:a"),
            entry("late", "2026-01-02T00:00:00Z", "f:a"),
            entry("other", "2026-01-03T00:00:00Z", "f:b"),
        ] }))
        .unwrap();
        let writer = Writer::of(&metadata, "status", "a").unwrap();
        assert_eq!(writer.name, "late");
        assert!(writer.time.is_some());
        assert_eq!(Writer::of(&metadata, "status", "c"), None);
        assert_eq!(Writer::of(&ObjectMeta::default(), "status", "a"), None);
    }
}
