//! The kinds that the users of a Karmada interpret by scripts or webhooks of their own.

use std::collections::BTreeSet;

use objects::GroupVersionKind;
use serde_json::Value;

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
            let field = |name: &str| target.get(name).and_then(Value::as_str).unwrap_or_default();
            let kind = GroupVersionKind::new(field("apiVersion"), field("kind"));
            self.0.insert([kind.group, kind.version, kind.kind]);
        }
        let webhooks = list(object, "webhooks");
        for rule in webhooks.flat_map(|webhook| list(webhook, "rules")) {
            let texts = |name: &'static str| list(rule, name).filter_map(Value::as_str);
            for group in texts("apiGroups") {
                for version in texts("apiVersions") {
                    let kinds = texts("kinds");
                    let pattern =
                        |kind: &str| [group.to_owned(), version.to_owned(), kind.to_owned()];
                    self.0.extend(kinds.map(pattern));
                }
            }
        }
    }

    /// Returns `true` if the kind is among them.
    pub fn covers(&self, kind: &GroupVersionKind) -> bool {
        let is = |pattern: &String, text: &String| pattern == "*" || pattern == text;
        self.0.iter().any(|[group, version, name]| {
            is(group, &kind.group) && is(version, &kind.version) && is(name, &kind.kind)
        })
    }
}

fn list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
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
