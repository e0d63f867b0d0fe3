//! A JSON reader that reports duplicate fields. The last one counts, as in Go.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads JSON, and returns it with the paths of its duplicate fields.
pub(crate) fn read(json: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut reader = Reader {
        path: String::new(),
        repeated: Vec::new(),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = Seed(&mut reader).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, reader.repeated))
}

struct Reader {
    /// The current path: `spec.rules[0]`.
    path: String,
    repeated: Vec<String>,
}

/// The value at the current path of the reader.
struct Seed<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(number.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let here = self.0.path.len();
        loop {
            let index = list.len().to_string();
            self.0.path.extend(["[", &index, "]"]);
            let item = items.next_element_seed(Seed(&mut *self.0))?;
            self.0.path.truncate(here);
            match item {
                Some(item) => list.push(item),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        let here = self.0.path.len();
        while let Some(Name(name)) = fields.next_key()? {
            if here > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&name);
            let value = fields.next_value_seed(Seed(&mut *self.0))?;
            if object.insert(name, value).is_some() && !self.0.repeated.contains(&self.0.path) {
                self.0.repeated.push(self.0.path.clone());
            }
            self.0.path.truncate(here);
        }
        Ok(object.into())
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name(String);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    /// JSON without repeated fields is read as it is.
    #[test]
    fn unrepeated_fields_are_kept() {
        for text in [
            r#"{"a":[1,-2,3.5,"x",true,null,{"b":{}}],"c":[]}"#,
            "7",
            r#""text""#,
            "[[[]]]",
        ] {
            let plain: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text.as_bytes()).unwrap(), (plain, vec![]));
        }
        for text in ["", "{", "{}{}", "1e400", "\u{0}", r#"{"a":1,}"#] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
    }

    /// The last of a repeated field counts and its path is named.
    #[test]
    fn last_repeated_field_counts() {
        let text = r#"{"spec":{"size":1,"rules":[{"a":1},{"b":1,"b":2,"b":3}],"size":2}}"#;
        let (value, repeated) = read(text.as_bytes()).unwrap();
        assert_eq!(
            value,
            json!({ "spec": { "size": 2, "rules": [{ "a": 1 }, { "b": 3 }] } })
        );
        assert_eq!(repeated, ["spec.rules[1].b", "spec.size"]);
    }
}
