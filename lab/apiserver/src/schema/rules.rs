//! The CEL rules (`x-kubernetes-validations`) about emptiness, the only ones that this server evaluates.

use serde_json::Value;

use crate::error::Cause;

const RULES: &str = "x-kubernetes-validations";

#[derive(Debug, PartialEq, Eq)]
enum Rule<'a> {
    /// `size(self) > 0`
    NotEmpty,
    /// `has(self.field) && size(self.field) > 0`
    HasNotEmpty(&'a str),
}

impl<'a> Rule<'a> {
    /// Returns `None` for a rule of another form.
    fn parse(text: &'a str) -> Option<Self> {
        if text == "size(self) > 0" {
            return Some(Self::NotEmpty);
        }
        let (has, size) = text.split_once(" && ")?;
        let field = has.strip_prefix("has(self.")?.strip_suffix(')')?;
        let sized = size.strip_prefix("size(self.")?.strip_suffix(") > 0")?;
        (field == sized).then_some(Self::HasNotEmpty(field))
    }

    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::NotEmpty => !is_empty(value),
            Self::HasNotEmpty(field) => value.get(field).is_some_and(|value| !is_empty(value)),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns `true` if a schema has a rule that this server does not evaluate.
pub(crate) fn has_unknown(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let unknown = rules(schema).any(|(rule, _)| Rule::parse(rule).is_none());
            unknown || fields.values().any(has_unknown)
        }
        Value::Array(items) => items.iter().any(has_unknown),
        _ => false,
    }
}

/// Finds the values that break a rule.
pub(super) fn find(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() {
        return;
    }
    for (rule, message) in rules(schema) {
        if Rule::parse(rule).is_some_and(|rule| !rule.holds(value)) {
            causes.push(Cause {
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {message}"),
                field: path.to_owned(),
            });
        }
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = &schema["properties"][name];
                let inner = if inner.is_null() {
                    &schema["additionalProperties"]
                } else {
                    inner
                };
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                find(inner, value, &path, causes);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find(&schema["items"], item, &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}

/// Returns the rules of a schema itself, with their messages.
fn rules(schema: &Value) -> impl Iterator<Item = (&str, &str)> {
    let rules = schema[RULES].as_array().into_iter().flatten();
    rules.filter_map(|entry| {
        let rule = entry["rule"].as_str()?;
        Some((rule, entry["message"].as_str().unwrap_or(rule)))
    })
}
