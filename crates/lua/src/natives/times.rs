//! `os.time`, `os.date` and `math.randomseed`.

use mlua::{Lua, Table, Value};

use crate::arguments::{Arguments, number};
use crate::call::{Context, Results, Stop, string};
use crate::gopher::numbers;
use crate::gopher::time::{Fields, date, text};

pub(super) fn time(context: &Context, _: &Lua, arguments: Arguments<'_>) -> Results {
    if arguments.get(1).is_none() {
        return Ok(vec![Value::Integer(context.clock.now())]);
    }
    let table = arguments.table(1)?;
    let fields = Fields {
        year: field(table, "year", -1)?,
        month: field(table, "month", -1)?,
        day: field(table, "day", -1)?,
        hour: field(table, "hour", 12)?,
        minute: field(table, "min", 0)?,
        second: field(table, "sec", 0)?,
    };
    Ok(vec![Value::Integer(fields.seconds())])
}

fn field(table: &Table, name: &str, default: i64) -> Result<i64, Stop> {
    let value: Value = table.raw_get(name)?;
    let number = match &value {
        Value::String(text) => {
            let text = text.to_string_lossy();
            let text = text.trim_start_matches(' ');
            numbers::read(text, None)
        }
        value => number(value),
    };
    Ok(number.map_or(default, numbers::truncated))
}

pub(super) fn dated(context: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let format = match arguments.values.first() {
        Some(_) => String::from_utf8_lossy(&arguments.text(1)?).into_owned(),
        None => "%c".to_owned(),
    };
    let seconds = match arguments.values.get(1) {
        Some(_) => arguments.integer(2, 0)?,
        None => context.clock.now(),
    };
    let Some(date) = date(seconds) else {
        return Err("time out of range".to_owned().into());
    };
    let format = format.trim_start_matches('!');
    if !format.starts_with("*t") {
        return Ok(vec![string(lua, text(&date, format))?]);
    }
    let table = lua.create_table()?;
    table.raw_set("year", i64::from(date.year()))?;
    table.raw_set("month", i64::from(date.month()))?;
    table.raw_set("day", i64::from(date.day()))?;
    table.raw_set("hour", i64::from(date.hour()))?;
    table.raw_set("min", i64::from(date.minute()))?;
    table.raw_set("sec", i64::from(date.second()))?;
    let weekday = date.weekday().to_sunday_one_offset();
    table.raw_set("wday", i64::from(weekday))?;
    // As gopher-lua has them: always.
    table.raw_set("yday", 0)?;
    table.raw_set("isdst", false)?;
    Ok(vec![Value::Table(table)])
}

pub(super) fn randomseed(context: &Context, _: &Lua, arguments: Arguments<'_>) -> Results {
    let seed = arguments.integer(1, 0)?;
    context.clock.seed(seed.unsigned_abs());
    Ok(Vec::new())
}
