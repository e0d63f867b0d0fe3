//! Events, which are served in two groups and stored as `v1` (`k8s.io/kubernetes/pkg/apis/events`).

use serde_json::{Map, Value};

pub(super) const GROUP: &str = "events.k8s.io";
pub(super) const PLURAL: &str = "events";

/// Pairs of field names in `events.k8s.io/v1` and in `v1`.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

pub(super) fn into_core(event: Value) -> Value {
    renamed(event, "v1", |name| {
        (RENAMED.iter()).find_map(|(new, old)| (*new == name).then_some(*old))
    })
}

pub(super) fn from_core(event: Value) -> Value {
    renamed(event, "events.k8s.io/v1", |name| {
        (RENAMED.iter()).find_map(|(new, old)| (*old == name).then_some(*new))
    })
}

fn renamed(
    event: Value,
    api_version: &str,
    rename: impl Fn(&str) -> Option<&'static str>,
) -> Value {
    let Value::Object(fields) = event else {
        return event;
    };
    let mut renamed: Map<String, Value> = (fields.into_iter())
        .map(|(name, value)| (rename(&name).map_or(name, str::to_owned), value))
        .collect();
    renamed.insert("apiVersion".to_owned(), api_version.into());
    Value::Object(renamed)
}
