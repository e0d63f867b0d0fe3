//! YAML, where Kubernetes asks for it, and as Kubernetes reads it.

mod number;
mod read;

pub use self::read::{document, documents};

/// Returns JSON that means the same when it is read as YAML 1.1, as an API server reads an apply.
///
/// JSON is YAML but for a few characters within its texts: YAML refuses control characters, and folds the spaces
/// around a letter that it takes for a line break. Escaped, they are read as they are. Others are not escaped: a key of more
/// than 1,024 letters is none in YAML, and for a character beyond U+FFFF JSON has an escape that YAML lacks.
pub fn as_yaml(json: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(json) {
        Ok(json) if json.contains(is_read_otherwise) => escaped(&json).into_bytes(),
        Ok(json) => json.into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_read_otherwise(letter) {
            let escape = format!("\\u{:04x}", u32::from(letter));
            escaped.push_str(&escape);
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// Returns `true` for the characters that JSON allows within a text as they are, and YAML does not.
fn is_read_otherwise(letter: char) -> bool {
    matches!(
        letter,
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// A character that YAML reads otherwise is escaped, and no other is.
    #[test]
    fn special_letters_are_escaped() {
        let text = "a\u{7f}\u{85} \u{2028} \u{2029}\u{fffe}\u{ffff}ä漢😀\u{a0}";
        let json = json!({ "text": text }).to_string();
        let expected = "{\"text\":\"a\\u007f\\u0085 \\u2028 \\u2029\\ufffe\\uffffä漢😀\u{a0}\"}";
        assert_eq!(as_yaml(json.into_bytes()), expected.as_bytes());
    }

    proptest! {
        /// As JSON it is the same as before.
        #[test]
        fn meaning_stays(text in any::<String>(), key in any::<String>()) {
            let object = json!({ key: [text] });
            let yaml = String::from_utf8(as_yaml(object.to_string().into_bytes())).unwrap();
            prop_assert!(!yaml.contains(is_read_otherwise));
            prop_assert_eq!(serde_json::from_str::<Value>(&yaml).unwrap(), object);
        }
    }
}
