//! The arguments that a script has given to a function.

use mlua::{Table, Value};

use crate::gopher::numbers;

/// The longest text that a function takes, in bytes.
const LONGEST: usize = 1_000_000;

/// The arguments of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    /// The name of the function.
    pub(crate) function: &'static str,
    pub(crate) values: &'a [Value],
}

impl<'a> Arguments<'a> {
    /// Returns the argument at a place, counted from 1, unless it is nil.
    pub(crate) fn get(self, place: usize) -> Option<&'a Value> {
        let value = self.values.get(place.checked_sub(1)?)?;
        Some(value).filter(|value| !value.is_nil())
    }

    /// Returns a text; a number counts as its text.
    pub(crate) fn text(self, place: usize) -> Result<Vec<u8>, String> {
        let text = match self.get(place) {
            Some(Value::String(text)) => text.as_bytes().to_vec(),
            Some(value) => match number(value) {
                Some(number) => numbers::text(number).into_bytes(),
                None => return Err(self.mistyped(place, "string")),
            },
            None => return Err(self.mistyped(place, "string")),
        };
        if text.len() > LONGEST {
            return Err(format!("string longer than {LONGEST} bytes"));
        }
        Ok(text)
    }

    /// Returns a text, unless there is none.
    pub(crate) fn optional_text(self, place: usize) -> Result<Option<String>, String> {
        match self.get(place) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_string_lossy())),
            Some(_) => Err(self.mistyped(place, "string")),
        }
    }

    /// Returns an integer, or `default` if there is none.
    pub(crate) fn integer(self, place: usize, default: i64) -> Result<i64, String> {
        let Some(value) = self.get(place) else {
            return Ok(default);
        };
        let number = number(value).ok_or_else(|| self.mistyped(place, "number"))?;
        Ok(numbers::truncated(number))
    }

    /// Returns a table.
    pub(crate) fn table(self, place: usize) -> Result<&'a Table, String> {
        match self.get(place) {
            Some(Value::Table(table)) => Ok(table),
            _ => Err(self.mistyped(place, "table")),
        }
    }

    /// Returns the error of an argument that is of another type.
    pub(crate) fn mistyped(self, place: usize, expected: &str) -> String {
        let given = self.get(place).map_or("nil", type_name);
        let function = self.function;
        format!("bad argument #{place} to {function} ({expected} expected, got {given})")
    }
}

/// Returns the number that a value is.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "it is a double in Lua")]
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns Lua's name of the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) | Value::Number(_) => "number",
        value => value.type_name(),
    }
}
