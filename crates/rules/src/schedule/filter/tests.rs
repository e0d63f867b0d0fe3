use serde_json::{Value, from_value, json};

use super::*;

const DEPLOYMENT: &str = r#"{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }"#;

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the parts in place"
)]
fn cluster(spec: Value) -> ClusterProfile {
    let enabled = json!([{ "groupVersion": "apps/v1", "resources": [{ "kind": "Deployment" }] }]);
    from_value(json!({
        "metadata": { "name": "m1" }, "spec": spec, "status": { "apiEnablements": enabled },
    }))
    .unwrap()
}

fn tainted(taint: &Value) -> ClusterProfile {
    cluster(json!({ "taints": [taint] }))
}

fn binding(more: &Value) -> ResourceBindingSpec {
    let resource: Value = serde_json::from_str(DEPLOYMENT).unwrap();
    let mut spec = json!({ "resource": resource });
    json_patch::merge(&mut spec, more);
    from_value(spec).unwrap()
}

/// Returns the message of a placement that one cluster does not fit.
fn refusal(
    spec: &ResourceBindingSpec,
    placement: Value,
    cluster: &ClusterProfile,
) -> Option<String> {
    let placement: Placement = from_value(placement).unwrap();
    let affinity = placement.cluster_affinity.as_ref();
    let fitting = fitting(spec, &placement, affinity, &[cluster]);
    fitting.err().map(|unfit| unfit.to_string())
}

#[test]
fn a_cluster_fits_unless_one_of_the_reasons_speaks_against_it() {
    let free = binding(&json!({}));
    let spread = |field: &str| json!({ "spreadConstraints": [{ "spreadByField": field }] });
    let cases = [
        (free.clone(), json!({}), cluster(json!({})), None),
        (
            binding(&json!({ "resource": { "kind": "Other" } })),
            json!({}),
            cluster(json!({})),
            Some("1 cluster(s) did not have the API resource"),
        ),
        (
            free.clone(),
            json!({ "clusterAffinity": { "clusterNames": ["m2"] } }),
            cluster(json!({})),
            Some("1 cluster(s) did not match the placement cluster affinity constraint"),
        ),
        (
            free.clone(),
            spread("zone"),
            cluster(json!({ "region": "r", "provider": "p" })),
            Some("1 cluster(s) did not have zones property"),
        ),
        (
            free.clone(),
            spread("region"),
            cluster(json!({ "zones": ["z"] })),
            Some("1 cluster(s) did not have region property"),
        ),
        (
            free,
            spread("region"),
            cluster(json!({ "region": "r" })),
            None,
        ),
        (
            binding(&json!({ "gracefulEvictionTasks": [{ "fromCluster": "m1" }] })),
            json!({}),
            cluster(json!({})),
            Some("1 cluster(s) is in the process of eviction"),
        ),
    ];
    for (spec, placement, cluster, reason) in cases {
        let expected = reason.map(|reason| format!("0/1 clusters are available: {reason}."));
        assert_eq!(refusal(&spec, placement, &cluster), expected);
    }
}

#[test]
fn a_taint_keeps_away_what_does_not_tolerate_it() {
    let taint = json!({ "key": "k", "value": "v", "effect": "NoSchedule" });
    let cases = [
        (json!({ "key": "k", "operator": "Exists" }), true),
        (json!({ "operator": "Exists" }), true),
        (json!({ "key": "k", "value": "v" }), true),
        (
            json!({ "key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule" }),
            true,
        ),
        (json!({ "key": "k", "value": "w" }), false),
        (json!({ "key": "l", "operator": "Exists" }), false),
        (
            json!({ "key": "k", "operator": "Exists", "effect": "NoExecute" }),
            false,
        ),
        (
            json!({ "key": "k", "operator": "Newer", "value": "v" }),
            false,
        ),
    ];
    for (toleration, tolerated) in cases {
        let placement = json!({ "clusterTolerations": [toleration] });
        let refusal = refusal(&binding(&json!({})), placement, &tainted(&taint));
        let expected =
            "0/1 clusters are available: 1 cluster(s) had untolerated taint {k=v:NoSchedule}.";
        assert_eq!(
            refusal,
            (!tolerated).then(|| expected.to_owned()),
            "{toleration}"
        );
    }
    let preference = json!({ "key": "k", "effect": "PreferNoSchedule" });
    assert_eq!(
        refusal(&binding(&json!({})), json!({}), &tainted(&preference)),
        None
    );
}

#[test]
fn what_runs_on_a_cluster_is_not_driven_away_by_a_taint_or_a_kind_that_vanished() {
    let runs = json!({ "clusters": [{ "name": "m1" }], "resource": { "kind": "Other" } });
    let taint = json!({ "key": "k", "effect": "NoExecute" });
    assert_eq!(refusal(&binding(&runs), json!({}), &tainted(&taint)), None);
    let elsewhere = json!({ "clusterAffinity": { "exclude": ["m1"] } });
    assert!(refusal(&binding(&runs), elsewhere, &tainted(&taint)).is_some());
}

#[test]
fn the_reasons_of_many_clusters_are_counted() {
    let placement: Placement =
        from_value(json!({ "clusterAffinity": { "clusterNames": ["m2"] } })).unwrap();
    let (plain, taint) = (
        cluster(json!({})),
        json!({ "key": "k", "effect": "NoExecute" }),
    );
    let (tainted, mut leaving) = (tainted(&taint), plain.clone());
    leaving.metadata.deletion_timestamp = Some(from_value(json!("2026-11-20T08:00:00Z")).unwrap());
    let clusters = [&plain, &tainted, &plain, &leaving];
    let unfit = fitting(
        &binding(&json!({})),
        &placement,
        placement.cluster_affinity.as_ref(),
        &clusters,
    );
    assert_eq!(
        unfit.unwrap_err().to_string(),
        "0/4 clusters are available: 1 cluster(s) had untolerated taint {k:NoExecute}, \
         1 cluster(s) were being deleted, \
         2 cluster(s) did not match the placement cluster affinity constraint."
    );
}
