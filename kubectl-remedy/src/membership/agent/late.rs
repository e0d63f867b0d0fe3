//! Why a Work has not reached its goal in time.

use karmada_api::cluster_view::PULL;
use karmada_api::condition::TRUE;
use karmada_api::work::APPLIED;
use karmada_api::{ClusterView, Work};
use objects::condition::find;

/// The fault of a Work that is not carried out.
pub(super) const UNAPPLIED: &str = "its Work is not applied";
/// The fault of one whose deletion is not.
pub(super) const NOT_GONE: &str = "its Work is not gone";

/// Tells why a Work is `late`, and where to look.
pub(super) fn explain(late: &str, work: Option<&Work>, cluster: Option<&ClusterView>) -> String {
    let failed = work.and_then(|work| work.condition(APPLIED));
    if let Some(failed) = failed.filter(|failed| failed.status != TRUE) {
        return format!("{late}: {}", failed.message);
    }
    if work.is_some_and(Work::is_suspended) {
        return format!("{late}: its spec.suspendDispatching is true");
    }
    let ready = cluster.and_then(|cluster| find(&cluster.status.conditions, "Ready"));
    if let Some(ready) = ready.filter(|ready| ready.status != TRUE) {
        let (reason, message) = (&ready.reason, &ready.message);
        return format!("{late}, because the cluster is not ready: {reason}: {message}");
    }
    let pulls = cluster.is_some_and(|cluster| cluster.spec.sync_mode == PULL);
    let look = if pulls {
        "the cluster is of mode Pull, and nobody in it carries Works out: look at its karmada-agent, or at our execution-controller there (docs/pull.md)"
    } else {
        "nobody carries Works out: look at karmada-controller-manager (its controller `execution`), or at our execution-controller and its lease karmada-system/execution-controller"
    };
    format!("{late}; {look}")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn work(conditions: &serde_json::Value) -> Work {
        from_value(json!({ "status": { "conditions": conditions } })).unwrap()
    }

    fn cluster(mode: &str, ready: &str) -> ClusterView {
        let ready = json!({ "type": "Ready", "status": ready, "reason": "R", "message": "m" });
        from_value(
            json!({ "metadata": { "name": "m1" }, "spec": { "syncMode": mode },
                "status": { "conditions": [ready] } }),
        )
        .unwrap()
    }

    /// Whoever waits in vain learns where to look.
    #[test]
    fn late_work_is_explained() {
        let failed = json!([{ "type": "Applied", "status": "False", "message": "no such kind" }]);
        let (failed, silent) = (work(&failed), work(&json!([])));
        let (push, pull) = (cluster("Push", "True"), cluster("Pull", "True"));
        let dead = cluster("Push", "False");
        for (work, cluster, part) in [
            (Some(&failed), &push, "not applied: no such kind"),
            (Some(&silent), &push, "karmada-controller-manager"),
            (Some(&silent), &pull, "mode Pull"),
            (None, &dead, "not ready: R: m"),
        ] {
            let text = explain(UNAPPLIED, work, Some(cluster));
            assert!(text.contains(part), "{text}");
        }
    }
}
