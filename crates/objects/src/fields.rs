//! Fields of an object, by the JSON pointer of their parent.

use serde_json::Value;

/// Removes the fields `names` of the map at `pointer`, if there is one.
pub fn remove(object: &mut Value, pointer: &str, names: &[&str]) {
    if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// Puts a field into the map at `pointer`, if there is one.
pub fn insert(object: &mut Value, pointer: &str, name: &str, value: Value) {
    if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.insert(name.to_owned(), value);
    }
}
