//! Reads YAML as Kubernetes' own programs do (`sigs.k8s.io/yaml`, go-yaml 2): by the words of YAML 1.1, for which `0644` is
//! octal and `yes` is true. The value of a key that stands twice is the last one.

use std::collections::{BTreeMap, HashMap};

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::number::{number, of_float};

/// The most bytes that anchors and aliases may copy: no object is larger.
const MOST_COPIED: usize = 8 * 1024 * 1024;

/// Returns the documents of a text, each as JSON, whose numbers have all their digits.
///
/// # Errors
/// Fails if it is no YAML, or says something that JSON cannot.
pub fn documents(text: &str) -> Result<Vec<String>, String> {
    // JSON is YAML, but for escapes and long keys that parsers of YAML refuse.
    if text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Ok(vec![text.to_owned()]);
    }
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let line = span.start.line();
        let read = reader.read(event);
        read.map_err(|problem| format!("line {line}: {problem}"))?;
    }
    Ok(reader.documents)
}

/// Returns the one document of a text, as JSON; null if it has none.
///
/// # Errors
/// Fails as [`documents`] does, or if it has more than one.
pub fn document(text: &str) -> Result<String, String> {
    let mut documents = documents(text)?;
    match documents.len() {
        0 | 1 => Ok(documents.pop().unwrap_or_else(|| "null".to_owned())),
        more => Err(format!("it has {more} documents, and not one")),
    }
}

#[derive(Default)]
struct Reader {
    documents: Vec<String>,
    /// The collections that are open, from the outermost.
    open: Vec<Open>,
    /// The values that the anchors name, as JSON.
    anchors: HashMap<usize, String>,
    copied: usize,
}

struct Open {
    anchor: usize,
    collection: Collection,
}

enum Collection {
    List(Vec<String>),
    /// The entries, and the key whose value comes next.
    Map(BTreeMap<String, String>, Option<Key>),
}

enum Key {
    Name(String),
    /// `<<`: the entries of another map.
    Merge,
}

impl Reader {
    fn read(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Alias(anchor) => {
                let named = self.anchors.get(&anchor);
                let named = named.ok_or("an alias is of what it is in")?.clone();
                self.copy(&named)?;
                self.add(named)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                if is_plain && tag.is_none() && text == "<<" && self.expects_key() {
                    self.set_key(Key::Merge);
                    return Ok(());
                }
                let value = scalar(&text, is_plain, tag.as_deref())?;
                self.anchor(anchor, &value)?;
                self.add(value)
            }
            Event::SequenceStart(_, anchor, _) => {
                let collection = Collection::List(Vec::new());
                self.open.push(Open { anchor, collection });
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                let collection = Collection::Map(BTreeMap::new(), None);
                self.open.push(Open { anchor, collection });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { anchor, collection }) => {
                    let value = collection.into_json();
                    self.anchor(anchor, &value)?;
                    self.add(value)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        let innermost = self.open.last().map(|open| &open.collection);
        matches!(innermost, Some(Collection::Map(_, None)))
    }

    fn set_key(&mut self, next: Key) {
        if let Some(Collection::Map(_, key)) = self.open.last_mut().map(|open| &mut open.collection)
        {
            *key = Some(next);
        }
    }

    /// Adds a value, as JSON, to the innermost collection.
    fn add(&mut self, value: String) -> Result<(), String> {
        match self.open.last_mut().map(|open| &mut open.collection) {
            None => self.documents.push(value),
            Some(Collection::List(items)) => items.push(value),
            Some(Collection::Map(entries, key)) => match key.take() {
                None => *key = Some(Key::Name(name(&value)?)),
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge) => merge(entries, &value)?,
            },
        }
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, value: &str) -> Result<(), String> {
        if anchor > 0 {
            self.copy(value)?;
            self.anchors.insert(anchor, value.to_owned());
        }
        Ok(())
    }

    /// Counts a copy.
    fn copy(&mut self, value: &str) -> Result<(), String> {
        self.copied += value.len();
        if self.copied > MOST_COPIED {
            return Err("the aliases make too much of it".to_owned());
        }
        Ok(())
    }
}

impl Collection {
    fn into_json(self) -> String {
        match self {
            Self::List(items) => format!("[{}]", items.join(",")),
            Self::Map(entries, _) => {
                let entries = entries.into_iter();
                let entries = entries.map(|(name, value)| format!("{}:{value}", json!(name)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Returns the name in an object of a key.
fn name(key: &str) -> Result<String, String> {
    match key.as_bytes() {
        [b'"', ..] => serde_json::from_str(key).map_err(|error| error.to_string()),
        [b'[' | b'{', ..] | b"null" => Err("a list, a map or null cannot be a key".to_owned()),
        _ => Ok(key.to_owned()),
    }
}

/// Adds the entries of another map, or of each of a list of maps, the first of which has the last word.
fn merge(entries: &mut BTreeMap<String, String>, others: &str) -> Result<(), String> {
    if let Ok(others) = serde_json::from_str::<Vec<&RawValue>>(others) {
        let mut others = others.into_iter().rev();
        return others.try_for_each(|other| merge_one(entries, other.get()));
    }
    merge_one(entries, others)
}

fn merge_one(entries: &mut BTreeMap<String, String>, other: &str) -> Result<(), String> {
    let other: BTreeMap<String, &RawValue> =
        serde_json::from_str(other).map_err(|_| "what is merged is no map")?;
    let other = other.into_iter();
    entries.extend(other.map(|(name, value)| (name, value.get().to_owned())));
    Ok(())
}

/// Returns a scalar as JSON.
fn scalar(text: &str, is_plain: bool, tag: Option<&Tag>) -> Result<String, String> {
    let Some(tag) = tag else {
        return if is_plain {
            plain(text)
        } else {
            Ok(json!(text).to_string())
        };
    };
    let value = match tag.core_suffix() {
        Some("null" | "bool" | "int" | "float") => plain(text)?,
        _ if tag.suffix() == "binary" => return Err("binary values have no JSON".to_owned()),
        _ => return Ok(json!(text).to_string()),
    };
    let read: Value = serde_json::from_str(&value).map_err(|error| error.to_string())?;
    let is_so = match tag.core_suffix() {
        Some("null") => read.is_null(),
        Some("bool") => read.is_boolean(),
        _ => read.is_number(),
    };
    is_so
        .then_some(value)
        .ok_or_else(|| "a value is not of the type of its tag".to_owned())
}

/// Returns the meaning of a plain scalar, as JSON.
fn plain(text: &str) -> Result<String, String> {
    const SIGNS: [char; 2] = ['+', '-'];
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => "null".to_owned(),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            "true".to_owned()
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            "false".to_owned()
        }
        ".nan" | ".NaN" | ".NAN" => return Err("NaN has no JSON".to_owned()),
        _ if [".inf", ".Inf", ".INF"].contains(&text.strip_prefix(SIGNS).unwrap_or(text)) => {
            return Err("infinity has no JSON".to_owned());
        }
        _ => {
            let found = match text.as_bytes() {
                [b'0'..=b'9' | b'+' | b'-', ..] => number(&text.replace('_', "")),
                [b'.', ..] => of_float(text),
                _ => None,
            };
            found.unwrap_or_else(|| json!(text).to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        document(text).unwrap()
    }

    /// Case P112: each value is the one that `sigs.k8s.io/yaml` 1.6 makes of it, but for decimal integers beyond 64 bits, which
    /// lose no digit.
    #[test]
    fn values_are_kubernetes() {
        for (yaml, json) in [
            ("0644", "420"),
            ("-010", "-8"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0b11", "3"),
            ("08", "8"),
            ("-00", "0"),
            ("-0089", "-89"),
            ("0xFFFFFFFFFFFFFFFF", "18446744073709551615"),
            ("0x10000000000000000", "\"0x10000000000000000\""),
            ("-0x8000000000000000", "-9223372036854775808"),
            ("-0x8000000000000001", "\"-0x8000000000000001\""),
            ("+0x7FFFFFFFFFFFFFFF", "9223372036854775807"),
            ("+0x8000000000000000", "\"+0x8000000000000000\""),
            ("0o2000000000000000000000", "\"0o2000000000000000000000\""),
            ("01777777777777777777777", "18446744073709551615"),
            ("02000000000000000000000", "2000000000000000000000"),
            ("-01777777777777777777777", "-1777777777777777777777"),
            ("1_000", "1000"),
            ("+5", "5"),
            ("12345678901234567890", "12345678901234567890"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("1e3", "1000"),
            ("1.10", "1.1"),
            ("1.", "1"),
            (".5", "0.5"),
            ("-1.5e-9", "-1.5e-9"),
            ("1e400", "\"1e400\""),
            ("yes", "true"),
            ("Off", "false"),
            ("yEs", "\"yEs\""),
            ("~", "null"),
            ("2024-02-28", "\"2024-02-28\""),
            ("1:30", "\"1:30\""),
            ("1.2.3", "\"1.2.3\""),
            ("\"007\"", "\"007\""),
            ("'it''s'", "\"it's\""),
            ("!!str 1", "\"1\""),
            ("!!float 1", "1"),
            ("!own 1", "\"1\""),
            ("|\n  a\n    b\n", "\"a\\n  b\\n\""),
            (">-\n  a\n  b\n", "\"a b\""),
            ("[a, {b: 1}]", "[\"a\",{\"b\":1}]"),
            (
                "{b: 1, a: , yes: 2, 010: 3}",
                "{\"8\":3,\"a\":null,\"b\":1,\"true\":2}",
            ),
            ("a: 1\na: 2\n", "{\"a\":2}"),
            ("{\"a\": \"\\ud83d\\ude00\"}", "{\"a\": \"\\ud83d\\ude00\"}"),
        ] {
            assert_eq!(read(yaml), json, "{yaml}");
        }
    }

    /// The value of an anchor is copied, and a merged one is overridden by those after it.
    #[test]
    fn aliases_are_copied() {
        let yaml = "base: &base {a: 1, b: 1}\nuse: *base\nmerged: {<<: *base, b: 2}\nlist: {<<: [{a: 3}, *base]}\n";
        let json = concat!(
            r#"{"base":{"a":1,"b":1},"list":{"a":3,"b":1},"#,
            r#""merged":{"a":1,"b":2},"use":{"a":1,"b":1}}"#
        );
        assert_eq!(read(yaml), json);
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            let aliases = [&*before; 8].join(", ");
            bomb = format!("{bomb}a{level}: &a{level} [{aliases}]\n");
        }
        let error = documents(&bomb).unwrap_err();
        assert!(error.contains("aliases"), "{error}");
    }

    #[test]
    fn documents_are_told_apart() {
        let texts = "---\na: 1\n---\n# nothing\n---\nb: 2\n";
        assert_eq!(
            documents(texts).unwrap(),
            ["{\"a\":1}", "null", "{\"b\":2}"]
        );
        assert!(document(texts).unwrap_err().contains("3 documents"));
        assert_eq!(documents("").unwrap(), [""; 0]);
        assert_eq!(document("# nothing\n").unwrap(), "null");
    }

    /// A value that JSON cannot say is refused, and its place is told.
    #[test]
    fn what_is_no_json_is_refused() {
        for (yaml, problem) in [
            ("a: [1", "line"),
            ("a: 1\nb: .inf", "line 2: infinity"),
            ("{[a]: 1}", "cannot be a key"),
            ("~: 1", "cannot be a key"),
            ("!!int x", "tag"),
            ("!!binary aGk=", "binary"),
            ("a: &a [*a]", "alias"),
            ("<<: 1", "no map"),
        ] {
            let error = documents(yaml).unwrap_err();
            assert!(error.contains(problem), "{yaml}: {error}");
        }
    }
}
