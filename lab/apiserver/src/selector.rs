//! Label and field selectors of lists and watches.

mod labels;

use serde_json::Value;

use self::labels::Requirement;

use crate::error::ApiError;
use crate::kinds::{Kind, Selectable};
use crate::metadata;
use crate::request::{ObjectPath, Query};
use crate::store::Object;

/// The conditions of a list or watch on its objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    /// The common prefix of the keys: a namespace with its slash, or nothing.
    prefix: String,
    /// The only key that can match, if there is one.
    key: Option<String>,
    labels: Vec<Requirement>,
    fields: Vec<(Selectable, bool, String)>,
}

impl Selector {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// Returns an error if a selector is malformed or names a field that is not selectable.
    pub(crate) fn new(kind: &Kind, path: &ObjectPath, query: &Query) -> Result<Self, ApiError> {
        let namespace = path.namespace.as_deref();
        let labels = labels::parse(query.text("labelSelector").unwrap_or_default())
            .map_err(ApiError::bad_request)?;
        let fields = parse_fields(kind, query.text("fieldSelector").unwrap_or_default())?;
        let mut key =
            (path.name.as_ref()).map(|name| kind.key(namespace.unwrap_or_default(), name));
        if !kind.namespaced && key.is_none() {
            let name = fields
                .iter()
                .find(|(field, equal, _)| *equal && field.label == "metadata.name");
            key = name.map(|(_, _, name)| name.clone());
        }
        Ok(Self {
            prefix: namespace
                .map(|namespace| format!("{namespace}/"))
                .unwrap_or_default(),
            key,
            labels,
            fields,
        })
    }

    /// Returns `true` if objects of the namespace may be left out.
    pub(crate) fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        if !object.key.starts_with(&self.prefix)
            || self.key.as_ref().is_some_and(|key| *key != object.key)
            || !self
                .labels
                .iter()
                .all(|requirement| requirement.matches(&object.labels))
        {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        // Parsed only now: labels and keys are indexed, fields are not.
        let object = object.value().unwrap_or(Value::Null);
        self.fields.iter().all(|(field, equal, value)| {
            let actual = match field.label.as_str() {
                "metadata.name" => metadata::text(&object, "name").to_owned(),
                "metadata.namespace" => metadata::text(&object, "namespace").to_owned(),
                _ => field.value(&object),
            };
            (actual == *value) == *equal
        })
    }
}

/// Returns the error for a field that is not selectable. Kinds with selectable fields of their own
/// word it differently.
fn unsupported(kind: &Kind, label: &str) -> ApiError {
    if kind.custom || !kind.storage.selectable.is_empty() {
        return ApiError::bad_request(format!("field label not supported: {label}"));
    }
    ApiError::bad_request(format!(
        "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    ))
}

/// Parses a field selector: `a=b,c!=d`, with `\` as the escape for a comma, an equals sign or
/// itself.
fn parse_fields(kind: &Kind, selector: &str) -> Result<Vec<(Selectable, bool, String)>, ApiError> {
    let mut fields = Vec::new();
    for term in split_escaped(selector) {
        if term.is_empty() {
            continue;
        }
        let (label, equal, value) = split_term(&term).ok_or_else(|| {
            ApiError::bad_request(format!(
                "invalid selector: '{selector}'; can't understand '{term}'"
            ))
        })?;
        let field = kind
            .selectable(label)
            .ok_or_else(|| unsupported(kind, label))?;
        let value = unescape(value)
            .map_err(|why| ApiError::bad_request(format!("invalid field selector: {why}")))?;
        fields.push((field, equal, value));
    }
    Ok(fields)
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    // `=` is part of all three operators, `=`, `==` and `!=`.
    if at > 0 && term.as_bytes()[at - 1] == b'!' {
        return Some((&term[..at - 1], false, &term[at + 1..]));
    }
    let value = &term[at + 1..];
    Some((&term[..at], true, value.strip_prefix('=').unwrap_or(value)))
}

fn split_escaped(selector: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut is_escaped = false;
    for letter in selector.chars() {
        match (letter, terms.last_mut()) {
            (',', _) if !is_escaped => terms.push(String::new()),
            (letter, Some(term)) => {
                is_escaped = letter == '\\' && !is_escaped;
                term.push(letter);
            }
            (_, None) => {}
        }
    }
    terms
}

fn unescape(value: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                Some(other) => return Err(format!("invalid escape sequence: \\{other}")),
                None => return Err("invalid escape sequence: \\".to_owned()),
            },
            '=' => {
                let code = u32::from(letter);
                return Err(format!("unescaped character in value: {code}"));
            }
            letter => text.push(letter),
        }
    }
    Ok(text)
}
