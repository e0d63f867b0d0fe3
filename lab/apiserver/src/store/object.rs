//! A stored object: its serialized form, and the fields that are needed most.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::ApiError;
use crate::kinds::{Kind, with_types_first};
use crate::metadata;

/// One version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Its key within the collection.
    pub(crate) key: String,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) labels: BTreeMap<String, String>,
    /// UIDs of its owners.
    pub(crate) owners: Vec<String>,
    pub(crate) is_terminating: bool,
    /// The object in JSON, in its storage version. Lists and watches copy it without parsing.
    pub(crate) text: Box<str>,
}

impl Object {
    pub(super) fn new(kind: &Kind, object: &mut Value, version: u64) -> Self {
        let text = with_types_first(object).into();
        let labels = object["metadata"]["labels"]
            .as_object()
            .into_iter()
            .flatten();
        let key = kind.key(
            metadata::text(object, "namespace"),
            metadata::text(object, "name"),
        );
        Self {
            key,
            uid: metadata::text(object, "uid").to_owned(),
            version,
            labels: labels
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect(),
            owners: metadata::owners(object).map(str::to_owned).collect(),
            is_terminating: metadata::is_terminating(object),
            text,
        }
    }

    /// Parses the object, in its storage version.
    pub(crate) fn value(&self) -> Result<Value, ApiError> {
        serde_json::from_str(&self.text).map_err(ApiError::internal)
    }
}
