//! The operations on objects of a kind.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::names::{META, SCHEMAS, component, identity, root};
use crate::kinds::Kind;

const WRITE: [(&str, &str); 3] = [
    ("dryRun", "`All`: everything is done but nothing is stored."),
    (
        "fieldManager",
        "Who makes the change; required by an apply.",
    ),
    (
        "fieldValidation",
        "What becomes of unknown and duplicate fields: `Ignore`, `Warn` or `Strict`.",
    ),
];

const SELECT: [(&str, &str); 2] = [
    ("labelSelector", "Only objects with these labels."),
    ("fieldSelector", "Only objects with these fields."),
];

const LIST: [(&str, &str); 5] = [
    ("continue", "Where the last page ended."),
    ("limit", "The most objects of one page."),
    ("resourceVersion", "How new the response must be."),
    ("resourceVersionMatch", "How `resourceVersion` is meant."),
    ("watch", "The changes instead of the objects."),
];

const DELETE: [(&str, &str); 2] = [
    WRITE[0],
    (
        "propagationPolicy",
        "`Orphan`, `Background` or `Foreground`.",
    ),
];

/// Adds the paths of a kind.
pub(super) fn add(paths: &mut Map<String, Value>, kind: &Kind) {
    let root = format!("/{}", root(&kind.group, &kind.version));
    let plural = &kind.plural;
    let collection = if kind.namespaced {
        let everywhere = json!({ "get": operation(kind, "list", "list", &[&SELECT, &LIST]) });
        paths.insert(format!("{root}/{plural}"), everywhere);
        format!("{root}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{root}/{plural}")
    };
    let mut in_path = vec![];
    if kind.namespaced {
        in_path.push(path_parameter("namespace"));
    }
    paths.insert(
        collection.clone(),
        json!({
            "get": operation(kind, "list", "list", &[&SELECT, &LIST]),
            "post": operation(kind, "post", "create", &[&WRITE]),
            "delete": operation(kind, "deletecollection", "delete", &[&SELECT, &DELETE]),
            "parameters": in_path,
        }),
    );
    in_path.push(path_parameter("name"));
    let object = json!({
        "get": operation(kind, "get", "read", &[]),
        "put": operation(kind, "put", "replace", &[&WRITE]),
        "patch": operation(kind, "patch", "patch", &[&WRITE, &[("force", "Take fields that others own.")]]),
        "parameters": in_path,
    });
    let mut deletable = object.clone();
    deletable["delete"] = operation(kind, "delete", "delete", &[&DELETE]);
    paths.insert(format!("{collection}/{{name}}"), deletable);
    if kind.has_status {
        paths.insert(format!("{collection}/{{name}}/status"), object);
    }
}

fn operation(kind: &Kind, action: &str, verb: &str, parameters: &[&[(&str, &str)]]) -> Value {
    let schema = match action {
        "list" => format!("{SCHEMAS}{}List", component(kind)),
        "delete" | "deletecollection" => format!("{SCHEMAS}{META}.Status"),
        _ => format!("{SCHEMAS}{}", component(kind)),
    };
    let parameters = parameters.iter().copied().flatten();
    let mut operation = json!({
        "description": format!("{verb} {}", kind.plural),
        "operationId": format!("{verb}{}{}", kind.version, kind.kind),
        "parameters": parameters.map(|(name, about)| query_parameter(name, about)).collect::<Vec<_>>(),
        "responses": { "200": content(&["application/json"], &schema) },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": identity(kind),
    });
    operation["responses"]["200"]["description"] = json!("OK");
    match action {
        "post" | "put" => {
            operation["requestBody"] = content(&["application/json", "application/yaml"], &schema);
        }
        "patch" => {
            let patch = format!("{SCHEMAS}{META}.Patch");
            let mut types = vec![
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ];
            if !kind.custom {
                types.push("application/strategic-merge-patch+json");
            }
            operation["requestBody"] = content(&types, &patch);
        }
        _ => {}
    }
    operation
}

/// Returns a body that may be of any of these media types.
fn content(types: &[&str], schema: &str) -> Value {
    let content = types
        .iter()
        .map(|type_| ((*type_).to_owned(), json!({ "schema": { "$ref": schema } })));
    json!({ "content": content.collect::<BTreeMap<_, _>>() })
}

fn path_parameter(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

fn query_parameter(name: &str, description: &str) -> Value {
    let type_ = match name {
        "force" | "watch" => "boolean",
        "limit" => "integer",
        _ => "string",
    };
    json!({ "name": name, "in": "query", "description": description, "schema": { "type": type_ } })
}
