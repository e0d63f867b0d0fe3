//! A reader for Protocol Buffers, which Go clients send for built-in kinds. Responses are JSON,
//! which these clients accept as well.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

/// The prefix of every object (`serializer/protobuf` of apimachinery).
const MAGIC: &[u8] = b"k8s\0";

/// The limit for the nesting of messages.
const MAX_DEPTH: usize = 64;

/// The messages of the built-in kinds, from `messages.txt`: each with its fields by number, name
/// and type. `[]` is a list, `{}` a map with string keys, and `=` a message whose fields JSON
/// inlines. `?` marks fields that keep a zero, because their absence means something else.
///
/// `cargo xtask generate` makes it of the Go modules `k8s.io/api` and `k8s.io/apimachinery`. A message is named after its
/// group: `core.Service`, `meta.ObjectMeta`.
static MESSAGES: LazyLock<BTreeMap<&str, Message>> = LazyLock::new(|| {
    let mut messages: BTreeMap<&str, Message> = BTreeMap::new();
    let mut name = "";
    for line in include_str!("messages.txt").lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [message] => {
                name = message;
                messages.entry(name).or_default();
            }
            [number, field, type_] => {
                let number = number.parse().unwrap_or_default();
                let field = Field::new(field, type_);
                messages.entry(name).or_default().insert(number, field);
            }
            _ => {}
        }
    }
    messages
});

type Message = BTreeMap<u64, Field>;

#[derive(Debug)]
struct Field {
    name: &'static str,
    count: Count,
    /// Set if zero is a value rather than absence.
    keeps_zero: bool,
    /// `text`, `int`, … or the name of a message.
    type_: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    One,
    Many,
    Map,
    /// A message whose fields JSON inlines.
    Inline,
}

impl Field {
    fn new(name: &'static str, type_: &'static str) -> Self {
        let (count, type_) = if let Some(type_) = type_.strip_prefix("[]") {
            (Count::Many, type_)
        } else if let Some(type_) = type_.strip_prefix("{}") {
            (Count::Map, type_)
        } else if let Some(type_) = type_.strip_prefix('=') {
            (Count::Inline, type_)
        } else {
            (Count::One, type_)
        };
        let keeps_zero = type_.ends_with('?');
        let type_ = type_.trim_end_matches('?');
        Self {
            name,
            count,
            keeps_zero,
            type_,
        }
    }
}

/// Parses an object, including its `apiVersion` and `kind`.
///
/// # Errors
/// Returns a message if the bytes are malformed or the kind is unknown.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, String> {
    let envelope = bytes
        .strip_prefix(MAGIC)
        .ok_or("it does not begin as an object does")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(envelope) {
        match field? {
            (1, Wire::Bytes(types)) => {
                for field in fields(types) {
                    match field? {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message = match kind.as_str() {
        "DeleteOptions" => "meta.DeleteOptions".to_owned(),
        _ => format!("{}.{kind}", package(&api_version)),
    };
    let mut object = message_of(&message, raw, MAX_DEPTH)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(object.into())
}

/// Returns the Go package of an API version: the first part of its group's name.
fn package(api_version: &str) -> &str {
    let (group, _) = api_version.split_once('/').unwrap_or(("core", api_version));
    group.split('.').next().unwrap_or(group)
}

fn message_of(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    let depth = depth.checked_sub(1).ok_or("it nests too deeply")?;
    let message = MESSAGES
        .get(name)
        .ok_or_else(|| format!("there is no message {name}"))?;
    let mut object = Map::new();
    for field in fields(bytes) {
        let (number, wire) = field?;
        // Unknown fields are skipped, as Protocol Buffers require: they may come from a newer
        // client.
        let Some(field) = message.get(&number) else {
            continue;
        };
        match field.count {
            Count::One => {
                if let Some(value) = value(field, wire, depth)? {
                    object.insert(field.name.to_owned(), value);
                }
            }
            Count::Inline => object.extend(message_of(field.type_, wire.bytes()?, depth)?),
            Count::Many => {
                let item = value(field, wire, depth)?.unwrap_or_else(|| zero(field.type_));
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    list.push(item);
                }
            }
            Count::Map => {
                let (key, item) = entry(field, wire, depth)?;
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                if let Some(map) = map.as_object_mut() {
                    map.insert(key, item);
                }
            }
        }
    }
    Ok(object)
}

/// Reads an entry of a map, which is a message with the key as field 1 and the value as field 2.
fn entry(field: &Field, wire: Wire<'_>, depth: usize) -> Result<(String, Value), String> {
    let (mut key, mut item) = (String::new(), None);
    for part in fields(wire.bytes()?) {
        match part? {
            (1, wire) => key = text(wire.bytes()?)?,
            (2, wire) => item = value(field, wire, depth)?,
            _ => {}
        }
    }
    Ok((key, item.unwrap_or_else(|| zero(field.type_))))
}

fn zero(type_: &str) -> Value {
    match type_ {
        "int" | "IntOrString" => json!(0),
        "bool" => json!(false),
        "text" | "bytes" | "Quantity" => json!(""),
        "Time" | "MicroTime" | "Json" => Value::Null,
        _ => json!({}),
    }
}

/// Converts a value to JSON, or returns `None` for a zero that JSON omits.
fn value(field: &Field, wire: Wire<'_>, depth: usize) -> Result<Option<Value>, String> {
    let value = match field.type_ {
        "text" => text(wire.bytes()?)?.into(),
        "bytes" => json!(ByteString(wire.bytes()?.to_vec())),
        "int" => wire.integer()?.into(),
        "bool" => (wire.integer()? != 0).into(),
        "Time" => return time(wire.bytes()?, |time| format!("{time:.0}")),
        "MicroTime" => return time(wire.bytes()?, |time| format!("{time:.6}")),
        "IntOrString" => int_or_string(wire.bytes()?)?,
        "Quantity" => {
            let first = fields(wire.bytes()?).next().transpose()?;
            first
                .map_or(Ok(String::new()), |(_, wire)| text(wire.bytes()?))?
                .into()
        }
        "Json" => {
            let first = fields(wire.bytes()?).next().transpose()?;
            let Some((_, wire)) = first else {
                return Ok(None);
            };
            serde_json::from_slice(wire.bytes()?).map_err(|error| error.to_string())?
        }
        message => message_of(message, wire.bytes()?, depth)?.into(),
    };
    let is_scalar = matches!(field.type_, "text" | "bytes" | "int" | "bool");
    let is_absent = is_scalar && !field.keeps_zero && value == zero(field.type_);
    Ok((!is_absent).then_some(value))
}

/// Reads a time in seconds and nanoseconds, or returns `None` if it has neither.
fn time(bytes: &[u8], show: impl Fn(Timestamp) -> String) -> Result<Option<Value>, String> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    for field in fields(bytes) {
        match field? {
            (1, wire) => seconds = Some(wire.integer()?),
            (2, wire) => nanoseconds = wire.integer()?,
            _ => {}
        }
    }
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    let nanoseconds = i32::try_from(nanoseconds).map_err(|error| error.to_string())?;
    let time = Timestamp::new(seconds, nanoseconds).map_err(|error| error.to_string())?;
    Ok(Some(show(time).into()))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut name) = (false, 0, String::new());
    for field in fields(bytes) {
        match field? {
            (1, wire) => is_text = wire.integer()? == 1,
            (2, wire) => number = wire.integer()?,
            (3, wire) => name = text(wire.bytes()?)?,
            _ => {}
        }
    }
    Ok(if is_text { name.into() } else { number.into() })
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

/// The value of a field on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
    /// Eight or four bytes, which no known field has.
    Fixed,
}

impl<'a> Wire<'a> {
    fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err("a field is of another type".to_owned()),
        }
    }

    fn integer(self) -> Result<i64, String> {
        match self {
            Self::Integer(number) => Ok(number.cast_signed()),
            _ => Err("a field is of another type".to_owned()),
        }
    }
}

/// Iterates over the numbers and values of a message's fields.
fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), String>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(&mut rest).ok_or_else(|| "it ends within a field".to_owned());
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = varint(rest)?;
    // The low three bits of a tag are the wire type: varint, 64 bit, length-delimited or 32 bit.
    let wire = match tag & 7 {
        0 => Wire::Integer(varint(rest)?),
        1 => take(rest, 8).map(|_| Wire::Fixed)?,
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| Wire::Fixed)?,
        _ => return None,
    };
    Some((tag >> 3, wire))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests;
