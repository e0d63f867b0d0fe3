//! Lua's values as JSON.

use std::collections::BTreeSet;
use std::ffi::c_void;

use mlua::{LuaString, Table, Value};
use serde_json::{Map, Number, Value as Json};

use crate::arguments::type_name;
use crate::deadline::Deadline;
use crate::gopher::numbers::exactly;

/// The deepest nesting, as that of an object which an API takes.
const DEEPEST: usize = 100;
/// The most values: a table that is in many places counts at each.
const MOST_VALUES: usize = 500_000;
/// The most bytes of texts.
const MOST_BYTES: usize = 16 << 20;
/// The end of the integers that doubles have.
const EXACT: u64 = 1 << 53;

/// The form of an empty table, where it is the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Empty {
    Object,
    List,
}

/// Errors of the conversion.
#[derive(Debug)]
pub(crate) enum EncodeError {
    /// The value has no form in JSON.
    Invalid(String),
    /// The script must end.
    Halt(mlua::Error),
}

impl From<mlua::Error> for EncodeError {
    fn from(error: mlua::Error) -> Self {
        Self::Halt(error)
    }
}

impl EncodeError {
    fn new(message: &str) -> Self {
        Self::Invalid(message.to_owned())
    }
}

/// Returns the result of a script. A table does not tell whether it was `{}` or `[]`: an empty one inside of others is as
/// one of `known`, the arguments of the script, has it at its path, lists aside, and else it is left out. Integers that a
/// double does not have are as they are in the arguments.
pub(crate) fn encode(
    value: &Value,
    whole: Empty,
    known: &[&Json],
    deadline: Deadline,
) -> Result<Json, EncodeError> {
    let mut paths = Empties::default();
    for known in known {
        paths.collect(known, &mut Vec::new());
    }
    let mut encoder = Encoder {
        paths,
        path: Vec::new(),
        open: Vec::new(),
        deadline,
        values: 0,
        bytes: 0,
    };
    let found = encoder.value(value)?;
    let mut json = found.unwrap_or_else(|| match whole {
        Empty::Object => Json::Object(Map::new()),
        Empty::List => Json::Array(Vec::new()),
    });
    for known in known {
        restore(&mut json, known);
    }
    Ok(json)
}

/// The paths of empty tables in the arguments of a script.
#[derive(Default)]
struct Empties {
    objects: BTreeSet<Vec<String>>,
    lists: BTreeSet<Vec<String>>,
}

impl Empties {
    fn collect(&mut self, json: &Json, path: &mut Vec<String>) {
        match json {
            Json::Object(fields) if fields.is_empty() => {
                self.objects.insert(path.clone());
            }
            Json::Array(list) if list.is_empty() => {
                self.lists.insert(path.clone());
            }
            Json::Object(fields) => {
                for (name, field) in fields {
                    path.push(name.clone());
                    self.collect(field, path);
                    path.pop();
                }
            }
            Json::Array(list) => list.iter().for_each(|element| self.collect(element, path)),
            _ => {}
        }
    }

    /// Returns the empty value at a path; `None` if there is none.
    fn at(&self, path: &[String]) -> Option<Json> {
        if path.is_empty() {
            None
        } else if self.objects.contains(path) {
            Some(Json::Object(Map::new()))
        } else if self.lists.contains(path) {
            Some(Json::Array(Vec::new()))
        } else {
            None
        }
    }
}

struct Encoder {
    paths: Empties,
    path: Vec<String>,
    /// The tables around the value.
    open: Vec<*const c_void>,
    deadline: Deadline,
    values: usize,
    bytes: usize,
}

impl Encoder {
    /// Returns a value, and `None` for one that is to be left out.
    fn value(&mut self, value: &Value) -> Result<Option<Json>, EncodeError> {
        self.values += 1;
        if self.values.is_multiple_of(1024) {
            self.deadline.check().map_err(mlua::Error::external)?;
        }
        if self.values > MOST_VALUES || self.bytes > MOST_BYTES {
            return Err(EncodeError::new("the result is too large"));
        }
        Ok(Some(match value {
            Value::Nil => Json::Null,
            Value::Boolean(value) => Json::Bool(*value),
            Value::Integer(integer) => Json::Number((*integer).into()),
            Value::Number(number) => Json::Number(json_number(*number)?),
            Value::String(text) => Json::String(self.text(text)),
            Value::Table(table) => return self.table(table),
            other => {
                let message = format!("cannot encode {} to JSON", type_name(other));
                return Err(EncodeError::Invalid(message));
            }
        }))
    }

    fn text(&mut self, text: &LuaString) -> String {
        let text = text.to_string_lossy();
        self.bytes += text.len();
        text
    }

    fn table(&mut self, table: &Table) -> Result<Option<Json>, EncodeError> {
        let identity = table.to_pointer();
        if self.open.contains(&identity) || self.open.len() == DEEPEST {
            let message = "cannot encode recursively nested tables to JSON";
            return Err(EncodeError::new(message));
        }
        self.open.push(identity);
        let encoded = self.content(table);
        self.open.pop();
        encoded
    }

    fn content(&mut self, table: &Table) -> Result<Option<Json>, EncodeError> {
        let (mut fields, mut elements) = (Map::new(), Vec::new());
        let mut is_empty = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            is_empty = false;
            match &key {
                Value::String(name) => {
                    let name = self.text(name);
                    self.path.push(name.clone());
                    let field = self.value(&value)?;
                    self.path.pop();
                    if let Some(field) = field {
                        fields.insert(name, field);
                    }
                }
                Value::Integer(place) => elements.push((*place, value)),
                Value::Number(_) => return Err(EncodeError::new(SPARSE)),
                _ => return Err(EncodeError::new(MIXED)),
            }
        }
        if is_empty {
            return Ok(self.paths.at(&self.path));
        }
        if elements.is_empty() {
            return Ok(Some(Json::Object(fields)));
        }
        if !fields.is_empty() {
            return Err(EncodeError::new(MIXED));
        }
        self.list(elements).map(Some)
    }

    fn list(&mut self, mut elements: Vec<(i64, Value)>) -> Result<Json, EncodeError> {
        elements.sort_by_key(|(place, _)| *place);
        let mut list = Vec::with_capacity(elements.len());
        for (expected, (place, value)) in (1..).zip(&elements) {
            if *place != expected {
                return Err(EncodeError::new(SPARSE));
            }
            list.extend(self.value(value)?);
        }
        Ok(Json::Array(list))
    }
}

const SPARSE: &str = "cannot encode sparse array";
const MIXED: &str = "cannot encode mixed or invalid key types";

fn json_number(number: f64) -> Result<Number, EncodeError> {
    #[expect(clippy::cast_possible_truncation, reason = "compared below")]
    let integer = number as i64;
    #[expect(clippy::cast_precision_loss, reason = "that shows if it is an integer")]
    let is_integer = exactly(integer as f64, number) && integer != i64::MAX;
    if is_integer {
        return Ok(integer.into());
    }
    Number::from_f64(number)
        .ok_or_else(|| EncodeError::Invalid(format!("json: unsupported value: {number}")))
}

/// Puts integers that a double does not have back where they were.
fn restore(json: &mut Json, known: &Json) {
    match (json, known) {
        (Json::Object(fields), Json::Object(known)) => {
            for (name, field) in fields {
                if let Some(known) = known.get(name) {
                    restore(field, known);
                }
            }
        }
        (Json::Array(list), Json::Array(known)) => {
            list.iter_mut()
                .zip(known)
                .for_each(|(element, known)| restore(element, known));
        }
        (Json::Number(number), Json::Number(known)) => {
            let size = known
                .as_i64()
                .map(i64::unsigned_abs)
                .or_else(|| known.as_u64());
            let is_inexact = size.is_some_and(|size| size > EXACT);
            if is_inexact && number.as_f64() == known.as_f64() {
                *number = known.clone();
            }
        }
        _ => {}
    }
}
