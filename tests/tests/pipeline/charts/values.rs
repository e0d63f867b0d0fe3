//! The values that a chart's schema allows.

use std::fs;

use anyhow::Result;
use serde_json::Value;

use super::rendering::chart;

/// A value, and one that a user might set.
pub(super) struct Example {
    /// Its path, as helm's `--set` has it.
    pub(super) path: String,
    pub(super) value: Value,
}

/// Returns an example of each value that has no values in it.
pub(super) fn examples(name: &str) -> Result<Vec<Example>> {
    let schema = fs::read_to_string(chart(name).join("values.schema.json"))?;
    let schema = serde_json::from_str(&schema)?;
    let mut examples = Vec::new();
    collect(&schema, &schema, "", &Value::Null, &mut examples);
    Ok(examples)
}

/// Collects those of the properties of `value`, whose own `defaults` win over the properties'.
fn collect(
    schema: &Value,
    value: &Value,
    prefix: &str,
    defaults: &Value,
    examples: &mut Vec<Example>,
) {
    for (name, property) in value["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let reference = property["$ref"].as_str().unwrap_or_default();
        let definition = reference
            .strip_prefix('#')
            .and_then(|at| schema.pointer(at));
        let resolved = definition.unwrap_or(property);
        let default = defaults.get(name).unwrap_or_else(|| &resolved["default"]);
        if let Some(example) = resolved["examples"].get(0) {
            let value = example.clone();
            examples.push(Example { path, value });
        } else if let Some(on) = default.as_bool() {
            let value = Value::Bool(!on);
            examples.push(Example { path, value });
        } else {
            let prefix = format!("{path}.");
            collect(schema, resolved, &prefix, &property["default"], examples);
        }
    }
}
