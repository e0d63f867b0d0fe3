//! OpenAPI 3.0 documents: for `kubectl explain`, and for clients that look up field validation and
//! dry-run support.
//!
//! [`index`] lists the documents, [`document`] makes that of one version: `paths` adds the operations of each kind,
//! and the schemas come from the kinds themselves. `names` has the names of schemas and documents.

mod names;
mod paths;

use std::hash::Hasher;

use fnv::FnvHasher;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, ObjectMeta, Status};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use self::names::{META, SCHEMAS, component, identity, root};
use crate::discovery::{group_versions, of_version};
use crate::kinds::Kind;

const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Returns the document at `/openapi/v3`: the paths of the documents, with a hash of their contents
/// so that clients can cache them.
pub(crate) fn index(kinds: &[&Kind]) -> Value {
    let paths: Map<_, _> = group_versions(kinds)
        .into_iter()
        .map(|(group, version)| {
            let path = root(group, version);
            let hash = hash(&document(kinds, group, version).unwrap_or_default());
            let url =
                json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash:016X}") });
            (path, url)
        })
        .collect();
    json!({ "paths": paths })
}

/// Returns the document of one version of a group, or `None` if there is no such version.
pub(crate) fn document(kinds: &[&Kind], group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas = common();
    for kind in of_version(kinds, group, version) {
        paths::add(&mut paths, kind);
        schemas.insert(component(kind), schema(kind));
        schemas.insert(format!("{}List", component(kind)), list_schema(kind));
    }
    (!paths.is_empty()).then(|| {
        json!({
            "openapi": "3.0.0",
            "info": { "title": "Kubernetes", "version": "v1.36.0" },
            "paths": paths,
            "components": { "schemas": schemas },
        })
    })
}

fn hash(document: &Value) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(document.to_string().as_bytes());
    hasher.finish()
}

/// Returns the schema of a kind, including the fields that all objects have.
fn schema(kind: &Kind) -> Value {
    let mut schema = kind.schema.document().clone();
    if !kind.custom {
        name_int_or_string(&mut schema);
    }
    let Some(fields) = schema.as_object_mut() else {
        return schema;
    };
    fields.insert(
        "x-kubernetes-group-version-kind".to_owned(),
        json!([identity(kind)]),
    );
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(type_properties());
        properties.insert("metadata".to_owned(), reference("ObjectMeta"));
    }
    schema
}

/// Replaces `x-kubernetes-int-or-string` by a reference to the named type, as built-in kinds have
/// it and `kubectl explain` shows it.
fn name_int_or_string(schema: &mut Value) {
    match schema {
        // The schema of definitions has a field of that name with an object.
        Value::Object(fields)
            if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) =>
        {
            let description = fields.remove("description");
            *schema = json!({ "allOf": [{ "$ref": format!("{SCHEMAS}{INT_OR_STRING}") }] });
            if let Some(description) = description {
                schema["description"] = description;
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(name_int_or_string),
        Value::Array(items) => items.iter_mut().for_each(name_int_or_string),
        _ => {}
    }
}

fn list_schema(kind: &Kind) -> Value {
    let mut properties = type_properties();
    properties.insert("metadata".to_owned(), reference("ListMeta"));
    properties.insert(
        "items".to_owned(),
        json!({ "type": "array", "items": { "$ref": format!("{SCHEMAS}{}", component(kind)) } }),
    );
    json!({
        "description": format!("A list of {}.", kind.plural),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [
            { "group": kind.group, "version": kind.version, "kind": kind.list_kind }
        ],
    })
}

fn type_properties() -> Map<String, Value> {
    [
        (
            "apiVersion",
            "The group and version of the object's schema.",
        ),
        ("kind", "The kind of the object, in CamelCase."),
    ]
    .map(|(name, about)| {
        (
            name.to_owned(),
            json!({ "type": "string", "description": about }),
        )
    })
    .into_iter()
    .collect()
}

fn reference(name: &str) -> Value {
    json!({ "allOf": [{ "$ref": format!("{SCHEMAS}{META}.{name}") }] })
}

/// Returns the schemas that all kinds refer to.
fn common() -> Map<String, Value> {
    let mut generator = SchemaGenerator::default();
    generator.subschema_for::<ObjectMeta>();
    generator.subschema_for::<ListMeta>();
    generator.subschema_for::<DeleteOptions>();
    generator.subschema_for::<Status>();
    let mut schemas = generator.take_definitions(false);
    schemas.values_mut().for_each(refer_to_components);
    schemas.insert(format!("{META}.Patch"), json!({ "type": "object" }));
    schemas.insert(
        INT_OR_STRING.to_owned(),
        json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }], "format": "int-or-string" }),
    );
    schemas
}

/// Rewrites references for OpenAPI 3.0, which keeps schemas in `components` and allows no sibling
/// of a `$ref`.
fn refer_to_components(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(refer_to_components);
            if let Some(Value::String(reference)) = fields.remove("$ref") {
                let name = reference.rsplit('/').next().unwrap_or_default();
                let reference = json!({ "$ref": format!("{SCHEMAS}{name}") });
                fields.insert("allOf".to_owned(), json!([reference]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_components),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
