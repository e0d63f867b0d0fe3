//! Kyverno: policies of a cluster and of a namespace.

use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{has_condition, status_part};
use crate::interpret::reflect::number;

pub(super) const KINDS: &[Known] = &[
    ("kyverno.io/v1", "ClusterPolicy", POLICY),
    ("kyverno.io/v1", "Policy", POLICY),
];

const POLICY: Interpreter = Interpreter {
    is_healthy: Some(is_healthy),
    reflect: Some(|object| {
        status_part(object, &["ready", "conditions", "autogen", "rulecount"]).into()
    }),
    aggregate: Some(aggregate),
    ..Interpreter::NONE
};

/// Older versions say it in a field of its own.
fn is_healthy(policy: &Value) -> bool {
    let ready = policy.pointer("/status/ready").and_then(Value::as_bool);
    ready.unwrap_or_else(|| has_condition(policy, "Ready", &["Succeeded"]))
}

fn aggregate(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    if all.copies() == 0 {
        return None;
    }
    let rules = ["validate", "generate", "mutate", "verifyimages"].map(|name| {
        let of_members = all
            .statuses()
            .map(|status| number(status.get("rulecount"), name));
        (
            name.to_owned(),
            json!(of_members.fold(0, i64::saturating_add)),
        )
    });
    let fields = [
        ("autogen", all.last("autogen")),
        ("ready", all.last("ready")),
        ("rulecount", Value::Object(Map::from_iter(rules))),
        ("conditions", all.conditions().into()),
    ];
    let told = fields.into_iter().filter(|(_, value)| !value.is_null());
    Some(told.map(|(name, value)| (name.to_owned(), value)).collect())
}
