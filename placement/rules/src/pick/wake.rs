//! Which changes of clusters are worth another pass.

use std::collections::BTreeMap;

use fleet_api::conditions::NAMESPACES_COLLECTED;
use fleet_api::policy::PlacementType;
use fleet_api::{MemberCluster, PolicySnapshot};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::condition::{TRUE, find};

use super::facts::FleetCluster;

/// A change of a cluster that scheduling depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// It is new, or it is another than it was.
    Changed,
    /// It is gone, or is leaving.
    Gone,
}

/// Returns how a cluster changed, or `None` if scheduling does not depend on it: heartbeats come all the time.
pub fn change(
    before: Option<FleetCluster<'_>>,
    after: Option<FleetCluster<'_>>,
) -> Option<ClusterChange> {
    let has_left = before.is_some() && after.is_none();
    let staying = [before, after].map(|one| one.filter(|one| !one.cluster.metadata.is_deleting()));
    match staying {
        // The policy says of a cluster that leaves why it does not get anything.
        [None, None] => has_left.then_some(ClusterChange::Gone),
        [None, Some(_)] => Some(ClusterChange::Changed),
        [Some(_), None] => Some(ClusterChange::Gone),
        [Some(before), Some(after)] => {
            let is_same = before.obstacle == after.obstacle
                && without_noise(before.cluster) == without_noise(after.cluster);
            (!is_same).then_some(ClusterChange::Changed)
        }
    }
}

/// Returns a cluster without its noise: a policy decides the same about two that are the same then.
fn without_noise(cluster: &MemberCluster) -> MemberCluster {
    let mut status = cluster.status.clone().unwrap_or_default();
    // The obstacle alone depends on the agents.
    status.agent_status.clear();
    for property in status.properties.values_mut() {
        property.observation_time = None;
    }
    // That the room was read counts, whenever that was.
    if let Some(time) = &mut status.resource_usage.observation_time {
        time.0 = Timestamp::UNIX_EPOCH;
    }
    let conditions = &mut status.conditions;
    conditions.retain(|condition| condition.type_ == NAMESPACES_COLLECTED);
    for collected in &mut *conditions {
        collected.last_transition_time = None;
        collected.observed_generation = None;
    }
    if conditions.is_empty() {
        status.namespaces = None;
    }
    let works = status.namespaces.iter_mut().flat_map(BTreeMap::values_mut);
    works.for_each(String::clear);
    MemberCluster {
        metadata: ObjectMeta {
            labels: cluster.metadata.labels.clone(),
            ..ObjectMeta::default()
        },
        spec: cluster.spec.clone(),
        status: Some(status),
        ..MemberCluster::default()
    }
}

/// Returns `true` if the change of a cluster is worth another pass for a placement. `has_binding` says whether the
/// placement has one there. No cluster loses it because a better one came.
pub fn wakes(policy: &PolicySnapshot, has_binding: bool, change: ClusterChange) -> bool {
    let kind = policy
        .spec
        .policy
        .as_ref()
        .map(|policy| policy.placement_type);
    let status = policy.status.as_ref();
    let scheduled = status.and_then(|status| find(&status.conditions, "Scheduled"));
    let is_short = scheduled.is_none_or(|scheduled| scheduled.status != TRUE);
    // Its namespace may have gone there.
    let is_of_namespace = !policy.metadata.namespace().is_empty();
    kind.unwrap_or_default() == PlacementType::PickAll
        || is_short
        || (has_binding && (is_of_namespace || change == ClusterChange::Gone))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::eligible::Obstacle;
    use crate::fixtures::fixture;

    #[test]
    fn heartbeats_change_nothing() {
        let recorded = fixture("membercluster");
        let cluster: MemberCluster = from_value(recorded.clone()).unwrap();
        let before = FleetCluster {
            cluster: &cluster,
            obstacle: None,
        };
        let later = json!({ "observationTime": "2026-11-25T17:00:00Z" });
        for (patch, expected) in [
            (
                json!({ "status": { "resourceUsage": later, "agentStatus": [], "conditions": [],
                "properties": { "kubernetes-fleet.io/node-count": later } } }),
                None,
            ),
            (
                json!({ "metadata": { "labels": { "env": "canary" } } }),
                Some(ClusterChange::Changed),
            ),
            (
                json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } }),
                Some(ClusterChange::Changed),
            ),
            (
                json!({ "status": { "resourceUsage": { "available": { "cpu": "3" } } } }),
                Some(ClusterChange::Changed),
            ),
            (
                json!({ "metadata": { "deletionTimestamp": "2026-11-25T17:00:00Z" } }),
                Some(ClusterChange::Gone),
            ),
        ] {
            let mut changed = recorded.clone();
            json_patch::merge(&mut changed, &patch);
            let changed: MemberCluster = from_value(changed).unwrap();
            let after = FleetCluster {
                cluster: &changed,
                ..before
            };
            assert_eq!(change(Some(before), Some(after)), expected, "{patch}");
        }
        let silent = FleetCluster {
            obstacle: Some(Obstacle::Silent),
            ..before
        };
        assert_eq!(
            change(Some(before), Some(silent)),
            Some(ClusterChange::Changed)
        );
        assert_eq!(change(None, Some(before)), Some(ClusterChange::Changed));
        assert_eq!(change(Some(before), None), Some(ClusterChange::Gone));
    }

    fn telling(status: &str, time: &str, work: &str) -> MemberCluster {
        let mut cluster = fixture("membercluster");
        let collected =
            json!({ "type": NAMESPACES_COLLECTED, "status": status, "lastTransitionTime": time });
        let told =
            json!({ "status": { "namespaces": { "web": work }, "conditions": [collected] } });
        json_patch::merge(&mut cluster, &told);
        from_value(cluster).unwrap()
    }

    /// A cluster without a namespace may have it all the same once it has too many to tell of all. Who brought one decides
    /// nothing.
    #[test]
    fn cut_namespaces_are_news() {
        let before = telling("True", "2026-11-25T16:00:00Z", "");
        let same = telling("True", "2026-11-25T17:00:00Z", "web-work");
        let cut = telling("False", "2026-11-25T16:00:00Z", "");
        assert_eq!(without_noise(&before), without_noise(&same));
        assert_ne!(without_noise(&before), without_noise(&cut));
    }

    /// A cluster that leaves is among the decisions, with that reason, until it has left.
    #[test]
    fn end_of_leaving_is_told() {
        let mut recorded = fixture("membercluster");
        let leaving = json!({ "metadata": { "deletionTimestamp": "2026-11-25T17:00:00Z" } });
        json_patch::merge(&mut recorded, &leaving);
        let cluster: MemberCluster = from_value(recorded).unwrap();
        let leaving = FleetCluster {
            cluster: &cluster,
            obstacle: Some(Obstacle::Leaving),
        };
        assert_eq!(change(Some(leaving), Some(leaving)), None);
        assert_eq!(change(Some(leaving), None), Some(ClusterChange::Gone));
    }

    /// Only who takes every cluster, is short of one or has lost one looks again.
    #[test]
    fn the_content_sleep_on() {
        for (policy, changed, lost) in [
            ("crp-all-policysnapshot-0", true, true),
            ("crp-five-policysnapshot-0", true, true),
            ("crp-1-policysnapshot-0", false, true),
        ] {
            let snapshot = from_value(fixture(policy)).unwrap();
            assert_eq!(
                wakes(&snapshot, true, ClusterChange::Changed),
                changed,
                "{policy}"
            );
            assert_eq!(
                wakes(&snapshot, true, ClusterChange::Gone),
                lost,
                "{policy}"
            );
            assert_eq!(
                wakes(&snapshot, false, ClusterChange::Gone),
                changed,
                "{policy}"
            );
        }
    }
}
