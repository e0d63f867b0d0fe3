//! YAML as kube-apiserver reads it: with go-yaml 2, which follows YAML 1.1.
//!
//! JSON is YAML, too, and clients send it where YAML is asked for. But YAML reads some of its texts otherwise, and
//! so does kube-apiserver: control characters are refused, and a line separator within a text is a line break,
//! which is folded. Tried on kube-apiserver 1.36 with the conformance case `yaml_folds_line_separators`. A client
//! whose texts must arrive as they are escapes these characters (`\u2028`).

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

/// The line breaks of YAML 1.1 that JSON allows within a string.
const BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Parses a document.
///
/// # Errors
/// Returns go-yaml's message, or one in its stead, if it is not YAML.
pub(crate) fn parse(document: &[u8]) -> Result<Value, String> {
    let text = str::from_utf8(document).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
    if !text.chars().all(is_printable) {
        return Err("yaml: control characters are not allowed".to_owned());
    }
    // The JSON parser reads all of JSON, also texts that the YAML parser, of version 1.2, would refuse.
    if let Ok(value) = serde_json::from_str(&folded(text)?) {
        if has_surrogate(text) {
            return Err("yaml: found invalid Unicode character escape code".to_owned());
        }
        return Ok(value);
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.to_string();
        error.lines().next().unwrap_or_default().to_owned()
    })
}

/// Returns `true` for the characters that go-yaml's reader allows.
fn is_printable(letter: char) -> bool {
    matches!(letter,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

/// Returns `true` if a JSON document has half of a surrogate pair, by which JSON escapes letters beyond U+FFFF, and
/// YAML nothing.
fn has_surrogate(json: &str) -> bool {
    let mut rest = json;
    while let Some((_, escape)) = rest.split_once('\\') {
        let code = escape.strip_prefix('u').and_then(|code| code.get(..4));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        if code.is_some_and(|code| (0xd800..0xe000).contains(&code)) {
            return true;
        }
        let mut letters = escape.chars();
        letters.next();
        rest = letters.as_str();
    }
    false
}

/// Folds the line breaks within the strings of a JSON document. Any other document may be returned changed
/// somehow: it is not parsed.
fn folded(json: &str) -> Result<Cow<'_, str>, String> {
    if !json.contains(BREAKS) {
        return Ok(json.into());
    }
    let mut letters = json.chars().peekable();
    let mut folded = String::with_capacity(json.len());
    while let Some(letter) = letters.next() {
        folded.push(letter);
        if letter == '"' {
            let has_break = fold_string(&mut letters, &mut folded);
            let is_key = letters.clone().find(|letter| !letter.is_ascii_whitespace()) == Some(':');
            if has_break && is_key {
                return Err("yaml: did not find expected ',' or '}'".to_owned());
            }
        }
    }
    Ok(folded.into())
}

/// Copies a string up to its end and folds its line breaks. Returns `true` if it has any.
fn fold_string(letters: &mut Peekable<Chars<'_>>, folded: &mut String) -> bool {
    let mut has_break = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                folded.push('"');
                break;
            }
            '\\' => {
                folded.push('\\');
                folded.extend(letters.next());
            }
            ' ' => {
                let mut blanks = 1;
                while letters.next_if_eq(&' ').is_some() {
                    blanks += 1;
                }
                if !letters.peek().is_some_and(|next| BREAKS.contains(next)) {
                    folded.extend(std::iter::repeat_n(' ', blanks));
                }
            }
            first if BREAKS.contains(&first) => {
                has_break = true;
                fold(first, letters, folded);
            }
            other => folded.push(other),
        }
    }
    has_break
}

/// Folds a line break and the breaks after it: blanks around breaks go, and a single U+0085 becomes a space
/// (`yaml_parser_scan_flow_scalar`).
fn fold(first: char, letters: &mut Peekable<Chars<'_>>, folded: &mut String) {
    let mut rest = String::new();
    while let Some(next) = letters.next_if(|next| *next == ' ' || BREAKS.contains(next)) {
        if next != ' ' {
            rest.push_str(broken(next));
        }
    }
    match first {
        '\u{85}' if rest.is_empty() => folded.push(' '),
        '\u{85}' => folded.push_str(&rest),
        separator => {
            folded.push(separator);
            folded.push_str(&rest);
        }
    }
}

/// Returns a line break as it is kept in a JSON string: U+0085 is an ordinary one, the separators stay.
fn broken(letter: char) -> &'static str {
    match letter {
        '\u{2028}' => "\u{2028}",
        '\u{2029}' => "\u{2029}",
        _ => "\\n",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    /// Compares with the results of go-yaml 2.4, which kube-apiserver 1.36 has, for the same documents.
    #[test]
    fn separators_fold_as_in_go() {
        for (text, read) in [
            ("x\u{85}y", "x y"),
            ("x \u{85} y", "x y"),
            ("\u{85}\u{85}xy\u{85}", "\nxy "),
            ("x\u{2028}y", "x\u{2028}y"),
            ("x \u{2028} y", "x\u{2028}y"),
            ("\u{2029}\u{2029}xy\u{2029}", "\u{2029}\u{2029}xy\u{2029}"),
            ("x\\u2028  y\\\\", "x\u{2028}  y\\"),
            ("x \u{a0}\u{feff} y", "x \u{a0}\u{feff} y"),
        ] {
            let document = format!("{{\"a\": \"{text}\", \"b\": 1}}");
            let expected = json!({ "a": read, "b": 1 });
            assert_eq!(parse(document.as_bytes()), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn control_characters_are_refused() {
        for letter in [
            '\u{7f}', '\u{80}', '\u{84}', '\u{86}', '\u{9f}', '\u{fffe}', '\u{ffff}',
        ] {
            for document in [
                format!("{{\"a\": \"x{letter}y\"}}"),
                format!("a: x{letter}y"),
            ] {
                let refused = parse(document.as_bytes()).unwrap_err();
                assert_eq!(refused, "yaml: control characters are not allowed");
            }
        }
    }

    #[test]
    fn surrogate_pairs_are_refused() {
        let refused = parse(br#"{"a": "x\ud83d\ude00"}"#).unwrap_err();
        assert_eq!(refused, "yaml: found invalid Unicode character escape code");
        let raw = json!({ "a": "\u{1f600}\\ud83d" });
        assert_eq!(parse(raw.to_string().as_bytes()), Ok(raw));
    }

    #[test]
    fn keys_have_no_separators() {
        let refused = parse("{\"a\u{2028}b\": \"x\"}".as_bytes()).unwrap_err();
        assert_eq!(refused, "yaml: did not find expected ',' or '}'");
    }
}
