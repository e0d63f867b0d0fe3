//! The mistake in a text, without a word of it. Parsers quote their input, and that may be a credential.

use std::error::Error;
use std::fmt;

use serde_json::error::Category;

/// A mistake in a text that may hold a credential: its kind, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    kind: String,
    /// The line and the column, from 1.
    place: Option<(u64, u64)>,
}

/// The beginnings of serde's messages about a value. The rest quotes it.
const OF_VALUES: [&str; 5] = [
    "invalid type",
    "invalid value",
    "invalid length",
    "unknown variant",
    "unknown field",
];

/// The beginnings of serde's messages about a field, which name it as our own types do.
const OF_FIELDS: [&str; 2] = ["missing field", "duplicate field"];

impl Mistake {
    /// Returns the mistake that `error` tells of, if it is of a parser.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(error) = error.downcast_ref::<serde_json::Error>() {
            return Some(error.into());
        }
        error.downcast_ref::<serde_saphyr::Error>().map(Self::from)
    }
}

impl From<&serde_json::Error> for Mistake {
    fn from(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let (text, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
        let kind = match error.classify() {
            Category::Data => of_serde(text),
            Category::Io | Category::Syntax | Category::Eof => text.to_owned(),
        };
        let place = (error.line() as u64, error.column() as u64);
        Self {
            kind,
            place: (place.0 > 0).then_some(place),
        }
    }
}

impl From<&serde_saphyr::Error> for Mistake {
    fn from(error: &serde_saphyr::Error) -> Self {
        let place = error.location();
        Self {
            kind: of_yaml(error.without_snippet()),
            place: place.map(|place| (place.line(), place.column())),
        }
    }
}

fn of_yaml(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error::{
        AliasError, DuplicateMappingKey, Eof, ExternalMessage, MultipleDocuments,
        SerdeInvalidLength, SerdeInvalidType, SerdeInvalidValue, SerdeMissingField, Unexpected,
    };
    let kind = match error {
        AliasError { error, .. } => return of_yaml(error.without_snippet()),
        // The parser's own words quote a character at most.
        ExternalMessage { msg, .. } => msg
            .split('`')
            .next()
            .unwrap_or_default()
            .trim_end_matches([':', ' ']),
        Eof { .. } => "unexpected end",
        MultipleDocuments { .. } => "more than one document",
        DuplicateMappingKey { .. } => "a key that is there twice",
        SerdeInvalidType { expected, .. } => return format!("invalid type, expected {expected}"),
        SerdeInvalidValue { expected, .. } => return format!("invalid value, expected {expected}"),
        SerdeInvalidLength { expected, .. } => {
            return format!("invalid length, expected {expected}");
        }
        SerdeMissingField { field, .. } => return format!("missing field `{field}`"),
        Unexpected { expected, .. } => return format!("expected {expected}"),
        _ => "no such YAML as is expected",
    };
    kind.to_owned()
}

/// Returns the kind of mistake of serde's message about it.
fn of_serde(message: &str) -> String {
    if OF_FIELDS.iter().any(|kind| message.starts_with(kind)) {
        return message.to_owned();
    }
    let mut kinds = OF_VALUES.into_iter();
    let Some(kind) = kinds.find(|kind| message.starts_with(kind)) else {
        return "invalid data".to_owned();
    };
    match message.rsplit_once(", expected ") {
        // Of these the message always ends with the expectation.
        Some((_, expected)) if kind.starts_with("invalid") => {
            format!("{kind}, expected {expected}")
        }
        _ => kind.to_owned(),
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.kind)
    }
}

impl Error for Mistake {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    const MARKER: &str = "not-a-real-token-4711";

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is never read")]
    struct User {
        token: String,
        kind: Option<Kind>,
        port: Option<u16>,
    }

    #[derive(Debug, Deserialize)]
    enum Kind {
        A,
    }

    fn yaml<T: DeserializeOwned + fmt::Debug>(text: &str) -> String {
        let error = serde_saphyr::from_str::<T>(&text.replace("SECRET", MARKER)).unwrap_err();
        assert_eq!(Mistake::of(&error), Some(Mistake::from(&error)));
        Mistake::from(&error).to_string()
    }

    fn json<T: DeserializeOwned + fmt::Debug>(text: &str) -> String {
        let error = serde_json::from_str::<T>(&text.replace("SECRET", MARKER)).unwrap_err();
        assert_eq!(Mistake::of(&error), Some(Mistake::from(&error)));
        Mistake::from(&error).to_string()
    }

    /// A mistake in a text is told by its kind and place, whatever the parser says: a person looks there himself.
    #[test]
    fn text_is_never_quoted() {
        let without_colon =
            "user:\n  token: SECRET\n  client-key-data \"left out the colon\"\na: []\n";
        let told = [
            yaml::<serde_json::Value>(without_colon),
            yaml::<serde_json::Value>("a: [SECRET"),
            yaml::<serde_json::Value>("a: *SECRET"),
            yaml::<serde_json::Value>("a: \"SECRET"),
            yaml::<serde_json::Value>("SECRET: 1\nSECRET: 2"),
            yaml::<serde_json::Value>("- SECRET\n---\n- b"),
            yaml::<serde_json::Value>("a: @SECRET"),
            yaml::<serde_json::Value>("a: !!binary SECRET-"),
            yaml::<BTreeMap<String, User>>("SECRET"),
            yaml::<User>("token: [SECRET]"),
            yaml::<User>("token: a\nSECRET: b"),
            yaml::<User>("token: a\nkind: SECRET"),
            yaml::<User>("token: a\nport: SECRET"),
            yaml::<User>("kind: A"),
            json::<User>("{\"token\": [\"SECRET\"]}"),
            json::<User>("{\"token\": \"a\", \"SECRET\": \"b\"}"),
            json::<User>("{\"token\": \"a\", \"kind\": \"SECRET, expected SECRET\"}"),
            json::<User>("{\"token\": \"a\", \"port\": \"SECRET, expected b\"}"),
            json::<User>("{\"token\": \"SECRET"),
            json::<User>("{\"token\": \"SECRET\" x}"),
            json::<User>("SECRET"),
        ];
        for told in &told {
            assert!(!told.contains(MARKER) && !told.contains('\n'), "{told}");
        }
        assert!(told[0].starts_with("line 3, column "), "{}", told[0]);
        assert!(told[13].contains("missing field `token`"), "{}", told[13]);
        assert!(
            told[14].ends_with("invalid type, expected a string"),
            "{}",
            told[14]
        );
        assert!(
            told[17].ends_with("invalid type, expected u16"),
            "{}",
            told[17]
        );
    }
}
