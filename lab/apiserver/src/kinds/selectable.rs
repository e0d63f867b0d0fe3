//! Fields for field selectors.

use serde_json::Value;

use super::kind::{Kind, Selectable};

impl Selectable {
    /// Creates a field that selectors name by its path: `spec.type`.
    pub(crate) fn path(path: &str) -> Self {
        Self::named(path, &[path])
    }

    pub(crate) fn named(label: &str, paths: &[&str]) -> Self {
        let paths = paths
            .iter()
            .map(|path| path.split('.').map(str::to_owned).collect());
        Self {
            label: label.to_owned(),
            paths: paths.collect(),
        }
    }

    /// Returns the value in an object, empty if there is none.
    pub(crate) fn value(&self, object: &Value) -> String {
        (self.paths.iter().map(|path| text_at(object, path)))
            .find(|value| !value.is_empty())
            .unwrap_or_default()
    }
}

fn text_at(object: &Value, path: &[String]) -> String {
    match path
        .iter()
        .fold(object, |value, field| &value[field.as_str()])
    {
        Value::String(text) => text.clone(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        _ => String::new(),
    }
}

impl Kind {
    /// Returns the field with a name, if the kind has one.
    pub(crate) fn selectable(&self, label: &str) -> Option<Selectable> {
        let everywhere = label == "metadata.name"
            || (label == "metadata.namespace" && (self.namespaced || self.custom));
        if everywhere {
            return Some(Selectable::path(label));
        }
        (self.storage.selectable.iter())
            .find(|field| field.label == label)
            .cloned()
    }
}
