//! One entry of `metadata.managedFields`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::writer::Writer;
use crate::patch::paths::Paths;

/// The fields of one manager, for one operation and subresource.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) applies: bool,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) paths: Paths,
}

impl Entry {
    pub(super) fn new(writer: Writer<'_>, applies: bool, object: &Value) -> Self {
        Self {
            manager: writer.manager.to_owned(),
            applies,
            api_version: text(object, "apiVersion"),
            subresource: writer.subresource.unwrap_or_default().to_owned(),
            time: None,
            paths: Paths::default(),
        }
    }

    pub(super) fn read(entry: &Value) -> Option<Self> {
        let operation = entry.get("operation")?.as_str()?;
        if !matches!(operation, "Apply" | "Update") || entry.get("fieldsType")? != "FieldsV1" {
            return None;
        }
        let api_version = text(entry, "apiVersion");
        if api_version.is_empty() {
            return None;
        }
        Some(Self {
            manager: text(entry, "manager"),
            applies: operation == "Apply",
            api_version,
            subresource: text(entry, "subresource"),
            time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            paths: entry
                .get("fieldsV1")
                .map_or_else(|| Some(Paths::default()), Paths::read)?,
        })
    }

    pub(super) fn write(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": if self.applies { "Apply" } else { "Update" },
            "apiVersion": self.api_version, "fieldsType": "FieldsV1", "fieldsV1": self.paths.write(),
        });
        if let Some(time) = &self.time {
            entry["time"] = json!(time);
        }
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    /// Returns `true` if both belong to the same manager; for updates, their versions must be
    /// equal, too.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.applies == other.applies
            && self.subresource == other.subresource
            && (self.applies || self.api_version == other.api_version)
    }

    /// Returns the manager as conflict messages name it.
    pub(super) fn shown(&self) -> String {
        let mut name = format!("{:?}", self.manager);
        // Writing to a `String` cannot fail.
        if !self.subresource.is_empty() {
            _ = write!(name, " with subresource {:?}", self.subresource);
        }
        if !self.applies {
            _ = write!(name, " using {}", self.api_version);
        }
        name
    }
}

/// Returns a field of a text, which is empty if it is absent.
pub(super) fn text(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
