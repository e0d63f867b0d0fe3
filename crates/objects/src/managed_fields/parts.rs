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

/// The fields of which one excludes the others.
const UNIONS: [&str; 6] = [
    "f:livenessProbe",
    "f:postStart",
    "f:preStop",
    "f:readinessProbe",
    "f:startupProbe",
    "f:valueFrom",
];

/// Returns `true` for the name of a field of which one part excludes the others.
pub(crate) fn is_union(name: &str) -> bool {
    let mut names = UNIONS.iter().filter_map(|union| union.strip_prefix("f:"));
    names.any(|union| union == name)
}

/// Takes out of the fields of somebody else, which `object` has at `place`, those that stand where `object` lacks a part of
/// `body`: an element of the same list, or a field that excludes it. Returns those, if there are any.
pub(super) fn displaced(
    (place, theirs): (&str, &mut Value),
    (object, body): (&Value, &Value),
) -> Option<Value> {
    let theirs = theirs.as_object_mut()?;
    let mut fields = body.as_object().into_iter().flatten();
    let lacks_field = UNIONS.contains(&place) && fields.any(|(name, _)| object.get(name).is_none());
    let mut taken = Map::new();
    theirs.retain(|key, fields| {
        let Part::There(there) = part(object, key) else {
            return true;
        };
        match part(body, key) {
            Part::Missing => {
                let is_displaced = match element(key) {
                    Some(Element::Keys(keys)) => lacks_element(object, body, &keys),
                    _ => lacks_field,
                };
                if is_displaced {
                    taken.insert(key.clone(), fields.take());
                }
                !is_displaced
            }
            Part::There(wanted) => {
                // The kind of a volume is a union, too.
                let is_volume = place == "f:volumes";
                let place = if is_volume { UNIONS[0] } else { key.as_str() };
                let part = displaced((place, fields), (there, wanted));
                taken.extend(part.map(|part| (key.clone(), part)));
                true
            }
            Part::Itself => true,
        }
    });
    (!taken.is_empty()).then_some(Value::Object(taken))
}

/// Returns `true` if the list `object` lacks an element of `body` by the names of these keys.
fn lacks_element(object: &Value, body: &Value, keys: &Map<String, Value>) -> bool {
    let (Some(there), Some(wanted)) = (object.as_array(), body.as_array()) else {
        return false;
    };
    wanted.iter().any(|wanted| {
        let keys = keys
            .keys()
            .filter_map(|name| Some((name.clone(), wanted.get(name)?.clone())));
        let wanted = Element::Keys(keys.collect());
        !there.iter().any(|one| wanted.is(one))
    })
}
