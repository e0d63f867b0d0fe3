//! Schemas of built-in kinds, from their Rust types and additional facts.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::facts::{ANYTHING, FACTS, Fact};

/// Returns the structural schema of a `k8s-openapi` type: without references, and with the lists
/// and defaults of Kubernetes.
pub(super) fn structural<T: JsonSchema>() -> Value {
    let mut generator = SchemaGenerator::default();
    let root = T::json_schema(&mut generator).to_value();
    let definitions = generator.take_definitions(false);
    Expansion {
        definitions: &definitions,
        open: vec![T::schema_name().into_owned()],
    }
    .definition(root)
}

struct Expansion<'a> {
    definitions: &'a Map<String, Value>,
    /// Definitions being expanded, innermost last.
    open: Vec<String>,
}

impl Expansion<'_> {
    /// Expands the innermost open definition.
    fn definition(&mut self, schema: Value) -> Value {
        let mut schema = self.expand(schema);
        if let (Some(name), Value::Object(schema)) = (self.open.last(), &mut schema) {
            for (_, field, fact) in FACTS
                .iter()
                .filter(|(definition, _, _)| is(name, definition))
            {
                state(schema, field, fact);
            }
        }
        schema
    }

    fn expand(&mut self, schema: Value) -> Value {
        let Value::Object(mut schema) = schema else {
            return schema;
        };
        if let Some(Value::String(reference)) = schema.remove("$ref") {
            let Value::Object(mut target) = self.target(&reference) else {
                return anything();
            };
            target.extend(schema);
            return Value::Object(target);
        }
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for property in properties.values_mut() {
                *property = self.expand(property.take());
            }
        }
        for name in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get_mut(name) {
                *inner = self.expand(inner.take());
            }
        }
        // An object without declared fields is free-form, and must survive pruning.
        let is_open = schema.get("type").is_none_or(|kind| kind == "object")
            && ![
                "properties",
                "additionalProperties",
                "x-kubernetes-int-or-string",
            ]
            .iter()
            .any(|name| schema.contains_key(*name));
        if is_open {
            schema.insert(
                "x-kubernetes-preserve-unknown-fields".to_owned(),
                true.into(),
            );
        }
        Value::Object(schema)
    }

    fn target(&mut self, reference: &str) -> Value {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        // A recursive definition, such as `JSONSchemaProps`, ends in anything.
        let is_open = self.open.iter().any(|open| open == name);
        let Some(schema) = self.definitions.get(name).filter(|_| !is_open) else {
            return anything();
        };
        if ANYTHING.iter().any(|definition| is(name, definition)) {
            return anything();
        }
        self.open.push(name.to_owned());
        let schema = self.definition(schema.clone());
        self.open.pop();
        schema
    }
}

/// Returns `true` if a qualified name such as `io.k8s.api.core.v1.Service` is this definition.
fn is(name: &str, definition: &str) -> bool {
    name.strip_suffix(definition)
        .is_some_and(|rest| rest.ends_with('.'))
}

fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn state(definition: &mut Map<String, Value>, field: &str, fact: &Fact) {
    let schema = if field.is_empty() {
        Some(definition)
    } else {
        definition
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(field))
            .and_then(Value::as_object_mut)
    };
    let Some(schema) = schema else { return };
    let keywords = match fact {
        Fact::Present => vec![("default", json!({}))],
        Fact::Hollow => vec![("default", json!({})), ("required", json!([]))],
        Fact::Form(pattern) => vec![("pattern", json!(pattern))],
        Fact::Default(value) => vec![("default", json!(value))],
        Fact::Zero => vec![("default", json!(0))],
        Fact::Atomic => vec![("x-kubernetes-map-type", json!("atomic"))],
        Fact::Set => vec![("x-kubernetes-list-type", json!("set"))],
        Fact::MergedSet => vec![
            ("x-kubernetes-list-type", json!("set")),
            ("x-kubernetes-patch-strategy", json!("merge")),
        ],
        Fact::Map(keys) => vec![
            ("x-kubernetes-list-type", json!("map")),
            ("x-kubernetes-list-map-keys", json!(keys)),
            ("x-kubernetes-patch-strategy", json!("merge")),
            ("x-kubernetes-patch-merge-key", json!(keys.first())),
        ],
    };
    let keywords = keywords.into_iter();
    schema.extend(keywords.map(|(name, value)| (name.to_owned(), value)));
}
