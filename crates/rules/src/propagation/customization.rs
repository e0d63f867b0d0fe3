//! The kinds that the users of a Karmada interpret by scripts or webhooks of their own.

mod operation;
mod script;

use std::collections::BTreeSet;

use objects::GroupVersionKind;
use serde_json::Value;

pub use operation::Operation;
pub use script::Script;

/// The group and version of the objects that customize interpretation.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The kinds of those objects.
pub const KINDS: [&str; 2] = [
    "ResourceInterpreterCustomization",
    "ResourceInterpreterWebhookConfiguration",
];

/// The kinds that are interpreted elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customized(BTreeSet<[String; 3]>);

impl Customized {
    /// Adds the kinds that one customization or webhook configuration is for.
    pub fn add(&mut self, object: &Value) {
        if let Some(target) = object.pointer("/spec/target") {
            let kind = GroupVersionKind::new(text(target, "apiVersion"), text(target, "kind"));
            self.0.insert([kind.group, kind.version, kind.kind]);
        }
        let webhooks = list(object, "webhooks");
        for rule in webhooks.flat_map(|webhook| list(webhook, "rules")) {
            for group in texts(rule, "apiGroups") {
                for version in texts(rule, "apiVersions") {
                    for kind in texts(rule, "kinds") {
                        let pattern = [group, version, kind].map(str::to_owned);
                        self.0.insert(pattern);
                    }
                }
            }
        }
    }

    /// Returns `true` if the kind is among them.
    pub fn covers(&self, kind: &GroupVersionKind) -> bool {
        let of_kind = [&kind.group, &kind.version, &kind.kind];
        self.0.iter().any(|patterns| {
            let mut pairs = patterns.iter().zip(of_kind);
            pairs.all(|(pattern, text)| pattern == "*" || pattern == text)
        })
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    list(object, field).filter_map(Value::as_str)
}

fn list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A kind is customized by a script or by the rules of a webhook.
    #[test]
    fn scripts_and_webhooks_customize() {
        let mut customized = Customized::default();
        customized
            .add(&json!({ "spec": { "target": { "apiVersion": "a.io/v1", "kind": "Toy" } } }));
        customized.add(&json!({ "webhooks": [{ "rules": [
            { "apiGroups": ["b.io"], "apiVersions": ["*"], "kinds": ["Car", "Boat"] },
            { "apiGroups": [""], "apiVersions": ["v1"], "kinds": 7 },
        ] }, 7] }));
        customized.add(&json!(null));
        for (api_version, kind, expected) in [
            ("a.io/v1", "Toy", true),
            ("a.io/v2", "Toy", false),
            ("b.io/v7", "Boat", true),
            ("b.io/v7", "Toy", false),
            ("v1", "Pod", false),
        ] {
            let kind = GroupVersionKind::new(api_version, kind);
            assert_eq!(customized.covers(&kind), expected, "{kind}");
        }
    }
}
