//! The replicas of a manifest in one cluster.

use std::collections::BTreeMap;

use karmada_api::TargetCluster;
use objects::{Metadata, api_version, kind};
use serde_json::Value;

use crate::schedule::webster;

/// Sets the replicas of a workload of Kubernetes' own, or the parallelism of a Job. Other kinds have none.
pub(super) fn revise(object: &mut Value, replicas: i32) {
    let field = match (api_version(object), kind(object)) {
        ("apps/v1", "Deployment" | "StatefulSet") => "replicas",
        ("batch/v1", "Job") => "parallelism",
        _ => return,
    };
    set(object, field, replicas);
}

/// Sets the completions of a Job.
pub fn revise_completions(job: &mut Value, completions: i32) {
    set(job, "completions", completions);
}

/// Sets a number of the spec.
pub(super) fn set(object: &mut Value, field: &str, number: i32) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert(field.to_owned(), number.into());
    }
}

/// Returns each cluster's share of a Job's completions; empty if the template has none to share. A cluster keeps the share
/// that it has, for a Job's completions cannot change, if others get the rest, in proportion to their replicas.
pub fn completions<'a>(
    template: &Value,
    clusters: &'a [TargetCluster],
    mut kept: BTreeMap<&'a str, i32>,
) -> BTreeMap<&'a str, i32> {
    if (api_version(template), kind(template)) != ("batch/v1", "Job") {
        return BTreeMap::new();
    }
    let completions = template
        .pointer("/spec/completions")
        .and_then(Value::as_i64);
    let Some(completions) = completions.and_then(|number| i32::try_from(number).ok()) else {
        return BTreeMap::new();
    };
    let replicas = clusters.iter().map(|cluster| {
        let replicas = cluster.replicas.unwrap_or_default();
        (cluster.name.as_str(), i64::from(replicas))
    });
    let all: BTreeMap<_, _> = replicas.collect();
    let mut others = all.clone();
    others.retain(|name, _| !kept.contains_key(name));
    let sum = kept.values().copied().fold(0, i32::saturating_add);
    let left = completions.saturating_sub(sum).max(0);
    // Where nobody took the rest, the Job would look complete: that its shares cannot change is to be told.
    let is_short = left > 0 && others.values().all(|replicas| *replicas <= 0);
    if is_short || is_elastic(template) {
        return webster(completions, &all, template.uid());
    }
    kept.extend(webster(left, &others, template.uid()));
    kept
}

/// Returns `true` for a Job whose completions follow its parallelism (Kubernetes, "Elastic Indexed Jobs").
fn is_elastic(job: &Value) -> bool {
    let spec = &job["spec"];
    spec["completionMode"] == "Indexed" && spec.get("completions") == spec.get("parallelism")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "uid": "u" }, "spec": spec })
    }

    /// Replicas are those of the cluster.
    #[test]
    fn clusters_replicas_are_set() {
        for kind in ["Deployment", "StatefulSet"] {
            let mut workload = object("apps/v1", kind, &json!({ "replicas": 4, "other": 1 }));
            revise(&mut workload, 0);
            assert_eq!(
                workload["spec"],
                json!({ "replicas": 0, "other": 1 }),
                "{kind}"
            );
        }
        let mut job = object("batch/v1", "Job", &json!({}));
        revise(&mut job, 2);
        assert_eq!(job["spec"], json!({ "parallelism": 2 }));
        revise_completions(&mut job, 3);
        assert_eq!(job["spec"], json!({ "parallelism": 2, "completions": 3 }));
    }

    #[test]
    fn other_kinds_have_no_replicas() {
        let others = [
            object("apps/v1", "DaemonSet", &json!({})),
            object("apps/v1", "ReplicaSet", &json!({ "replicas": 4 })),
            object(
                "apps.example.com/v1",
                "Deployment",
                &json!({ "replicas": 4 }),
            ),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment" }),
            json!([]),
        ];
        for other in others {
            let mut revised = other.clone();
            revise(&mut revised, 2);
            assert_eq!(revised, other);
        }
    }

    /// Completions are shared in proportion to replicas.
    #[test]
    fn completions_follow_replicas() {
        let clusters = [("m1", Some(1)), ("m2", Some(3)), ("m3", None)];
        let clusters = clusters.map(|(name, replicas)| TargetCluster {
            name: name.to_owned(),
            replicas,
            ..TargetCluster::default()
        });
        let job = object("batch/v1", "Job", &json!({ "completions": 8 }));
        let shares = completions(&job, &clusters, BTreeMap::new());
        assert_eq!(shares, BTreeMap::from([("m1", 2), ("m2", 6), ("m3", 0)]));
        let endless = object("batch/v1", "Job", &json!({}));
        assert!(completions(&endless, &clusters, BTreeMap::new()).is_empty());
        let deployment = object("apps/v1", "Deployment", &json!({ "completions": 8 }));
        assert!(completions(&deployment, &clusters, BTreeMap::new()).is_empty());
    }
    /// A Job's completions cannot change: a cluster keeps its own, and one that comes gets the rest. Those of an
    /// elastic Job follow its parallelism. Case P94.
    #[test]
    fn shares_are_kept() {
        let clusters = ["m1", "m2"].map(|name| TargetCluster {
            name: name.to_owned(),
            replicas: Some(1),
            ..TargetCluster::default()
        });
        let kept = BTreeMap::from([("m1", 6)]);
        let job = object(
            "batch/v1",
            "Job",
            &json!({ "completions": 8, "parallelism": 2 }),
        );
        let shares = completions(&job, &clusters, kept.clone());
        assert_eq!(shares, BTreeMap::from([("m1", 6), ("m2", 2)]));
        let alone = completions(&job, &clusters[..1], kept.clone());
        assert_eq!(alone, BTreeMap::from([("m1", 8)]));
        let elastic = object(
            "batch/v1",
            "Job",
            &json!({ "completions": 8, "parallelism": 8, "completionMode": "Indexed" }),
        );
        let shares = completions(&elastic, &clusters, kept);
        assert_eq!(shares, BTreeMap::from([("m1", 4), ("m2", 4)]));
    }
}
