//! The library `string`.

use mlua::{Lua, Value};

use crate::arguments::{Arguments, number};
use crate::call::{Context, Results, Stop, string};
use crate::deadline::{Deadline, Expired};
use crate::gopher::format::{Argument, format};
use crate::gopher::pattern::{Capture, Found, Pattern};

/// Returns the index that a script means by a place, which may be counted from the end.
fn index(place: i64, length: usize) -> usize {
    let place = if place == 0 { 0 } else { place - 1 };
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let place = if place < 0 { length + place + 1 } else { place };
    usize::try_from(place.max(0)).unwrap_or(usize::MAX)
}

pub(super) fn find(context: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let (text, sought) = (arguments.text(1)?, arguments.text(2)?);
    if sought.is_empty() {
        return Ok(bounds(0, 0));
    }
    let from = index(arguments.integer(3, 1)?, text.len());
    let is_plain = arguments.values.len() == 4
        && !matches!(arguments.get(4), None | Some(Value::Boolean(false)));
    if is_plain {
        let rest = text.get(from..).unwrap_or_default();
        let found = memory_find(rest, &sought, context.deadline)?;
        return Ok(match found {
            Some(place) => bounds(from + place, from + place + sought.len()),
            None => vec![Value::Nil],
        });
    }
    let pattern = Pattern::parse(&sought)?;
    let Some(found) = pattern.find(&text, from, &context.deadline)? else {
        return Ok(vec![Value::Nil]);
    };
    let mut results = bounds(found.whole.start, found.whole.end);
    results.extend(captured(lua, &text, &found.captures)?);
    Ok(results)
}

fn bounds(start: usize, end: usize) -> Vec<Value> {
    vec![position(start + 1), position(end)]
}

/// Returns the place of a text in another.
fn memory_find(text: &[u8], sought: &[u8], deadline: Deadline) -> Result<Option<usize>, Expired> {
    for (place, window) in text.windows(sought.len()).enumerate() {
        if place.is_multiple_of(4096) {
            deadline.check()?;
        }
        if window == sought {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

pub(super) fn matched(context: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let (text, pattern) = (arguments.text(1)?, arguments.text(2)?);
    let from = index(arguments.integer(3, 1)?, text.len());
    let pattern = Pattern::parse(&pattern)?;
    // No value at all, and not nil, where there is none.
    match pattern.find(&text, from, &context.deadline)? {
        Some(found) => Ok(parts(lua, &text, &found)?),
        None => Ok(Vec::new()),
    }
}

/// Returns the place at which the search for a pattern begins.
pub(super) fn first(_: &Context, _: &Lua, arguments: Arguments<'_>) -> Results {
    arguments.text(1)?;
    Pattern::parse(&arguments.text(2)?)?;
    Ok(vec![Value::Integer(0)])
}

/// Returns the place at which the search for the next occurrence begins, and this one.
pub(super) fn occurrence(context: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let (text, pattern) = (arguments.text(1)?, arguments.text(2)?);
    let from = usize::try_from(arguments.integer(3, 0)?).unwrap_or_default();
    let pattern = Pattern::parse(&pattern)?;
    let Some(found) = pattern.find(&text, from, &context.deadline)? else {
        return Ok(vec![Value::Nil]);
    };
    let mut results = vec![found.next.map_or(Value::Nil, position)];
    results.extend(parts(lua, &text, &found)?);
    Ok(results)
}

/// Returns the captures of an occurrence, or the whole of it if there are none.
fn parts(lua: &Lua, text: &[u8], found: &Found) -> Result<Vec<Value>, Stop> {
    if found.captures.is_empty() {
        return captured(lua, text, &[Capture::Text(found.whole.clone())]);
    }
    captured(lua, text, &found.captures)
}

fn captured(lua: &Lua, text: &[u8], captures: &[Capture]) -> Result<Vec<Value>, Stop> {
    let captures = captures.iter().map(|capture| match capture {
        Capture::Text(range) => string(lua, text.get(range.clone()).unwrap_or_default()),
        Capture::Position(place) => Ok(position(*place)),
    });
    captures.collect()
}

fn position(place: usize) -> Value {
    Value::Integer(i64::try_from(place).unwrap_or(i64::MAX))
}

pub(super) fn formatted(_: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let pattern = arguments.text(1)?;
    let mut given = Vec::new();
    for value in arguments.values.iter().skip(1) {
        given.push(match (value, number(value)) {
            (_, Some(number)) => Argument::Number(number),
            (Value::String(text), _) => Argument::Text(text.as_bytes().to_vec()),
            (Value::Boolean(value), _) => Argument::Boolean(*value),
            (Value::Nil, _) => Argument::Nil,
            (Value::Table(_), _) => Argument::Other("*lua.LTable", value.to_string()?),
            _ => Argument::Other("*lua.LFunction", value.to_string()?),
        });
    }
    Ok(vec![string(lua, format(&pattern, &given))?])
}

pub(super) fn lower(_: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    recased(lua, arguments, |letter| {
        single(letter, letter.to_lowercase())
    })
}

pub(super) fn upper(_: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    recased(lua, arguments, |letter| {
        single(letter, letter.to_uppercase())
    })
}

fn recased(lua: &Lua, arguments: Arguments<'_>, one: impl Fn(char) -> char) -> Results {
    let text = arguments.text(1)?;
    let text: String = String::from_utf8_lossy(&text).chars().map(one).collect();
    Ok(vec![string(lua, text)?])
}

/// Returns the other case of a letter, if that is one letter.
fn single(letter: char, mut other: impl Iterator<Item = char>) -> char {
    match (other.next(), other.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}
