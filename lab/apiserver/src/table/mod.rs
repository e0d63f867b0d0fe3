//! Objects as rows of a table, the form that `kubectl get` requests.

mod age;
mod builtin;
mod custom;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::kinds::{Column, Kind};

/// The part of an object in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// A `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Parses the query parameter `includeObject`.
    pub(crate) fn parse(value: &str) -> Result<Self, ApiError> {
        match value {
            "None" => Ok(Self::None),
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \
                 {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// Returns a table of objects. `metadata` is that of the list or of the single object.
pub(crate) fn table<'a>(
    kind: &Kind,
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: &Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let cells = Cells::of(kind);
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let included = match include {
                Include::None => Value::Null,
                Include::Metadata => partial(object),
                Include::Object => object.clone(),
            };
            json!({ "cells": cells.row(object, now), "object": included })
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata(metadata),
        "columnDefinitions": cells.definitions(),
        "rows": rows,
    })
}

/// Returns the table of one watch event. Only the first one has column definitions.
pub(crate) fn event(
    kind: &Kind,
    object: &Value,
    include: Include,
    now: Timestamp,
    first: bool,
) -> Value {
    let mut table = table(kind, [object], &object["metadata"], include, now);
    if !first {
        // `kubectl get --watch` remembers the columns of the first table.
        table["columnDefinitions"] = Value::Null;
    }
    table
}

/// Returns the `PartialObjectMetadata` of an object.
pub(crate) fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// Returns the `PartialObjectMetadataList` of a list.
pub(crate) fn partial_list(list: &Value) -> Value {
    let items = list["items"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list["metadata"],
        "items": items.iter().map(partial).collect::<Vec<_>>(),
    })
}

/// Returns the metadata of a table: that of a list, or the version of an object.
fn list_metadata(metadata: &Value) -> Value {
    let mut kept = serde_json::Map::new();
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    kept.into()
}

/// The source of the cells of one kind.
enum Cells<'a> {
    BuiltIn(&'static builtin::Table),
    Custom(Vec<(&'a Column, custom::Cell<'a>)>),
}

impl<'a> Cells<'a> {
    fn of(kind: &'a Kind) -> Self {
        if kind.custom {
            let columns = kind.columns.iter();
            Self::Custom(
                columns
                    .map(|column| (column, custom::Cell::new(column)))
                    .collect(),
            )
        } else {
            Self::BuiltIn(builtin::table(&kind.kind))
        }
    }

    fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = json!(object["metadata"]["name"].as_str().unwrap_or_default());
        match self {
            Self::BuiltIn(table) => (table.cells)(object, now),
            Self::Custom(columns) if columns.is_empty() => {
                vec![name, json!(age::of(object, now))]
            }
            Self::Custom(columns) => {
                let cells = columns.iter().map(|(_, cell)| cell.of(object, now));
                std::iter::once(name).chain(cells).collect()
            }
        }
    }

    fn definitions(&self) -> Vec<Value> {
        match self {
            Self::BuiltIn(table) => table
                .columns
                .iter()
                .map(|(name, type_, priority)| definition(name, type_, "", *priority))
                .collect(),
            Self::Custom(columns) if columns.is_empty() => vec![
                definition("Name", "string", "", 0),
                definition("Age", "date", "", 0),
            ],
            Self::Custom(columns) => {
                let own = columns.iter().map(|(column, _)| {
                    let from = format!(
                        "Custom resource definition column (in JSONPath format): {}",
                        column.json_path
                    );
                    let description = match column.description.as_str() {
                        "" => &from,
                        description => description,
                    };
                    definition(&column.name, &column.type_, description, column.priority)
                });
                let name = definition("Name", "string", "", 0);
                std::iter::once(name).chain(own).collect()
            }
        }
    }
}

fn definition(name: &str, type_: &str, description: &str, priority: i64) -> Value {
    json!({
        "name": name,
        "type": type_,
        "format": if name == "Name" { "name" } else { "" },
        "description": description,
        "priority": priority,
    })
}

#[cfg(test)]
mod tests;
