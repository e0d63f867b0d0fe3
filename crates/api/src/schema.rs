//! The schemas of fields that are passed on as they are.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Returns the schema of an object whose fields the API server neither checks nor prunes.
pub(crate) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of a list of Kubernetes objects, of which the API server checks and prunes no more than
/// their metadata.
pub(crate) fn manifests(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": {
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    } })
}

/// Returns the schema of objects by names of their own, of which the API server checks nothing.
pub(crate) fn any_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// Returns the schema of a value of any type.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of a quantity, a text or a number.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true })
}

/// Returns the schema of quantities by their names, each a text or a number.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true },
    })
}
