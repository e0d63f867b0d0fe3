//! The lines of a watch, and their serialization.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::Call;
use crate::error::ApiError;
use crate::metadata;
use crate::request::Form;
use crate::store::{Change, Object};
use crate::table;

#[derive(Clone, Debug)]
pub(super) enum Line {
    Object(Change, Arc<Object>),
    /// An object that no longer matches the selector: its last matching state, with the version of
    /// the change.
    Unselected(Arc<Object>, u64),
    Bookmark {
        version: u64,
        ends_initial: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Text {
    Event(String),
    Bookmark(String),
    /// The last line of a watch.
    Error(String),
}

impl Line {
    /// Serializes the line. `is_first` is `true` until the first table, which alone has column
    /// definitions.
    pub(super) fn text(&self, call: &Call, is_first: &mut bool) -> Result<Text, ApiError> {
        let kind = &call.kind;
        Ok(match self {
            Self::Object(change, object) => {
                let type_ = match change {
                    Change::Added => "ADDED",
                    Change::Modified => "MODIFIED",
                    Change::Deleted => "DELETED",
                };
                let text = if call.form == Form::Objects {
                    line(type_, &kind.text(&object.text))
                } else {
                    let object = kind.to_served(object.value()?);
                    line(type_, &rendered(&object, call, is_first))
                };
                Text::Event(text)
            }
            Self::Unselected(before, version) => {
                let mut object = kind.to_served(before.value()?);
                metadata::set(&mut object, "resourceVersion", version.to_string());
                Text::Event(line("DELETED", &rendered(&object, call, is_first)))
            }
            Self::Bookmark {
                version,
                ends_initial,
            } => {
                let mut object = json!({
                    "apiVersion": kind.api_version(), "kind": kind.kind,
                    "metadata": {"resourceVersion": version.to_string()},
                });
                if *ends_initial {
                    let annotations = json!({"k8s.io/initial-events-end": "true"});
                    metadata::set(&mut object, "annotations", annotations);
                }
                let text = line("BOOKMARK", &rendered(&object, call, is_first));
                if *ends_initial {
                    Text::Event(text)
                } else {
                    Text::Bookmark(text)
                }
            }
        })
    }
}

impl Text {
    /// Serializes the error that ends a watch.
    pub(super) fn error(error: &ApiError) -> Self {
        Self::Error(line("ERROR", &error.status().to_string()))
    }

    pub(super) fn into_string(self) -> String {
        match self {
            Self::Event(text) | Self::Bookmark(text) | Self::Error(text) => text,
        }
    }
}

/// Serializes an object in the form that the client accepts.
fn rendered(object: &Value, call: &Call, is_first: &mut bool) -> String {
    match call.form {
        Form::Objects => object.to_string(),
        Form::Metadata | Form::MetadataList => table::partial(object).to_string(),
        Form::Table => {
            let is_first = std::mem::replace(is_first, false);
            let now = call.server.now();
            table::event(&call.kind, object, call.include, now, is_first).to_string()
        }
    }
}

/// Serializes a line. kube-apiserver writes the type first, and some clients rely on that.
fn line(type_: &str, object: &str) -> String {
    format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n")
}
