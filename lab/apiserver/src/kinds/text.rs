//! Serialized objects. Stored text is sent as it is, except in other versions and in lists.

use std::borrow::Cow;

use serde_json::Value;

use super::events;
use super::kind::Kind;

impl Kind {
    /// Converts the text of a stored object to this kind.
    pub(crate) fn text<'a>(&self, stored: &'a str) -> Cow<'a, str> {
        if self.storage.version.is_none() && !self.is(events::GROUP, events::PLURAL) {
            return Cow::Borrowed(stored);
        }
        match serde_json::from_str(stored) {
            Ok(object) => Cow::Owned(with_types_first(&mut self.to_served(object))),
            Err(_) => Cow::Borrowed(stored),
        }
    }

    /// Returns the rest of an object's text after its types, or `None` if it does not start with
    /// them.
    pub(crate) fn without_types<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (api_version, kind) = (self.api_version(), &self.kind);
        let types = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","#);
        text.strip_prefix(&types)
    }
}

/// Serializes an object with `apiVersion` and `kind` first, for [`Kind::without_types`].
pub(crate) fn with_types_first(object: &mut Value) -> String {
    let Some(fields) = object.as_object_mut() else {
        return object.to_string();
    };
    let types = ["apiVersion", "kind"].map(|field| (field, fields.remove(field)));
    let mut text = "{".to_owned();
    for (field, value) in &types {
        if let Some(value) = value {
            text.extend(["\"", field, "\":", &value.to_string(), ","]);
        }
    }
    let rest = Value::Object(std::mem::take(fields));
    text.push_str(rest.to_string().trim_start_matches('{'));
    *object = rest;
    if let Some(fields) = object.as_object_mut() {
        for (field, value) in types {
            fields.extend(value.map(|value| (field.to_owned(), value)));
        }
    }
    text
}
