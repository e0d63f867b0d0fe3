//! The variables in the values of a patch: the values that differ between clusters by themselves.

use fleet_api::MemberCluster;
use objects::Metadata;
use serde_json::Value;

const CLUSTER_NAME: &str = "${MEMBER-CLUSTER-NAME}";
const LABEL: &str = "${MEMBER-CLUSTER-LABEL-KEY-";

/// Returns a value with its variables, in texts and in keys, replaced by their values in a cluster.
///
/// # Errors
/// Fails if the cluster lacks a label, or the name of a variable does not end.
pub(super) fn replaced(value: &Value, cluster: &MemberCluster) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(in_text(text, cluster)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| replaced(item, cluster));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| Ok((in_text(key, cluster)?, replaced(value, cluster)?)));
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
        value => value.clone(),
    })
}

/// Returns the keys of the labels that a value names.
pub(super) fn labels(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => keys_in(text).collect(),
        Value::Array(items) => items.iter().flat_map(labels).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let named = fields.flat_map(|(key, value)| keys_in(key).chain(labels(value)));
            named.collect()
        }
        _ => Vec::new(),
    }
}

fn keys_in(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(LABEL).skip(1);
    parts.filter_map(|part| Some(part.split_once('}')?.0))
}

fn in_text(text: &str, cluster: &MemberCluster) -> Result<String, String> {
    let text = text.replace(CLUSTER_NAME, cluster.metadata.name());
    let mut parts = text.split(LABEL);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (key, rest) = part
            .split_once('}')
            .ok_or_else(|| format!("{LABEL}{part} has no closing brace"))?;
        let label = cluster.metadata.label(key);
        made += label.ok_or_else(|| format!("the cluster has no label {key}"))?;
        made += rest;
    }
    Ok(made)
}
