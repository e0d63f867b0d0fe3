//! JSON as Lua has it.

use mlua::{Lua, Value};
use serde_json::Value as Json;

/// Returns a value as a script gets it. Null vanishes, in lists too, where later elements move up; numbers are doubles.
pub(crate) fn decode(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(list) => decode_list(lua, list)?,
        Json::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (name, field) in fields {
                table.raw_set(name.as_str(), decode(lua, field)?)?;
            }
            Value::Table(table)
        }
    })
}

/// Returns a list as a script gets it.
pub(crate) fn decode_list(lua: &Lua, list: &[Json]) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(list.len(), 0)?;
    let present = list.iter().filter(|element| !element.is_null());
    for (place, element) in (1..).zip(present) {
        table.raw_set(place, decode(lua, element)?)?;
    }
    Ok(Value::Table(table))
}
