//! Why agents that were brought into a member have not reported: their pods, or their way to the Karmada API.

use karmada_api::condition::{REPORTER_READY, REPORTER_SILENT_REASON};
use karmada_api::work::ManifestStatus;
use karmada_api::{Cluster, Work};
use serde_json::Value;

use super::rights::ACCOUNT;

/// Returns `true` if the agents of a cluster report, whatever they report.
pub(super) fn reports(cluster: &Cluster) -> bool {
    let fresh = cluster.condition(REPORTER_READY);
    fresh.is_some_and(|fresh| fresh.reason != REPORTER_SILENT_REASON)
}

/// Tells the obstacle of the agents of a Work that is applied, and where to look.
pub(crate) fn explain(work: Option<&Work>) -> String {
    let status = work.and_then(|work| work.status.as_ref());
    let statuses = status.into_iter().flat_map(|it| &it.manifest_statuses);
    let mut agents = statuses.filter(|it| is_of_agents(it));
    explain_pods(agents.find_map(|it| it.status.as_ref()))
}

fn is_of_agents(status: &ManifestStatus) -> bool {
    status.identifier.kind == "DaemonSet" && status.identifier.name == ACCOUNT
}

/// Tells it by the status of the `DaemonSet`.
pub(super) fn explain_pods(status: Option<&Value>) -> String {
    const LOOK: &str = "in the member, `kubectl -n karmada-rs";
    let Some(status) = status else {
        return format!(
            "nothing is known of its agents' pods: {LOOK} describe daemonset {ACCOUNT}` tells of them"
        );
    };
    let desired = count(status, "desiredNumberScheduled");
    if desired == 0 {
        return "none of its nodes is to have an agent: look at its nodes, and at the nodeSelector of the agents".to_owned();
    }
    if count(status, "currentNumberScheduled") == 0 {
        return format!(
            "none of its {desired} agents could be created: its admission refuses them, as OpenShift does a fixed user (docs/before.md, \"Your environment\"), or a quota is used up; {LOOK} describe daemonset {ACCOUNT}` says which"
        );
    }
    if count(status, "numberReady") == 0 {
        return format!(
            "none of its {desired} agents is ready: their image cannot be pulled, or they do not start; {LOOK} describe pods` says which"
        );
    }
    format!(
        "its agents run, and do not reach the Karmada API: look at the address, its certificate, proxies and policies for what leaves the member; {LOOK} logs daemonset/{ACCOUNT}` says which"
    )
}

fn count(status: &Value, name: &str) -> i64 {
    status[name].as_i64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// Whoever waits in vain for a report learns whether the image, the admission or the network is to blame.
    #[test]
    fn silence_is_explained() {
        for (status, told) in [
            (json!(null), "nothing is known of its agents' pods"),
            (json!({}), "none of its nodes is to have an agent"),
            (
                json!({ "desiredNumberScheduled": 3, "currentNumberScheduled": 0 }),
                "none of its 3 agents could be created: its admission refuses them",
            ),
            (
                json!({ "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 0 }),
                "none of its 3 agents is ready: their image cannot be pulled",
            ),
            (
                json!({ "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 2 }),
                "its agents run, and do not reach the Karmada API",
            ),
        ] {
            let identifier = json!({ "ordinal": 1, "version": "v1", "kind": "DaemonSet", "resource": "daemonsets",
                "namespace": "karmada-rs", "name": ACCOUNT });
            let other = json!({ "ordinal": 0, "version": "v1", "kind": "Secret", "resource": "secrets",
                "namespace": "karmada-rs", "name": ACCOUNT });
            let statuses =
                json!([{ "identifier": other }, { "identifier": identifier, "status": status }]);
            let work: Work =
                from_value(json!({ "status": { "manifestStatuses": statuses } })).unwrap();
            let line = explain(Some(&work));
            assert!(line.starts_with(told), "{line}");
            assert_eq!(line.lines().count(), 1);
        }
    }

    fn cluster(reason: &str) -> Cluster {
        let fresh = json!({ "type": REPORTER_READY, "status": "False", "reason": reason });
        from_value(json!({ "metadata": { "name": "m1" }, "spec": {},
            "status": { "conditions": [fresh] } }))
        .unwrap()
    }

    /// Agents without enough votes have reported, and those whose lease has ended have not.
    #[test]
    fn stale_report_is_one() {
        assert!(reports(&cluster("InsufficientObservations")));
        assert!(!reports(&cluster(REPORTER_SILENT_REASON)));
    }
}
