//! Label selectors.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::Metadata;
use crate::qualified_name::{is_label_value, is_qualified};

/// Returns `true` if the labels of `object` meet the selector. One that Kubernetes refuses selects nothing,
/// whatever its requirements exclude.
pub fn selects(selector: &LabelSelector, object: &impl Metadata) -> bool {
    let mut labels = selector.match_labels.iter().flatten();
    let mut requirements = selector.match_expressions.iter().flatten();
    labels.all(|(key, value)| object.label(key) == Some(value))
        && requirements
            .all(|requirement| is_valid_requirement(requirement) && is_met(requirement, object))
}

/// Returns `true` unless Kubernetes refuses the selector.
pub fn is_valid(selector: &LabelSelector) -> bool {
    let mut labels = selector.match_labels.iter().flatten();
    let mut requirements = selector.match_expressions.iter().flatten();
    labels.all(|(key, value)| is_qualified(key) && is_label_value(value))
        && requirements.all(is_valid_requirement)
}

fn is_valid_requirement(requirement: &LabelSelectorRequirement) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let has_its_values = match requirement.operator.as_str() {
        "In" | "NotIn" => !values.is_empty(),
        "Exists" | "DoesNotExist" => values.is_empty(),
        _ => false,
    };
    has_its_values
        && is_qualified(&requirement.key)
        && values.iter().all(|value| is_label_value(value))
}

fn is_met(requirement: &LabelSelectorRequirement, object: &impl Metadata) -> bool {
    let label = object.label(&requirement.key);
    let mut values = requirement.values.iter().flatten();
    let is_listed = values.any(|value| Some(value.as_str()) == label);
    match requirement.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[track_caller]
    fn expect(selector: &Value, selected: bool) {
        let object = json!({ "metadata": { "labels": {
            "app": "web", "empty": "", "x.io/tier": "front", "odd": 7,
        } } });
        let parsed: LabelSelector = from_value(selector.clone()).unwrap();
        assert_eq!(selects(&parsed, &object), selected, "{selector}");
    }

    #[test]
    fn all_labels_must_be_equal() {
        for (labels, selected) in [
            (json!({}), true),
            (json!({ "app": "web" }), true),
            (json!({ "app": "web", "x.io/tier": "front" }), true),
            (json!({ "app": "web", "x.io/tier": "back" }), false),
            (json!({ "empty": "" }), true),
            (json!({ "absent": "" }), false),
            (json!({ "odd": "7" }), false),
        ] {
            expect(&json!({ "matchLabels": labels }), selected);
        }
    }

    #[test]
    fn operators_compare_as_kubernetes() {
        for (key, operator, values, selected) in [
            ("app", "In", json!(["db", "web"]), true),
            ("app", "In", json!(["db"]), false),
            ("absent", "In", json!(["web"]), false),
            ("empty", "In", json!([""]), true),
            ("app", "NotIn", json!(["db"]), true),
            ("app", "NotIn", json!(["db", "web"]), false),
            ("absent", "NotIn", json!(["web"]), true),
            ("app", "Exists", json!(null), true),
            ("app", "Exists", json!([]), true),
            ("absent", "Exists", json!(null), false),
            ("absent", "DoesNotExist", json!(null), true),
            ("empty", "DoesNotExist", json!([]), false),
        ] {
            let requirement = json!({ "key": key, "operator": operator, "values": values });
            expect(&json!({ "matchExpressions": [requirement] }), selected);
        }
    }

    #[test]
    fn refused_selectors_select_nothing() {
        for (key, operator, values) in [
            ("app", "In", json!([])),
            ("app", "In", json!(null)),
            ("app", "NotIn", json!([])),
            ("absent", "NotIn", json!([])),
            ("absent", "NotIn", json!(null)),
            ("app", "Exists", json!(["web"])),
            ("absent", "DoesNotExist", json!(["web"])),
            ("app", "Like", json!(["web"])),
            ("app", "in", json!(["web"])),
            ("app", "", json!(null)),
            ("", "NotIn", json!(["web"])),
            ("a key", "DoesNotExist", json!(null)),
            ("/app", "DoesNotExist", json!(null)),
            ("absent", "NotIn", json!(["a value"])),
        ] {
            let requirement = json!({ "key": key, "operator": operator, "values": values });
            expect(&json!({ "matchExpressions": [requirement] }), false);
            let met = json!({ "key": "app", "operator": "Exists" });
            expect(&json!({ "matchExpressions": [met, requirement] }), false);
        }
    }

    #[test]
    fn labels_and_requirements_together() {
        let exists = json!({ "key": "app", "operator": "Exists" });
        let both =
            |app: &str| json!({ "matchLabels": { "app": app }, "matchExpressions": [exists] });
        expect(&json!({}), true);
        expect(&both("web"), true);
        expect(&both("db"), false);
    }
}
