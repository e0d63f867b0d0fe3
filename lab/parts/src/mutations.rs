//! Objects with one value changed, as a careless client or a later version of the API may leave them.

use serde_json::{Value, json};

/// An object with one value changed.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The JSON pointer to the value.
    pub path: String,
    /// Set if the value is of another type, and neither null nor removed.
    pub mistyped: bool,
    /// The changed object.
    pub object: Value,
}

/// Returns the objects that differ from `object` in one value, which is removed, null, or of another type.
/// Every value at every depth changes in turn.
pub fn mutations(object: &Value) -> Vec<Mutation> {
    let mut pointers = Vec::new();
    collect(object, String::new(), &mut pointers);
    let changed = pointers.iter().flat_map(|path| {
        let others = [
            json!(null),
            json!(7),
            json!("x"),
            json!(true),
            json!([7]),
            json!({ "x": 7 }),
        ];
        let replaced = others.into_iter().filter_map(move |other| {
            let mut object = object.clone();
            let value = object.pointer_mut(path)?;
            let mistyped = !other.is_null();
            if mistyped && type_of(value) == type_of(&other) {
                return None;
            }
            *value = other;
            Some(Mutation {
                path: path.clone(),
                mistyped,
                object,
            })
        });
        replaced.chain(removed(object, path))
    });
    changed.collect()
}

fn removed(object: &Value, path: &str) -> Option<Mutation> {
    let mut object = object.clone();
    let (parent, name) = path.rsplit_once('/')?;
    match object.pointer_mut(parent)? {
        Value::Object(fields) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"))?;
        }
        Value::Array(list) => {
            list.remove(name.parse().ok()?);
        }
        _ => return None,
    }
    Some(Mutation {
        path: path.to_owned(),
        mistyped: false,
        object,
    })
}

fn collect(value: &Value, path: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{path}/{name}"), pointers);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{path}/{index}"), pointers);
            }
        }
        _ => {}
    }
    pointers.push(path);
}

fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_removed_nulled_and_mistyped() {
        let mutations = mutations(&json!({ "a/b": ["x"] }));
        let has = |path: &str, object: Value| {
            mutations
                .iter()
                .any(|m| m.path == path && m.object == object)
        };
        assert!(has("/a~1b/0", json!({ "a/b": [] })));
        assert!(has("/a~1b/0", json!({ "a/b": [null] })));
        assert!(has("/a~1b/0", json!({ "a/b": [7] })));
        assert!(has("/a~1b", json!({})));
        assert!(has("/a~1b", json!({ "a/b": { "x": 7 } })));
        assert!(has("", json!("x")));
        // Of five types, all but its own; null; and each but the root removed.
        assert_eq!(mutations.len(), 3 * (4 + 1) + 2);
        assert_eq!(mutations.iter().filter(|m| m.mistyped).count(), 3 * 4);
    }
}
