//! What field selectors may name.

use serde_json::Value;

use super::{Kind, Selectable};

impl Selectable {
    /// A field whose selector is its path: `spec.type`.
    pub(crate) fn path(path: &str) -> Self {
        Self::named(path, &[path])
    }

    pub(crate) fn named(label: &str, paths: &[&str]) -> Self {
        let split = |path: &&str| path.split('.').map(str::to_owned).collect();
        Self {
            label: label.to_owned(),
            paths: paths.iter().map(split).collect(),
        }
    }

    /// The value in an object; empty if there is none.
    pub(crate) fn value(&self, object: &Value) -> String {
        let at = |path: &Vec<String>| match path
            .iter()
            .fold(object, |value, field| &value[field.as_str()])
        {
            Value::String(text) => text.clone(),
            value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
            _ => String::new(),
        };
        (self.paths.iter().map(at))
            .find(|value| !value.is_empty())
            .unwrap_or_default()
    }
}

impl Kind {
    /// The field a selector names.
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
