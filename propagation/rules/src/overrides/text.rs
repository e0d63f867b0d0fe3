//! Changes within a text that is JSON or YAML. The rest of it keeps its meaning: numbers keep their digits, and in
//! JSON everything keeps its place.

use std::collections::BTreeMap;
use std::fmt;

use json_patch::PatchOperation;
use objects::Mistake;
use objects::patch::{MAX_LEVELS, place};
use objects::yaml;
use serde::de::{MapAccess, Visitor};
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The bytes that the changes of one text may copy.
const MAX_COPIED: usize = 64 << 20;

/// The language of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Language {
    Json,
    Yaml,
}

impl Language {
    /// Returns the text after some operations, as Karmada writes it.
    ///
    /// # Errors
    /// Fails with the mistake in the text, or the place that it lacks. Nor is a text changed that is too deep to walk
    /// through, or so long that its changes would take too much time.
    pub(super) fn changed(
        self,
        text: &str,
        operations: &[PatchOperation],
    ) -> Result<String, String> {
        let mut json = match self {
            Self::Json => {
                let read: &RawValue = serde_json::from_str(text)
                    .map_err(|error| format!("is no JSON: {}", Mistake::from(&error)))?;
                read.get().to_owned()
            }
            Self::Yaml => {
                yaml::document(text).map_err(|problem| format!("is no YAML: {problem}"))?
            }
        };
        if levels(&json) > MAX_LEVELS {
            return Err(format!("has more than {MAX_LEVELS} levels"));
        }
        if copied(&json, operations) > MAX_COPIED {
            let most = MAX_COPIED >> 20;
            return Err(format!(
                "is too long for so many changes: they would copy more than {most} MiB"
            ));
        }
        for operation in operations {
            let path = operation.path();
            if path.count() > MAX_LEVELS {
                return Err(format!(
                    "cannot be changed more than {MAX_LEVELS} levels deep"
                ));
            }
            let tokens = path.tokens().map(|token| token.decoded().into_owned());
            let tokens: Vec<_> = tokens.collect();
            json = patched(&json, &tokens, operation).ok_or_else(|| format!("has no {path}"))?;
        }
        if levels(&json) > MAX_LEVELS {
            return Err(format!("would have more than {MAX_LEVELS} levels"));
        }
        match self {
            Self::Json => Ok(compact(&json)),
            Self::Yaml => {
                let json: Box<RawValue> =
                    RawValue::from_string(json).map_err(|error| error.to_string())?;
                serde_saphyr::to_string(&AsYaml(&json)).map_err(|error| error.to_string())
            }
        }
    }
}

/// Returns the levels of lists and objects in a JSON text.
fn levels(json: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let (mut is_in_text, mut is_escaped) = (false, false);
    for letter in json.bytes() {
        match letter {
            b'[' | b'{' if !is_in_text => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' if !is_in_text => open = open.saturating_sub(1),
            _ => {}
        }
        is_in_text ^= letter == b'"' && !is_escaped;
        is_escaped = letter == b'\\' && !is_escaped;
    }
    most
}

/// Returns the most bytes that operations copy: each writes the text anew, with the additions of those before it.
fn copied(json: &str, operations: &[PatchOperation]) -> usize {
    let added = operations.iter().map(|operation| {
        let value = written(operation).map_or(0, |value| value.len());
        operation.path().as_str().len() + value
    });
    let longest = json.len() + added.sum::<usize>();
    operations.len().saturating_mul(longest)
}

/// Returns a JSON value after an operation about the part at a path; `None` if it has no such part.
fn patched(json: &str, path: &[String], operation: &PatchOperation) -> Option<String> {
    let Some((first, rest)) = path.split_first() else {
        return written(operation);
    };
    let adds = rest.is_empty() && matches!(operation, PatchOperation::Add(_));
    let removes = rest.is_empty() && matches!(operation, PatchOperation::Remove(_));
    if let Ok(Members(mut members)) = serde_json::from_str(json) {
        let place = members.iter().position(|(name, _)| name == first);
        match place {
            Some(place) if removes => {
                members.remove(place);
            }
            Some(place) => members[place].1 = patched(&members[place].1, rest, operation)?,
            None if adds => members.push((first.clone(), written(operation)?)),
            None => return None,
        }
        let members = members.into_iter();
        let members = members.map(|(name, value)| format!("{}:{value}", json!(name)));
        return Some(format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let mut items: Vec<_> = items.iter().map(|item| item.get().to_owned()).collect();
    if adds {
        let place = match first.as_str() {
            "-" => Some(items.len()),
            first => place(first, items.len() + 1),
        };
        let place = place.filter(|place| *place <= items.len())?;
        items.insert(place, written(operation)?);
    } else {
        let place = place(first, items.len()).filter(|place| *place < items.len())?;
        if removes {
            items.remove(place);
        } else {
            items[place] = patched(&items[place], rest, operation)?;
        }
    }
    Some(format!("[{}]", items.join(",")))
}

/// Returns the value that an operation puts somewhere, as JSON.
fn written(operation: &PatchOperation) -> Option<String> {
    match operation {
        PatchOperation::Add(add) => Some(add.value.to_string()),
        PatchOperation::Replace(replace) => Some(replace.value.to_string()),
        _ => None,
    }
}

/// The members of a JSON object, in their order. That which stands twice has the value that stands last.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members: Vec<(String, String)> = Vec::new();
        let mut places = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            let value = value.get().to_owned();
            let earlier = places.get(&name).and_then(|place| members.get_mut(*place));
            if let Some((_, earlier)) = earlier {
                *earlier = value;
            } else {
                places.insert(name.clone(), members.len());
                members.push((name, value));
            }
        }
        Ok(Members(members))
    }
}

/// Returns a JSON text without spaces. As in Karmada's, letters that mean something in HTML are escaped.
fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let (mut is_in_text, mut is_escaped) = (false, false);
    for letter in json.chars() {
        match letter {
            ' ' | '\t' | '\n' | '\r' if !is_in_text => {}
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let escape = format!("\\u{:04x}", u32::from(letter));
                compact.push_str(&escape);
            }
            letter => compact.push(letter),
        }
        is_in_text ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
    }
    compact
}

/// JSON that is written as YAML, with the digits of its integers.
struct AsYaml<'a>(&'a RawValue);

impl Serialize for AsYaml<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.0.get();
        if let Ok(map) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
            return serializer.collect_map(map.iter().map(|(name, part)| (name, AsYaml(part))));
        }
        if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) {
            return serializer.collect_seq(list.into_iter().map(AsYaml));
        }
        if let Ok(integer) = json.parse::<i128>() {
            return serializer.serialize_i128(integer);
        }
        let value: Value = serde_json::from_str(json).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}
