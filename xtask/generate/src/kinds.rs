//! The reference of the kinds, from their definitions.

use std::fmt::Write as _;

use anyhow::Context;
use serde_json::{Map, Value};

use crate::table::cell;

/// The path of the fields in a definition.
const FIELDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties";

/// Returns the page that lists the fields of each of these definitions.
pub(crate) fn page(definitions: &[Value]) -> anyhow::Result<String> {
    let mut page = String::from(
        "# Kinds\n\n\
         The fields that our programs read or write. Karmada's own definitions may have more; what we do not know is left alone.\n",
    );
    let mut listed = Vec::new();
    for definition in definitions {
        let parts = definition.pointer(FIELDS);
        let parts = parts.context("a definition without fields")?;
        if listed.contains(&parts) {
            continue;
        }
        listed.push(parts);
        // A kind and its cluster-scoped twin have the same fields.
        let alike = definitions.iter();
        for kind in alike.filter(|kind| kind.pointer(FIELDS) == Some(parts)) {
            page += &title(kind)?;
        }
        let mut rows = String::new();
        for part in ["spec", "status"] {
            fields(&parts[part], part, &mut rows)?;
        }
        // A configuration of webhooks has them in place of a spec.
        fields(&parts["webhooks"]["items"], "webhooks[]", &mut rows)?;
        page += match &*rows {
            "" => "\nIts name says everything.\n",
            _ => "\n| Field | Type | Meaning |\n|---|---|---|\n",
        };
        page += &rows;
    }
    Ok(page)
}

fn text<'a>(spec: &'a Value, path: &str) -> anyhow::Result<&'a str> {
    let text = spec.pointer(path).and_then(Value::as_str);
    text.with_context(|| format!("a definition without {path}"))
}

fn title(definition: &Value) -> anyhow::Result<String> {
    let spec = &definition["spec"];
    let (kind, group) = (text(spec, "/names/kind")?, text(spec, "/group")?);
    let version = text(spec, "/versions/0/name")?;
    let scope = match text(spec, "/scope")? {
        "Cluster" => "cluster-scoped",
        _ => "namespaced",
    };
    let names = spec["names"]["shortNames"].as_array().into_iter().flatten();
    let names: Vec<String> = std::iter::once(text(spec, "/names/plural")?)
        .chain(names.filter_map(Value::as_str))
        .map(|name| format!("`{name}`"))
        .collect();
    let names = names.join(", ");
    Ok(format!(
        "\n## {kind}\n\n`{group}/{version}`, {scope}, {names}\n"
    ))
}

/// Appends the rows of the fields within `schema`, which is at `path`.
fn fields(schema: &Value, path: &str, page: &mut String) -> anyhow::Result<()> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array();
    for (name, field) in properties {
        let path = format!("{path}.{name}");
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let required = if is_required { ", required" } else { "" };
        let (kind, meaning) = (kind_of(field), meaning(field));
        writeln!(page, "| `{path}` | {kind}{required} | {meaning} |")?;
        let (path, inner) = match field.get("items") {
            Some(items) => (format!("{path}[]"), items),
            None => (path, field),
        };
        fields(inner, &path, page)?;
    }
    Ok(())
}

fn kind_of(schema: &Value) -> String {
    if let Some(items) = schema.get("items") {
        return format!("list of {}", kind_of(items));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return format!("map of {}", kind_of(values));
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (_, Some("date-time")) => "time",
        (Some(kind), _) => kind,
        (None, _) => "any",
    }
    .to_owned()
}

/// Returns the description of a field, with its values and its default.
fn meaning(field: &Value) -> String {
    let description = cell(field["description"].as_str().unwrap_or_default());
    let values = field["enum"].as_array().into_iter().flatten();
    let values: Vec<String> = values
        .filter_map(Value::as_str)
        .filter(|value| !value.is_empty())
        .map(|value| format!("`{value}`"))
        .collect();
    let values = (!values.is_empty()).then(|| format!("One of {}.", values.join(", ")));
    let default = field.get("default");
    let default = default.map(|default| format!("Default: `{default}`."));
    let parts = [Some(description), values, default];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A row tells the type, the values and the default.
    #[test]
    fn row_has_type_and_default() {
        let definition = json!({ "spec": {
            "group": "test.io", "scope": "Namespaced",
            "names": { "kind": "Task", "plural": "tasks", "shortNames": ["t"] },
            "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": { "properties": {
                "metadata": { "type": "object" },
                "spec": { "required": ["steps"], "properties": {
                    "color": { "type": "string", "enum": ["red", "blue"], "default": "red",
                        "description": "The color of a | b.\nIt may change." },
                    "steps": { "type": "array", "items": { "type": "object", "properties": {
                        "at": { "type": "string", "format": "date-time" } } } },
                    "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                } },
            } } } }],
        } });
        let page = page(&[definition]).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            rows[2..],
            [
                "## Task",
                "`test.io/v1`, namespaced, `tasks`, `t`",
                "| Field | Type | Meaning |",
                "|---|---|---|",
                "| `spec.color` | string | The color of a \\| b. It may change. One of `red`, `blue`. Default: `\"red\"`. |",
                "| `spec.labels` | map of string |  |",
                "| `spec.steps` | list of object, required |  |",
                "| `spec.steps[].at` | time |  |",
            ]
        );
    }
}
