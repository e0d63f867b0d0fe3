use karmada_api::{Placement, ResourceBindingSpec};
use kube::core::ObjectMeta;
use serde_json::{Value, from_value, json};

use super::*;
use crate::binding_ref::BindingRef;
use crate::schedule::facts::{KnownClusters, Pass, Scheduler};
use crate::schedule::strategy::ReplicaStrategy;

const NOW: &str = "2026-11-22T08:00:00Z";

const DEPLOYMENT: &str = r#"{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }"#;

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the parts in place"
)]
fn cluster(spec: Value) -> ClusterView {
    let enabled = json!([{ "groupVersion": "apps/v1", "resources": [{ "kind": "Deployment" }] }]);
    from_value(json!({
        "metadata": { "name": "m1" }, "spec": spec, "status": { "apiEnablements": enabled },
    }))
    .unwrap()
}

fn tainted(taint: &Value) -> ClusterView {
    cluster(json!({ "taints": [taint] }))
}

fn binding(more: &Value) -> ResourceBindingSpec {
    let resource: Value = serde_json::from_str(DEPLOYMENT).unwrap();
    let mut spec = json!({ "resource": resource });
    json_patch::merge(&mut spec, more);
    from_value(spec).unwrap()
}

/// Returns the message of a placement that none of the clusters fits.
fn refusal(
    spec: &ResourceBindingSpec,
    placement: Value,
    clusters: &[&ClusterView],
) -> Option<String> {
    let placement: Placement = from_value(placement).unwrap();
    let scheduler = Scheduler::default();
    let facts = Facts {
        scheduler: &scheduler,
        binding: BindingRef {
            metadata: &ObjectMeta::default(),
            spec,
            status: None,
        },
        placement: &placement,
        strategy: ReplicaStrategy::None,
        fleet: KnownClusters {
            clusters,
            complete: true,
        },
        pass: Pass {
            now: NOW.parse().unwrap(),
            cluster_changed: false,
            affinity_groups: None,
            assumed: None,
            estimates: None,
        },
    };
    let fitting = fitting(facts, Tiers::only(placement.cluster_affinity.as_ref()));
    fitting.err().map(|unfit| unfit.to_string())
}

/// A cluster fits unless one of the reasons speaks against it.
#[test]
fn each_reason_excludes_cluster() {
    let free = binding(&json!({}));
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
            json!({ "spreadConstraints": [{ "spreadByField": "zone" }] }),
            cluster(json!({ "region": "r", "provider": "p" })),
            Some("1 cluster(s) did not have zones property"),
        ),
        (
            free.clone(),
            json!({ "spreadConstraints": [{ "spreadByField": "region" }] }),
            cluster(json!({ "zones": ["z"] })),
            Some("1 cluster(s) did not have region property"),
        ),
        (
            free,
            json!({ "spreadConstraints": [{ "spreadByField": "region" }] }),
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
        assert_eq!(refusal(&spec, placement, &[&cluster]), expected);
    }
}

/// A taint keeps away workloads that do not tolerate it.
#[test]
fn taint_excludes_untolerating() {
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
        let refusal = refusal(&binding(&json!({})), placement, &[&tainted(&taint)]);
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
        refusal(&binding(&json!({})), json!({}), &[&tainted(&preference)]),
        None
    );
}

/// A toleration that has run out tolerates nothing.
#[test]
fn expired_toleration_is_none() {
    let taint = json!({ "key": "k", "effect": "NoExecute", "timeAdded": "2026-11-22T07:59:00Z" });
    for (seconds, fits) in [(json!(61), true), (json!(60), false), (json!(null), true)] {
        let toleration = json!({ "operator": "Exists", "tolerationSeconds": seconds });
        let placement = json!({ "clusterTolerations": [toleration] });
        let refusal = refusal(&binding(&json!({})), placement, &[&tainted(&taint)]);
        assert_eq!(refusal.is_none(), fits, "{seconds}");
    }
}

/// A running copy is not driven away by a taint, or by a kind that vanished.
#[test]
fn targets_keep_fitting() {
    let runs = json!({ "clusters": [{ "name": "m1" }], "resource": { "kind": "Other" } });
    let taint = json!({ "key": "k", "effect": "NoExecute" });
    let tainted = [&tainted(&taint)];
    assert_eq!(refusal(&binding(&runs), json!({}), &tainted), None);
    let elsewhere = json!({ "clusterAffinity": { "exclude": ["m1"] } });
    assert!(refusal(&binding(&runs), elsewhere, &tainted).is_some());
}

/// The message counts the clusters of each reason.
#[test]
fn reasons_are_counted() {
    let placement = json!({ "clusterAffinity": { "clusterNames": ["m2"] } });
    let (plain, taint) = (
        cluster(json!({})),
        json!({ "key": "k", "effect": "NoExecute" }),
    );
    let (tainted, mut leaving) = (tainted(&taint), plain.clone());
    leaving.metadata.deletion_timestamp = Some(from_value(json!("2026-11-20T08:00:00Z")).unwrap());
    let clusters = [&plain, &tainted, &plain, &leaving];
    assert_eq!(
        refusal(&binding(&json!({})), placement, &clusters).unwrap(),
        "0/4 clusters are available: 1 cluster(s) had untolerated taint {k:NoExecute}, \
         1 cluster(s) were being deleted, \
         2 cluster(s) did not match the placement cluster affinity constraint."
    );
}
