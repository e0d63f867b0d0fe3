//! The custom resources of the cases.

use anyhow::Result;
use serde_json::{Value, json};

use crate::server::{Server, text};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) const GROUP: &str = "conformance.example.com";

/// Installs two CRDs: widgets use every feature of a schema, and gadgets have the status of a
/// Karmada `Cluster`.
pub(crate) async fn install(server: &Server) -> Result<()> {
    for definition in [widgets(), gadgets()] {
        serve(server, &definition).await?;
    }
    Ok(())
}

/// Creates a CRD and waits until it is served.
pub(crate) async fn serve(server: &Server, definition: &Value) -> Result<()> {
    let response = server.post(DEFINITIONS, definition).await?;
    if response.code != 409 {
        response.expect(201)?;
    }
    let spec = &definition["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let name = format!("{plural}.{group}");
    server
        .until(&format!("{DEFINITIONS}/{name}"), |response| {
            let conditions = response.body["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
        })
        .await?;
    let version = format!("/apis/{group}/{}", text(&spec["versions"][0]["name"]));
    server
        .until(&version, |response| {
            let resources = response.body["resources"].as_array();
            let mut resources = resources.into_iter().flatten();
            resources.any(|resource| resource["name"] == plural)
        })
        .await?;
    server
        .until(&format!("{version}/{plural}"), |response| {
            response.code == 200
        })
        .await?;
    Ok(())
}

/// Returns a CRD with one version.
pub(crate) fn definition(scope: &str, plural: &str, kind: &str, version: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": { "plural": plural, "kind": kind },
            "versions": [version],
        },
    })
}

/// Returns the schema of a widget's spec, which uses every feature of a schema.
fn widget_spec() -> Value {
    json!({
        "type": "object",
        "properties": {
            "size": { "type": "integer", "minimum": 1, "maximum": 100, "default": 3 },
            "color": { "type": "string", "enum": ["red", "green", "blue"] },
            "label": { "type": "string", "maxLength": 10, "pattern": "^[a-z]*$" },
            "share": { "type": "number" },
            "small": { "type": "integer", "format": "int32" },
            "on": { "type": "boolean" },
            "port": { "x-kubernetes-int-or-string": true },
            "tags": { "type": "array", "maxItems": 20_000, "items": { "type": "string" } },
            "unique": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "parts": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": { "type": "object", "required": ["name"], "properties": {
                    "name": { "type": "string" },
                    "count": { "type": "integer", "default": 1 },
                } },
            },
            "rules": { "type": "array", "items": { "type": "object", "required": ["operator"], "properties": {
                "operator": { "type": "string", "enum": ["Equal", "NotEqual"] },
                "host": { "type": "string" },
            } } },
            "limits": { "type": "object", "additionalProperties": { "type": "string" } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "maybe": { "type": "string", "nullable": true },
            "started": { "type": "string", "format": "date-time" },
        },
    })
}

fn widgets() -> Value {
    let conditions = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": { "type": "object", "required": ["type", "status"], "properties": {
            "type": { "type": "string" }, "status": { "type": "string" }, "reason": { "type": "string" },
        } },
    });
    let spec = widget_spec();
    let mut definition = definition(
        "Namespaced",
        "widgets",
        "Widget",
        &json!({
            "name": "v1", "served": true, "storage": true,
            "subresources": { "status": {} },
            "selectableFields": [{ "jsonPath": ".spec.color" }],
            "additionalPrinterColumns": [
                { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                { "name": "Tags", "type": "string", "jsonPath": ".spec.tags" },
                { "name": "Hosts", "type": "string", "jsonPath": ".spec.rules[*].host" },
                { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                { "name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "The paint." },
                { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
            ],
            "schema": { "openAPIV3Schema": {
                "type": "object", "required": ["spec"], "description": "A thing with a size.",
                "properties": { "spec": spec, "status": { "type": "object", "properties": {
                    "ready": { "type": "boolean" }, "conditions": conditions,
                } } },
            } },
        }),
    );
    definition["spec"]["names"]["shortNames"] = json!(["wd"]);
    definition["spec"]["names"]["categories"] = json!(["conformance"]);
    definition
}

fn gadgets() -> Value {
    let conditions = json!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    });
    definition(
        "Cluster",
        "gadgets",
        "Gadget",
        &json!({
            "name": "v1", "served": true, "storage": true,
            "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "status": { "type": "object", "properties": { "conditions": conditions } },
                },
            } },
        }),
    )
}
