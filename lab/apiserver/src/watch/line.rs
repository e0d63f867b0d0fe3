//! The lines of a watch, and how they are written.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::Call;
use crate::error::ApiError;
use crate::metadata;
use crate::request::Form;
use crate::store::{Change, Object};
use crate::table;

/// What a line says.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Object(Change, Arc<Object>),
    /// An object that is selected no more: as it was, with the version at which it changed.
    Unselected(Arc<Object>, u64),
    Bookmark {
        version: u64,
        ends_initial: bool,
    },
}

/// A line as it is written.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Event(String),
    Bookmark(String),
    /// The last line.
    Error(String),
}

impl Line {
    /// Writes the line. `is_first` says whether no table has been sent yet.
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
    /// What ends a watch.
    pub(super) fn error(error: &ApiError) -> Self {
        Self::Error(line("ERROR", &error.status().to_string()))
    }

    pub(super) fn into_string(self) -> String {
        match self {
            Self::Event(text) | Self::Bookmark(text) | Self::Error(text) => text,
        }
    }
}

/// An object in the form that the client wants.
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

/// Clients rely on the type coming first.
fn line(type_: &str, object: &str) -> String {
    format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n")
}
