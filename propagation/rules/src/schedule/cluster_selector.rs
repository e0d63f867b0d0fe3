//! The clusters that a selector of a policy selects.

use karmada_api::ClusterView;
use karmada_api::placement::{ClusterSelector, FieldRequirement};
use objects::{Metadata, selector};

/// Returns `true` if the cluster has the labels, the fields and one of the names of `selector`, and is not
/// excluded. A requirement that cannot be understood is met by no cluster.
pub fn selects(selector: &ClusterSelector, cluster: &ClusterView) -> bool {
    !has_name(cluster, &selector.excluded)
        && (selector.cluster_names.is_empty() || has_name(cluster, &selector.cluster_names))
        && selector
            .label_selector
            .as_ref()
            .is_none_or(|labels| selector::selects(labels, &cluster.metadata))
        && selector
            .field_selector
            .iter()
            .flat_map(|fields| &fields.match_expressions)
            .all(|requirement| has_field(requirement, cluster))
}

fn has_name(cluster: &ClusterView, names: &[String]) -> bool {
    names.iter().any(|name| name == cluster.metadata.name())
}

fn has_field(requirement: &FieldRequirement, cluster: &ClusterView) -> bool {
    let spec = &cluster.spec;
    let present: &[String] = match requirement.key.as_str() {
        "provider" => std::slice::from_ref(&spec.provider),
        "region" => std::slice::from_ref(&spec.region),
        "zone" => &spec.zones,
        _ => return false,
    };
    // A field that a cluster does not have is empty, and equal to no value.
    let mut present = present.iter().filter(|value| !value.is_empty());
    match requirement.operator.as_str() {
        "In" => present.any(|value| requirement.values.contains(value)),
        "NotIn" => !present.any(|value| requirement.values.contains(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn cluster() -> ClusterView {
        from_value(json!({
            "metadata": { "name": "m1", "labels": { "env": "prod" } },
            "spec": { "provider": "p", "zones": ["a", "b"] },
        }))
        .unwrap()
    }

    fn fields(key: &str, operator: &str, values: &[&str]) -> Value {
        let requirement = json!({ "key": key, "operator": operator, "values": values });
        json!({ "fieldSelector": { "matchExpressions": [requirement] } })
    }

    fn operator(operator: &str) -> Value {
        let requirement = json!({ "key": "env", "operator": operator, "values": ["prod"] });
        json!({ "labelSelector": { "matchExpressions": [requirement] } })
    }

    /// Labels, fields, names and exclusions.
    #[test]
    fn all_criteria_select_together() {
        let labels = |value: &str| json!({ "labelSelector": { "matchLabels": { "env": value } } });
        let cases = [
            ("nothing selects all", json!({}), true),
            ("its name", json!({ "clusterNames": ["m0", "m1"] }), true),
            ("other names", json!({ "clusterNames": ["m2"] }), false),
            ("empty names", json!({ "clusterNames": [] }), true),
            ("excluded", json!({ "exclude": ["m1"] }), false),
            (
                "exclusion wins over the name",
                json!({ "clusterNames": ["m1"], "exclude": ["m1"] }),
                false,
            ),
            ("its label", labels("prod"), true),
            ("another value of a label", labels("test"), false),
            ("a label in a list", operator("In"), true),
            ("a label not in a list", operator("NotIn"), false),
            ("an operator of a later version", operator("Like"), false),
            (
                "a label not in a list without values, which Kubernetes refuses",
                json!({ "labelSelector": { "matchExpressions": [
                    { "key": "rack", "operator": "NotIn", "values": [] },
                ] } }),
                false,
            ),
            (
                "an empty field selector",
                json!({ "fieldSelector": {} }),
                true,
            ),
            ("provider in", fields("provider", "In", &["q", "p"]), true),
            (
                "provider not in",
                fields("provider", "NotIn", &["p"]),
                false,
            ),
            ("no region in", fields("region", "In", &["r", ""]), false),
            ("no region not in", fields("region", "NotIn", &["r"]), true),
            ("one zone in", fields("zone", "In", &["b", "c"]), true),
            ("no zone in", fields("zone", "In", &["c"]), false),
            ("one zone not in", fields("zone", "NotIn", &["b"]), false),
            ("no zone not in", fields("zone", "NotIn", &["c"]), true),
            ("an unknown field", fields("rack", "NotIn", &["x"]), false),
            ("an unknown operator", fields("zone", "Exists", &[]), false),
            (
                "its name but another label",
                json!({
                    "clusterNames": ["m1"],
                    "labelSelector": { "matchLabels": { "env": "test" } },
                }),
                false,
            ),
        ];
        for (sentence, selector, selected) in cases {
            let selector: ClusterSelector = from_value(selector).unwrap();
            assert_eq!(selects(&selector, &cluster()), selected, "{sentence}");
        }
    }
}
