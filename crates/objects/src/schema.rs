//! The schemas of kinds for their `CustomResourceDefinition`s: of a type, and of fields that are passed on as they are.

use kube::core::schema::StructuralSchemaRewriter;
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Returns the schema of an object whose fields the API server neither checks nor prunes.
pub fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of a list of Kubernetes objects, of which the API server checks and prunes no more than
/// their metadata.
pub fn manifests(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": {
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    } })
}

/// Returns the schema of objects by names of their own, of which the API server checks nothing.
pub fn any_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// Returns the schema of a value of any type.
pub fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of a quantity, a text or a number.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true })
}

/// Returns the schema of quantities by their names, each a text or a number.
pub fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true },
    })
}

/// Returns the structural schema of a type.
pub fn structural<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    schema
}

/// Removes the parts of a generated schema that an API server must not get: `nullable`, with which it
/// stores a null, or rejects it for an enum, instead of pruning it; unsigned formats, which it does not
/// know; and defaults, with which it would fill in fields that a reader takes for absent.
pub fn make_structural(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let unsigned = value.as_str().is_some_and(|v| v.starts_with("uint"));
                let nullable = key == "nullable" && value.is_boolean();
                !(nullable || key == "default" || key == "format" && unsigned)
            });
            map.values_mut().for_each(make_structural);
        }
        Value::Array(list) => list.iter_mut().for_each(make_structural),
        _ => {}
    }
}

/// Returns the column with the age of an object.
pub fn age_column() -> Value {
    json!({ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" })
}
