//! Translation of Kubernetes schemas for the `jsonschema` crate (draft 7).

use serde_json::{Map, Value, json};

use super::node::{flag, text};

/// Keywords with the same meaning in both.
const SHARED: &[&str] = &[
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "required",
    "enum",
];

/// Checked string formats; Kubernetes ignores those that it does not know.
const FORMATS: &[&str] = &[
    "byte",
    "cidr",
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "mac",
    "uri",
    "uuid",
];

#[derive(Clone, Copy)]
pub(super) struct Translation<'a> {
    /// The translated schema of `metadata`.
    pub(super) metadata: &'a Value,
}

impl Translation<'_> {
    /// Translates the schema of a whole object.
    pub(super) fn object(self, document: &Value) -> Value {
        let mut schema = self.schema(document);
        self.embed(&mut schema);
        schema
    }

    /// Translates the schema of a part of an object.
    pub(super) fn schema(self, document: &Value) -> Value {
        let Some(source) = document.as_object() else {
            return document.clone();
        };
        let mut schema: Map<String, Value> = SHARED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), source.get(*name)?.clone())))
            .collect();
        schema.extend(type_of(source));
        // OpenAPI 3.0 has a flag that makes a limit exclusive; draft 7 has separate limits.
        for (limit, exclusive) in [
            ("minimum", "exclusiveMinimum"),
            ("maximum", "exclusiveMaximum"),
        ] {
            if flag(source, exclusive)
                && let Some(value) = schema.remove(limit)
            {
                schema.insert(exclusive.to_owned(), value);
            }
        }
        for name in ["items", "additionalProperties", "not"] {
            if let Some(inner) = source.get(name).filter(|inner| !inner.is_null()) {
                schema.insert(name.to_owned(), self.schema(inner));
            }
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            if let Some(Value::Array(inner)) = source.get(name)
                && !inner.is_empty()
            {
                schema.insert(
                    name.to_owned(),
                    inner.iter().map(|inner| self.schema(inner)).collect(),
                );
            }
        }
        if let Some(Value::Object(properties)) = source.get("properties") {
            let properties = properties
                .iter()
                .map(|(name, inner)| (name.clone(), self.schema(inner)));
            schema.insert("properties".to_owned(), Value::Object(properties.collect()));
        }
        let format = text(source, "format");
        if let Some(format) = format.filter(|format| FORMATS.contains(format)) {
            schema.insert("format".to_owned(), json!(format));
        } else if format == Some("int32") {
            schema.entry("minimum").or_insert_with(|| json!(i32::MIN));
            schema.entry("maximum").or_insert_with(|| json!(i32::MAX));
        }
        let mut schema = Value::Object(schema);
        if flag(source, "x-kubernetes-embedded-resource") {
            self.embed(&mut schema);
            let named = json!({"apiVersion": {"minLength": 1}, "kind": {"minLength": 1}});
            schema["allOf"] = json!([{"required": ["apiVersion", "kind"], "properties": named}]);
        }
        schema
    }

    /// Adds the fields of every object to a schema, together with its own rules for them.
    fn embed(self, schema: &mut Value) {
        let own = schema["properties"]["metadata"].take();
        let metadata = if own.is_null() {
            self.metadata.clone()
        } else {
            json!({"allOf": [self.metadata, own]})
        };
        schema["properties"]["metadata"] = metadata;
        for name in ["apiVersion", "kind"] {
            schema["properties"][name] = json!({"type": "string"});
        }
    }
}

fn type_of(source: &Map<String, Value>) -> Option<(String, Value)> {
    let mut types = match text(source, "type") {
        _ if flag(source, "x-kubernetes-int-or-string") => vec!["integer", "string"],
        None | Some("") => return None,
        Some(name) => vec![name],
    };
    if flag(source, "nullable") {
        types.push("null");
    }
    Some(("type".to_owned(), json!(types)))
}
