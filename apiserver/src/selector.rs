//! Which objects a list or watch is about: label and field selectors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::ApiError;
use crate::kinds::{Kind, Selectable};
use crate::metadata;
use crate::names;
use crate::request::{ObjectPath, Query};
use crate::store::Object;

/// What an object must be to be selected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    /// The start of the keys: a namespace with its slash, or nothing.
    prefix: String,
    /// The one key, if only one object can be meant.
    key: Option<String>,
    labels: Vec<Requirement>,
    fields: Vec<(Selectable, bool, String)>,
}

impl Selector {
    /// What a request selects.
    ///
    /// # Errors
    /// When a selector cannot be read or names a field that cannot be selected by.
    pub(crate) fn new(kind: &Kind, path: &ObjectPath, query: &Query) -> Result<Self, ApiError> {
        let namespace = path.namespace.as_deref();
        let labels = parse_labels(query.text("labelSelector").unwrap_or_default())
            .map_err(|why| ApiError::bad_request(format!("unable to parse requirement: {why}")))?;
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

    /// Whether some objects of the namespace may be left out.
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

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Above(bound) => number().is_some_and(|number| number > *bound),
            Operator::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Reads a label selector (`k8s.io/apimachinery/pkg/labels`): requirements with commas between,
/// each `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key>1`.
pub(crate) fn parse_labels(selector: &str) -> Result<Vec<Requirement>, String> {
    let mut requirements = Vec::new();
    for part in split(selector)? {
        requirements.push(parse_requirement(part.trim())?);
    }
    Ok(requirements)
}

/// The parts between those commas that are not in parentheses.
fn split(selector: &str) -> Result<Vec<&str>, String> {
    if selector.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (mut parts, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (index, byte) in selector.bytes().enumerate() {
        match byte {
            b'(' if !is_inside => is_inside = true,
            b')' if is_inside => is_inside = false,
            b'(' | b')' => return Err("unbalanced parentheses".to_owned()),
            b',' if !is_inside => {
                parts.push(&selector[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err("found '', expected: ',' or ')'".to_owned());
    }
    parts.push(&selector[start..]);
    Ok(parts)
}

fn parse_requirement(text: &str) -> Result<Requirement, String> {
    if let Some(key) = text.strip_prefix('!') {
        return requirement(key.trim(), Operator::Absent);
    }
    let end = text
        .find(|c: char| c.is_whitespace() || "=!<>(".contains(c))
        .unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let rest = rest.trim_start();
    if rest.is_empty() {
        return requirement(key, Operator::Exists);
    }
    let words = |after: &str| -> Option<Result<Vec<String>, String>> {
        let list = rest.strip_prefix(after)?.trim();
        let inner = list
            .strip_prefix('(')
            .and_then(|list| list.strip_suffix(')'));
        Some(match inner {
            Some(inner) => Ok(inner
                .split(',')
                .map(|word| word.trim().to_owned())
                .collect()),
            None => Err(format!("found '{list}', expected: '('")),
        })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    let number = |value: &str| {
        value.trim().parse().map_err(|_| {
            format!("for 'Gt', 'Lt' operators, the value must be an integer: {value:?}")
        })
    };
    let operator = if let Some(values) = words("notin") {
        Operator::NotIn(values?)
    } else if let Some(values) = words("in") {
        Operator::In(values?)
    } else if let Some(value) = rest.strip_prefix("!=") {
        Operator::NotIn(one(value))
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        Operator::In(one(value))
    } else if let Some(value) = rest.strip_prefix('>') {
        Operator::Above(number(value)?)
    } else if let Some(value) = rest.strip_prefix('<') {
        Operator::Below(number(value)?)
    } else {
        return Err(format!(
            "found '{rest}', expected: in, notin, =, ==, !=, gt, lt"
        ));
    };
    requirement(key, operator)
}

fn requirement(key: &str, operator: Operator) -> Result<Requirement, String> {
    if let Some(why) = names::qualified_name(key) {
        return Err(format!("key: Invalid value: {key:?}: {why}"));
    }
    if let Operator::In(values) | Operator::NotIn(values) = &operator {
        for value in values {
            if let Some(why) = names::label_value(value) {
                return Err(format!("values: Invalid value: {value:?}: {why}"));
            }
        }
    }
    Ok(Requirement {
        key: key.to_owned(),
        operator,
    })
}

/// Kinds with fields of their own say so otherwise than those that have only the common ones.
fn unsupported(kind: &Kind, label: &str) -> ApiError {
    if kind.custom || !kind.storage.selectable.is_empty() {
        return ApiError::bad_request(format!("field label not supported: {label}"));
    }
    ApiError::bad_request(format!(
        "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    ))
}

/// Reads a field selector: `a=b,c!=d`, with `\` before a comma, an equals sign or itself.
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
        let value = unescape(value).ok_or_else(|| {
            ApiError::bad_request(format!(
                "invalid field selector: invalid escape in '{value}'"
            ))
        })?;
        fields.push((field, equal, value));
    }
    Ok(fields)
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
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

fn unescape(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                _ => return None,
            },
            '=' => return None,
            letter => text.push(letter),
        }
    }
    Some(text)
}
