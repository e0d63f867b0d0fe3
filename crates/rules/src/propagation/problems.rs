//! The problems of a policy, with the messages that Karmada's webhook refuses it with. Where no webhook
//! runs, a policy may have any of them.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::Toleration;
use karmada_api::placement::{ClusterAffinityTerm, ClusterSelector, SpreadConstraint};
use karmada_api::policy::{ACTIVATION_LAZY, CONFLICT_ABORT, CONFLICT_OVERWRITE, PREEMPTION_ALWAYS};
use karmada_api::{Placement, PropagationSpec};

use super::choice::Candidate;

/// A reason for which a policy is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The policy contradicts itself or the API: it is as if it did not exist.
    Invalid(String),
    /// The policy asks for what karmada-rs does not do: it has its templates, which are left alone.
    Unsupported(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) | Self::Unsupported(message) => f.write_str(message),
        }
    }
}

/// The longest name of a group of clusters.
const MAX_AFFINITY_NAME: usize = 32;

/// Returns the problems of `policy`; none if it can be applied.
pub fn problems(policy: &Candidate<'_>) -> Vec<Problem> {
    let mut found = Problems::default();
    let spec = policy.spec;
    found.selectors(policy.namespace(), spec);
    found.enums(spec);
    let pause = spec.suspension.as_ref();
    let on_clusters = pause.and_then(|pause| pause.dispatching_on_clusters.as_ref());
    if pause.is_some_and(|pause| pause.dispatching == Some(true))
        && on_clusters.is_some_and(|on| !on.cluster_names.is_empty())
    {
        found.invalid(
            "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames",
        );
    }
    match spec
        .placement
        .clone()
        .map(serde_json::from_value::<Placement>)
    {
        None => {}
        Some(Ok(placement)) => found.placement(&placement),
        Some(Err(error)) => found.unsupported(format!("a placement of another form: {error}")),
    }
    found.0
}

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn invalid(&mut self, message: impl Into<String>) {
        self.0.push(Problem::Invalid(message.into()));
    }

    fn unsupported(&mut self, feature: impl fmt::Display) {
        let message = format!("{feature} is not supported by karmada-rs");
        self.0.push(Problem::Unsupported(message));
    }

    fn selectors(&mut self, namespace: Option<&str>, spec: &PropagationSpec) {
        if spec.resource_selectors.is_empty() {
            self.invalid("resourceSelectors should have at least 1 items");
        }
        let mut selectors = spec.resource_selectors.iter();
        let is_elsewhere = |selected: Option<&String>| {
            selected.is_some_and(|selected| !selected.is_empty() && namespace != Some(selected))
        };
        if namespace.is_some() && selectors.any(|s| is_elsewhere(s.namespace.as_ref())) {
            self.invalid(
                "namespace of resource selector must be the same as the namespace of the policy",
            );
        }
        let mut selectors = spec.resource_selectors.iter();
        if spec.preempts() && selectors.any(|s| s.name.as_ref().is_none_or(String::is_empty)) {
            self.invalid("name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption");
        }
    }

    /// Refuses values that only a later version understands.
    fn enums(&mut self, spec: &PropagationSpec) {
        let fields: [(_, _, &[&str]); 3] = [
            (
                "preemption",
                &spec.preemption,
                &[PREEMPTION_ALWAYS, "Never"],
            ),
            (
                "conflictResolution",
                &spec.conflict_resolution,
                &[CONFLICT_ABORT, CONFLICT_OVERWRITE],
            ),
            (
                "activationPreference",
                &spec.activation_preference,
                &[ACTIVATION_LAZY],
            ),
        ];
        for (field, value, known) in fields {
            self.known(field, value.as_deref(), known);
        }
    }

    fn known(&mut self, field: &str, value: Option<&str>, known: &[&str]) {
        if let Some(value) = value.filter(|value| !value.is_empty() && !known.contains(value)) {
            self.unsupported(format_args!("{field} {value}"));
        }
    }

    fn placement(&mut self, placement: &Placement) {
        if placement.cluster_affinity.is_some() && !placement.cluster_affinities.is_empty() {
            self.invalid("clusterAffinities cannot co-exist with clusterAffinity");
        }
        if let Some(affinity) = &placement.cluster_affinity {
            self.fields(affinity);
        }
        self.groups(&placement.cluster_affinities);
        self.spread(&placement.spread_constraints);
        for toleration in &placement.cluster_tolerations {
            self.toleration(toleration);
        }
        self.division(placement);
        if placement.workload_affinity.is_some() {
            self.unsupported("workloadAffinity");
        }
    }

    fn groups(&mut self, terms: &[ClusterAffinityTerm]) {
        let mut names = BTreeSet::new();
        for term in terms {
            let name = term.affinity_name.as_str();
            if !names.insert(name) {
                self.invalid("each affinity term in a policy must have a unique name");
            }
            if name.len() > MAX_AFFINITY_NAME || !is_label_name(name) {
                self.invalid(format!("affinityName {name:?} must be a qualified name of 1 to {MAX_AFFINITY_NAME} characters"));
            }
            self.fields(&term.affinity);
            if term.overflow_affinities.is_some() {
                self.unsupported("overflowAffinities");
            }
        }
    }

    fn fields(&mut self, selector: &ClusterSelector) {
        let fields = selector.field_selector.iter();
        for requirement in fields.flat_map(|fields| &fields.match_expressions) {
            let (key, operator) = (&requirement.key, &requirement.operator);
            if !matches!(key.as_str(), "provider" | "region" | "zone") {
                self.invalid(format!(
                    "unsupported key {key:?}, must be provider, region, or zone"
                ));
            }
            if !matches!(operator.as_str(), "In" | "NotIn") {
                self.invalid(format!(
                    "unsupported operator {operator:?}, must be In or NotIn"
                ));
            }
        }
    }

    fn spread(&mut self, constraints: &[SpreadConstraint]) {
        let given = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
        let (mut fields, mut repeated) = (BTreeSet::new(), BTreeSet::new());
        for constraint in constraints {
            let (field, label) = (
                given(&constraint.spread_by_field),
                given(&constraint.spread_by_label),
            );
            if field.is_some() && label.is_some() {
                self.invalid("spreadByLabel should not co-exist with spreadByField");
            }
            let is_default = field.is_none() && label.is_none();
            if let Some(field) = field.or_else(|| is_default.then(|| "cluster".to_owned()))
                && !fields.insert(field.clone())
                && repeated.insert(field.clone())
            {
                self.invalid(format!(
                    "multiple {field} spread constraints are not allowed"
                ));
            }
            self.groups_of(constraint);
        }
        if !fields.is_empty() && !fields.contains("cluster") {
            self.invalid("the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled");
        }
        let is_known = |field: &&String| ["cluster", "region"].contains(&field.as_str());
        for field in fields.iter().filter(|field| !is_known(field)) {
            self.unsupported(format_args!("spreadByField {field}"));
        }
        if constraints
            .iter()
            .any(|by| given(&by.spread_by_label).is_some())
        {
            self.unsupported("spreadByLabel");
        }
    }

    fn groups_of(&mut self, constraint: &SpreadConstraint) {
        let max = constraint.max_groups.unwrap_or_default();
        let min = constraint.min_groups.filter(|&min| min != 0).unwrap_or(1);
        if min < 0 {
            self.invalid("minGroups lower than 0 is not allowed");
        }
        if max < 0 {
            self.invalid("maxGroups lower than 0 is not allowed");
        }
        if max > 0 && max < min {
            self.invalid("maxGroups lower than minGroups is not allowed");
        }
    }

    fn toleration(&mut self, toleration: &Toleration) {
        let operator = toleration.operator.as_deref().unwrap_or_default();
        if !matches!(operator, "" | "Exists" | "Equal") {
            self.invalid(format!(
                "unsupported toleration operator {operator:?}, must be Exists or Equal"
            ));
        }
    }

    fn division(&mut self, placement: &Placement) {
        let Some(division) = &placement.replica_scheduling else {
            return;
        };
        let kind = division.replica_scheduling_type.as_deref();
        let preference = division.replica_division_preference.as_deref();
        self.known("replicaSchedulingType", kind, &["Duplicated", "Divided"]);
        self.known(
            "replicaDivisionPreference",
            preference,
            &["Aggregated", "Weighted"],
        );
        let weights = division.weight_preference.as_ref();
        let mut statics = weights.iter().flat_map(|w| &w.static_weight_list);
        if statics.any(|weight| weight.weight < 1) {
            self.invalid("weight should be greater than or equal to 1");
        }
        let statics = weights.iter().flat_map(|w| &w.static_weight_list);
        for weight in statics {
            self.fields(&weight.target_cluster);
        }
        let dynamic = weights.and_then(|weights| weights.dynamic_weight.as_deref());
        self.known("dynamicWeight", dynamic, &["AvailableReplicas"]);
    }
}

/// Returns `true` if the text is the name of a label: letters, digits, `-`, `_` and `.`, with a letter
/// or digit at both ends, and perhaps a DNS domain and `/` before it.
fn is_label_name(text: &str) -> bool {
    let is_name = |name: &str, others: &[char]| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        ends(name.chars().next())
            && ends(name.chars().last())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || others.contains(&c))
    };
    let Some((domain, name)) = text.split_once('/') else {
        return is_name(text, &['-', '_', '.']);
    };
    let is_lower = |label: &str| !label.contains(|c: char| c.is_ascii_uppercase());
    is_name(name, &['-', '_', '.'])
        && domain
            .split('.')
            .all(|label| is_name(label, &['-']) && is_lower(label))
}

#[cfg(test)]
mod tests {
    use karmada_api::PropagationPolicy;
    use serde_json::{Value, json};

    use super::*;

    fn found(namespace: Option<&str>, fields: &Value) -> Vec<String> {
        let mut policy = json!({
            "metadata": { "name": "p", "namespace": namespace },
            "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "Pod", "name": "a" }] },
        });
        json_patch::merge(&mut policy["spec"], fields);
        let policy: PropagationPolicy = serde_json::from_value(policy).unwrap();
        let problems = problems(&Candidate::from(&policy));
        problems
            .iter()
            .map(|problem| match problem {
                Problem::Invalid(message) => format!("! {message}"),
                Problem::Unsupported(message) => message.clone(),
            })
            .collect()
    }

    #[track_caller]
    fn expect(fields: &Value, expected: &[&str]) {
        assert_eq!(found(Some("ns"), fields), expected, "{fields}");
    }

    #[test]
    fn a_policy_of_karmada_has_no_problem() {
        for text in [
            include_str!("fixtures/propagationpolicy.json"),
            include_str!("fixtures/clusterpropagationpolicy.json"),
        ] {
            let policy: PropagationPolicy = serde_json::from_str(text).unwrap();
            assert_eq!(problems(&Candidate::from(&policy)), []);
        }
    }

    #[test]
    fn selectors_are_checked() {
        let selector = |fields: Value| {
            let mut selector = json!({ "apiVersion": "v1", "kind": "Pod" });
            json_patch::merge(&mut selector, &fields);
            json!([selector])
        };
        expect(
            &json!({ "resourceSelectors": [] }),
            &["! resourceSelectors should have at least 1 items"],
        );
        let elsewhere = json!({ "resourceSelectors": selector(json!({ "namespace": "other" })) });
        expect(
            &elsewhere,
            &["! namespace of resource selector must be the same as the namespace of the policy"],
        );
        assert_eq!(found(None, &elsewhere), [""; 0]);
        expect(
            &json!({ "resourceSelectors": selector(json!({ "namespace": "" })) }),
            &[],
        );
        let always = json!({ "preemption": "Always", "resourceSelectors": selector(json!({})) });
        expect(
            &always,
            &[
                "! name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption",
            ],
        );
        expect(&json!({ "preemption": "Always" }), &[]);
        expect(
            &json!({ "preemption": "Sometimes" }),
            &["preemption Sometimes is not supported by karmada-rs"],
        );
    }

    #[test]
    fn a_pause_is_of_all_clusters_or_of_some() {
        let pause = |dispatching: bool, names: Value| {
            json!({ "suspension": {
                "dispatching": dispatching,
                "dispatchingOnClusters": { "clusterNames": names },
            } })
        };
        let message =
            "! suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames";
        expect(&pause(true, json!(["m1"])), &[message]);
        expect(&pause(true, json!([])), &[]);
        expect(&pause(false, json!(["m1"])), &[]);
    }

    #[test]
    fn affinities_are_checked() {
        let placed = |placement: Value| json!({ "placement": placement });
        let groups = |names: &[&str]| -> Value {
            names
                .iter()
                .map(|name| json!({ "affinityName": name }))
                .collect()
        };
        let both = json!({ "clusterAffinity": {}, "clusterAffinities": groups(&["a"]) });
        expect(
            &placed(both),
            &["! clusterAffinities cannot co-exist with clusterAffinity"],
        );
        expect(
            &placed(json!({ "clusterAffinities": groups(&["a", "a"]) })),
            &["! each affinity term in a policy must have a unique name"],
        );
        for name in ["", "-a", "a b", "A/", "x".repeat(33).as_str()] {
            let names = found(
                None,
                &placed(json!({ "clusterAffinities": groups(&[name]) })),
            );
            assert_eq!(names.len(), 1, "{name}: {names:?}");
        }
        for name in ["a", "a.b_c-D", "x.io/a", "x".repeat(32).as_str()] {
            expect(
                &placed(json!({ "clusterAffinities": groups(&[name]) })),
                &[],
            );
        }
        let fields = json!({ "fieldSelector": { "matchExpressions": [
            { "key": "k", "operator": "op", "values": [] },
            { "key": "zone", "operator": "NotIn", "values": ["z"] },
        ] } });
        let messages = [
            "! unsupported key \"k\", must be provider, region, or zone",
            "! unsupported operator \"op\", must be In or NotIn",
        ];
        expect(&placed(json!({ "clusterAffinity": fields })), &messages);
        let mut term = fields;
        term["affinityName"] = json!("a");
        expect(&placed(json!({ "clusterAffinities": [term] })), &messages);
    }

    #[test]
    fn spread_constraints_are_checked() {
        let by = |field: &str, min: i64, max: i64| json!({ "spreadByField": field, "minGroups": min, "maxGroups": max });
        let needs_cluster = "! the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled";
        let table: [(Value, &[&str]); 11] = [
            (json!([{}]), &[]),
            (json!([by("cluster", 1, 2)]), &[]),
            (
                json!([by("cluster", 3, 2)]),
                &["! maxGroups lower than minGroups is not allowed"],
            ),
            (json!([by("cluster", 3, 0)]), &[]),
            (
                json!([by("cluster", -1, -1)]),
                &[
                    "! minGroups lower than 0 is not allowed",
                    "! maxGroups lower than 0 is not allowed",
                ],
            ),
            (
                json!([
                    by("cluster", 1, 2),
                    by("cluster", 1, 2),
                    by("cluster", 1, 2)
                ]),
                &["! multiple cluster spread constraints are not allowed"],
            ),
            (
                json!([by("zone", 1, 2)]),
                &[
                    needs_cluster,
                    "spreadByField zone is not supported by karmada-rs",
                ],
            ),
            (
                json!([by("provider", 1, 2), by("cluster", 1, 2)]),
                &["spreadByField provider is not supported by karmada-rs"],
            ),
            (json!([by("region", 1, 2), by("cluster", 1, 2)]), &[]),
            (json!([by("region", 1, 2)]), &[needs_cluster]),
            (
                json!([{ "spreadByField": "cluster", "spreadByLabel": "a" }]),
                &[
                    "! spreadByLabel should not co-exist with spreadByField",
                    "spreadByLabel is not supported by karmada-rs",
                ],
            ),
        ];
        for (constraints, expected) in table {
            expect(
                &json!({ "placement": { "spreadConstraints": constraints } }),
                expected,
            );
        }
    }

    #[test]
    fn tolerations_and_weights_are_checked() {
        let tolerates = |operator: &str| json!({ "placement": { "clusterTolerations": [{ "operator": operator }] } });
        expect(&tolerates("Equal"), &[]);
        expect(
            &tolerates("Gt"),
            &["! unsupported toleration operator \"Gt\", must be Exists or Equal"],
        );
        let weight = json!({ "weightPreference": { "staticWeightList": [{ "targetCluster": {}, "weight": 0 }] } });
        expect(
            &json!({ "placement": { "replicaScheduling": weight } }),
            &["! weight should be greater than or equal to 1"],
        );
    }

    #[test]
    fn features_that_are_not_supported_are_named() {
        let divided = |fields: Value| json!({ "placement": { "replicaScheduling": fields } });
        let table = [
            (
                json!({ "placement": { "workloadAffinity": {} } }),
                "workloadAffinity",
            ),
            (
                json!({ "placement": { "clusterAffinities": [{ "affinityName": "a", "overflowAffinities": [] }] } }),
                "overflowAffinities",
            ),
            (
                divided(json!({ "replicaDivisionPreference": "New" })),
                "replicaDivisionPreference New",
            ),
            (
                divided(json!({ "weightPreference": { "dynamicWeight": "New" } })),
                "dynamicWeight New",
            ),
            (
                divided(json!({ "replicaSchedulingType": "New" })),
                "replicaSchedulingType New",
            ),
        ];
        for (fields, feature) in table {
            expect(
                &fields,
                &[&format!("{feature} is not supported by karmada-rs")],
            );
        }
        let duplicated = json!({ "replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Aggregated" });
        expect(&divided(duplicated), &[]);
        let unreadable = found(None, &json!({ "placement": { "clusterAffinities": 1 } }));
        assert_eq!(unreadable.len(), 1);
        assert!(unreadable[0].starts_with("a placement of another form: "));
    }
}
