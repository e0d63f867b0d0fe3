use serde_json::{Value, from_value, json};

use super::*;
use crate::fixtures::fixture;

fn placement(spec: &Value) -> Placement {
    from_value(json!({ "metadata": { "name": "crp" }, "spec": spec })).unwrap()
}

fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

/// With every default written out, as the webhook of a running KubeFleet did.
#[test]
fn recorded_placements_are_served() {
    for name in [
        "crp-1-available",
        "crp-all-available",
        "crp-five-unfulfilled",
        "crp-fixed-unfulfilled",
    ] {
        let placement = from_value(fixture(name)).unwrap();
        assert_eq!(problems(&placement), [], "{name}");
    }
}

#[test]
fn what_is_out_is_named() {
    for (spec, problem) in [
        (
            json!({ "strategy": { "type": "Canary" } }),
            "spec.strategy.type is not served: only RollingUpdate and External are",
        ),
        (
            json!({ "strategy": { "type": "External", "rollingUpdate": { "maxSurge": 1 } } }),
            "spec.strategy.rollingUpdate is only for RollingUpdate",
        ),
        (
            json!({ "strategy": { "deleteStrategy": { "propagationPolicy": "Abandon" } } }),
            "spec.strategy.deleteStrategy is not served: only Delete is",
        ),
        (
            json!({ "strategy": { "reportBackStrategy": { "type": "Mirror" } } }),
            "spec.strategy.reportBackStrategy is not served: only Disabled is",
        ),
        (
            json!({ "statusReportingScope": "Everybody" }),
            "spec.statusReportingScope is not served: only ClusterScopeOnly and NamespaceAccessible are",
        ),
        (
            json!({ "statusReportingScope": "NamespaceAccessible", "resourceSelectors": [
                { "kind": "Namespace", "name": "a" }, { "kind": "Namespace", "name": "b" }] }),
            "spec.statusReportingScope is NamespaceAccessible, which needs exactly one selector of a Namespace, by its name",
        ),
        (
            json!({ "strategy": { "applyStrategy": { "serverSideApplyConfig": { "force": true } } } }),
            "spec.strategy.applyStrategy.serverSideApplyConfig needs type ServerSideApply",
        ),
        (
            json!({ "strategy": { "rollingUpdate": { "maxSurge": -1 } } }),
            "spec.strategy.rollingUpdate has a negative number",
        ),
        (
            json!({ "resourceSelectors": [{ "labelSelector": { "matchExpressions": [
                { "key": "app", "operator": "In" }] } }] }),
            "spec has a labelSelector that Kubernetes refuses",
        ),
    ] {
        assert_eq!(texts(&problems(&placement(&spec))), [problem]);
    }
}

#[test]
fn contradictions_are_named() {
    let sorter = json!({ "propertySorter": { "name": "a", "sortOrder": "Ascending" } });
    let sorting = json!({ "clusterAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "clusterSelectorTerms": [sorter] } } });
    let selector = json!({ "propertySelector": { "matchExpressions": [] } });
    let [preferring, selecting] = [json!({}), selector].map(|term| {
        json!({ "clusterAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": term }] } })
    });
    let toleration = json!({ "key": "a", "operator": "Exists" });
    for (policy, problem) in [
        (
            json!({ "placementType": "PickFixed", "clusterNames": ["a", "a"] }),
            "spec.policy.clusterNames has a name twice",
        ),
        (
            json!({ "placementType": "PickN" }),
            "spec.policy.numberOfClusters is needed by PickN",
        ),
        (
            json!({ "numberOfClusters": 2 }),
            "spec.policy.numberOfClusters is only for PickN",
        ),
        (
            json!({ "affinity": preferring }),
            "spec.policy.affinity has preferred terms, which PickAll has no use for",
        ),
        (
            json!({ "affinity": sorting }),
            "spec.policy.affinity has a required term with a propertySorter",
        ),
        (
            json!({ "placementType": "PickN", "numberOfClusters": 1, "affinity": selecting }),
            "spec.policy.affinity has a preferred term with a propertySelector",
        ),
        (
            json!({ "tolerations": [toleration, toleration] }),
            "spec.policy.tolerations has one twice",
        ),
    ] {
        let spec = json!({ "policy": policy });
        assert_eq!(texts(&problems(&placement(&spec))), [problem]);
    }
    let refusal = Refusal::of(&problems(&placement(
        &json!({ "policy": { "numberOfClusters": 2 } }),
    )));
    let message = "The placement is refused: spec.policy.numberOfClusters is only for PickN";
    assert_eq!(refusal.unwrap().message, message);
}

#[test]
fn changes_have_their_limits() {
    let with = |policy: Value| placement(&json!({ "policy": policy }));
    let old = with(json!({ "tolerations": [{ "key": "a" }] }));
    assert_eq!(
        changes(
            &old,
            &with(json!({ "tolerations": [{ "key": "a" }, { "key": "b" }] }))
        ),
        []
    );
    for (new, problem) in [
        (placement(&json!({})), "spec.policy cannot be removed"),
        (
            with(json!({ "tolerations": [{ "key": "b" }] })),
            "spec.policy.tolerations can only be added to",
        ),
        (
            with(json!({ "placementType": "PickN", "tolerations": [{ "key": "a" }] })),
            "spec.policy.placementType cannot be changed: the placement type is immutable",
        ),
    ] {
        assert_eq!(texts(&changes(&old, &new)), [problem]);
    }
    let without = placement(&json!({}));
    assert_eq!(
        changes(&without, &with(json!({ "placementType": "PickAll" }))),
        []
    );
    let fixed = with(json!({ "placementType": "PickFixed", "clusterNames": ["a"] }));
    assert_eq!(changes(&without, &fixed).len(), 1);
}

/// Runs are for placements of both scopes.
#[test]
fn runs_update_either_scope() {
    let mut placement = placement(&json!({ "strategy": { "type": "External" } }));
    assert_eq!(problems(&placement), []);
    placement.metadata.namespace = Some("shop".to_owned());
    assert_eq!(problems(&placement), []);
}
