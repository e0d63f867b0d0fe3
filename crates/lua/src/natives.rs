//! The functions of a script that are in Rust: those of `string` in `strings`, those of the clock in `times`.

mod strings;
mod times;

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

use self::strings::{find, first, formatted, lower, matched, occurrence, upper};
use self::times::{dated, randomseed, time};
use crate::arguments::{Arguments, number};
use crate::call::{Context, Native, Results, Stop, string};
use crate::gopher::numbers;
use crate::kube;

const NATIVES: [(&str, Native); 12] = [
    ("tostring", tostring),
    ("tonumber", tonumber),
    ("find", find),
    ("match", matched),
    ("format", formatted),
    ("lower", lower),
    ("upper", upper),
    ("first", first),
    ("occurrence", occurrence),
    ("time", time),
    ("date", dated),
    ("randomseed", randomseed),
];

/// Returns the table of all of them, each of which returns true and its results, or false and a message.
pub(crate) fn table(lua: &Lua, context: &Arc<Context>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, native) in NATIVES {
        register(lua, &table, context, name, native)?;
    }
    let of_kube = lua.create_table()?;
    for (name, native) in kube::NATIVES {
        register(lua, &of_kube, context, name, native)?;
    }
    table.raw_set("kube", of_kube)?;
    table.raw_set("largest", f64::MAX)?;
    let context = Arc::clone(context);
    let random = lua.create_function(move |_, ()| Ok(context.clock.random()))?;
    table.raw_set("random", random)?;
    Ok(table)
}

fn register(
    lua: &Lua,
    table: &Table,
    context: &Arc<Context>,
    function: &'static str,
    native: Native,
) -> mlua::Result<()> {
    let context = Arc::clone(context);
    let called = lua.create_function(move |lua, values: MultiValue| {
        let values: Vec<Value> = values.into_iter().collect();
        let arguments = Arguments {
            function,
            values: &values,
        };
        let results = match native(&context, lua, arguments) {
            Ok(results) => [Value::Boolean(true)].into_iter().chain(results).collect(),
            Err(Stop::Raise(message)) => {
                let message = lua.create_string(&message)?;
                vec![Value::Boolean(false), Value::String(message)]
            }
            Err(Stop::Halt(error)) => return Err(error),
        };
        Ok(MultiValue::from_iter(results))
    })?;
    table.raw_set(function, called)
}

fn tostring(_: &Context, lua: &Lua, arguments: Arguments<'_>) -> Results {
    let Some(value) = arguments.values.first() else {
        return Err("bad argument #1 to tostring (value expected)"
            .to_owned()
            .into());
    };
    let text = match (value, number(value)) {
        (Value::String(_), _) => return Ok(vec![value.clone()]),
        (_, Some(number)) => numbers::text(number),
        (value, None) => value.to_string()?,
    };
    Ok(vec![string(lua, text)?])
}

fn tonumber(_: &Context, _: &Lua, arguments: Arguments<'_>) -> Results {
    let base = match arguments.get(2) {
        Some(_) => Some(u32::try_from(arguments.integer(2, 10)?).unwrap_or_default()),
        None => None,
    };
    let number = match arguments.values.first() {
        None => {
            return Err("bad argument #1 to tonumber (value expected)"
                .to_owned()
                .into());
        }
        Some(Value::String(text)) => numbers::read(&text.to_string_lossy(), base),
        Some(value) => number(value),
    };
    Ok(vec![number.map_or(Value::Nil, Value::Number)])
}
