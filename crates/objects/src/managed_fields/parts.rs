//! The parts of a value that the keys of `FieldsV1` name.

use serde_json::{Map, Value};

/// An element of a list, as a key of `FieldsV1` names it.
pub(crate) enum Element {
    /// `k:`: the element with these values of its keys.
    Keys(Map<String, Value>),
    /// `v:`: the element that is this value.
    Equal(Value),
}

/// Returns the element that a key of `FieldsV1` names.
pub(crate) fn element(key: &str) -> Option<Element> {
    if let Some(keys) = key.strip_prefix("k:") {
        return serde_json::from_str(keys).ok().map(Element::Keys);
    }
    let value = key.strip_prefix("v:")?;
    serde_json::from_str(value).ok().map(Element::Equal)
}

impl Element {
    /// Returns `true` if `value` is this element. A key that it lacks has its default, which nobody but the
    /// API server knows.
    pub(crate) fn is(&self, value: &Value) -> bool {
        match self {
            Self::Equal(this) => this == value,
            Self::Keys(keys) => {
                value.is_object()
                    && keys
                        .iter()
                        .all(|(name, this)| value.get(name).is_none_or(|value| value == this))
            }
        }
    }
}

/// Returns `true` if `fields` has one that `value` has not.
pub(super) fn has_more(fields: Option<&Value>, value: &Value) -> bool {
    let fields = fields.and_then(Value::as_object);
    let mut fields = fields.into_iter().flatten();
    fields.any(|(key, fields)| lacks(value, key, fields))
}

/// Returns `true` if `value` has no field `key`, or one that lacks some of its `fields`.
pub(super) fn lacks(value: &Value, key: &str, fields: &Value) -> bool {
    match part(value, key) {
        Part::Missing => true,
        Part::There(part) => has_more(Some(fields), part),
        Part::Itself => false,
    }
}

/// The part of a value that a key of `FieldsV1` names.
pub(super) enum Part<'a> {
    There(&'a Value),
    Missing,
    /// The key names no part: `.` is the value itself, and `i:` is not used by any server.
    Itself,
}

pub(super) fn part<'a>(value: &'a Value, key: &str) -> Part<'a> {
    let part = if let Some(name) = key.strip_prefix("f:") {
        value.get(name)
    } else if let Some(element) = element(key) {
        let list = value.as_array();
        list.and_then(|list| list.iter().find(|part| element.is(part)))
    } else {
        return Part::Itself;
    };
    part.map_or(Part::Missing, Part::There)
}

/// Returns `true` if `fields` has a list or a map that is owned as a whole and that `ours` has not, and `object` has it
/// otherwise than `body`.
pub(super) fn is_replaced(
    (key, fields): (&str, &Value),
    ours: &Value,
    (object, body): (&Value, &Value),
) -> bool {
    let (Part::There(object), Part::There(body)) = (part(object, key), part(body, key)) else {
        return false;
    };
    let (Some(fields), own) = (fields.as_object(), ours.get(key)) else {
        return false;
    };
    if fields.is_empty() {
        let is_whole = body.is_array() || body.is_object();
        return is_whole && own.is_none() && object != body;
    }
    let own = own.unwrap_or(&Value::Null);
    let mut fields = fields.iter();
    fields.any(|(key, fields)| is_replaced((key, fields), own, (object, body)))
}
