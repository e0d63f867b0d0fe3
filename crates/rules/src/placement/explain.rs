//! Why a placement is where it is: the answer to a person who asks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::Condition;
use karmada_api::condition::TRUE;
use karmada_api::fleet::binding::BindingState;
use karmada_api::fleet::conditions::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, ROLLOUT_STARTED, WORK_SYNCHRONIZED,
};
use karmada_api::fleet::{
    ClusterResourceBinding, ClusterResourcePlacement, ClusterSchedulingPolicySnapshot,
};
use objects::Metadata;
use objects::condition::find;
use serde::Serialize;

use super::select::show;
use super::snapshot::{latest_policy, latest_resources};

/// A placement and what was made of it.
#[derive(Clone, Copy, Debug)]
pub struct ExplainFacts<'a> {
    /// The placement.
    pub placement: &'a ClusterResourcePlacement,
    /// The snapshots of its policy.
    pub policies: &'a [&'a ClusterSchedulingPolicySnapshot],
    /// The metadata of the snapshots of what it selects.
    pub snapshots: &'a [&'a ObjectMeta],
    /// Its bindings.
    pub bindings: &'a [&'a ClusterResourceBinding],
}

/// An explanation of a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementExplanation {
    /// Its name.
    pub placement: String,
    /// What it says of itself.
    pub conditions: Vec<Condition>,
    /// The latest snapshot of what it selects, if there is one.
    pub latest_snapshot: Option<String>,
    /// The clusters that it is in, or is to be in.
    pub clusters: Vec<PlacedCluster>,
    /// Other clusters that were looked at.
    pub others: Vec<OtherCluster>,
}

/// A cluster of a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedCluster {
    /// Its name.
    pub name: String,
    /// Why it was picked.
    pub picked: String,
    /// The snapshot that it has, or is getting; empty before it gets one.
    pub snapshot: String,
    /// True if that is the latest.
    pub is_latest: bool,
    /// Where it stands, and what it waits for.
    pub state: String,
    /// The objects that are not as they are to be.
    pub failures: Vec<String>,
}

/// A cluster that a placement is not in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherCluster {
    /// Its name.
    pub name: String,
    /// Why it was not picked.
    pub reason: String,
}

/// Explains a placement.
pub fn explain(facts: &ExplainFacts<'_>) -> PlacementExplanation {
    let latest = latest_resources(facts.snapshots.iter().copied());
    let latest = latest.map(|latest| latest.name().to_owned());
    let mut clusters: Vec<_> = facts
        .bindings
        .iter()
        .map(|binding| placed(binding, latest.as_deref()))
        .collect();
    clusters.sort_by(|one, other| one.name.cmp(&other.name));
    let policy = latest_policy(facts.policies);
    let decisions = policy.and_then(|policy| policy.status.as_ref());
    let decisions = decisions.map_or(&[][..], |status| &status.target_clusters);
    let others = decisions.iter().filter(|decision| !decision.selected);
    let status = facts.placement.status.as_ref();
    PlacementExplanation {
        placement: facts.placement.metadata.name().to_owned(),
        conditions: status
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        latest_snapshot: latest,
        clusters,
        others: others
            .map(|decision| OtherCluster {
                name: decision.cluster_name.clone(),
                reason: decision.reason.clone(),
            })
            .collect(),
    }
}

fn placed(binding: &ClusterResourceBinding, latest: Option<&str>) -> PlacedCluster {
    let (spec, status) = (&binding.spec, binding.status.clone().unwrap_or_default());
    let failures = status.failed_placements.iter().map(|failed| {
        let Condition {
            reason, message, ..
        } = &failed.condition;
        format!("{}: {reason}: {message}", show(&failed.identifier))
    });
    PlacedCluster {
        name: spec.target_cluster.clone(),
        picked: spec.cluster_decision.reason.clone(),
        snapshot: spec.resource_snapshot_name.clone(),
        is_latest: latest == Some(&*spec.resource_snapshot_name),
        state: state(binding, &status.conditions),
        failures: failures.collect(),
    }
}

/// Returns where a binding stands: the first step that is not done, with what it says.
fn state(binding: &ClusterResourceBinding, conditions: &[Condition]) -> String {
    if binding.metadata.is_deleting() {
        return "is being removed".to_owned();
    }
    match binding.spec.state {
        BindingState::Scheduled => return "is picked, and waits for its turn".to_owned(),
        BindingState::Unscheduled => {
            return "is picked no longer, and stays until others can do without it".to_owned();
        }
        BindingState::Bound => {}
    }
    let is_done = |kind: &str| {
        find(conditions, kind).is_some_and(|one| {
            one.status == TRUE && one.observed_generation == binding.metadata.generation
        })
    };
    if is_done(DIFF_REPORTED) {
        return "has reported its differences".to_owned();
    }
    let steps = [
        ROLLOUT_STARTED,
        OVERRIDDEN,
        WORK_SYNCHRONIZED,
        APPLIED,
        AVAILABLE,
    ];
    let Some(step) = steps.into_iter().find(|step| !is_done(step)) else {
        return "has it, and all of it is available".to_owned();
    };
    match find(conditions, step) {
        Some(one) if one.observed_generation == binding.metadata.generation => {
            format!("{step} is {}: {}: {}", one.status, one.reason, one.message)
        }
        _ => format!("waits for word on {step}"),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::from_value;

    use super::super::fixtures::{fixture, items};
    use super::*;

    fn all<T: DeserializeOwned>(name: &str) -> Vec<T> {
        items(name)
            .into_iter()
            .map(|item| from_value(item).unwrap())
            .collect()
    }

    /// Three members in the middle of a rollout: the first has the change, the others wait for it.
    #[test]
    fn recorded_rollout_is_explained() {
        let placement = from_value(fixture("crp-roll-mid-rollout")).unwrap();
        let bindings = all::<ClusterResourceBinding>("crp-roll-bindings-mid-rollout");
        let snapshots =
            all::<karmada_api::fleet::ClusterResourceSnapshot>("crp-roll-resourcesnapshots");
        let explanation = explain(&ExplainFacts {
            placement: &placement,
            policies: &[],
            snapshots: &snapshots
                .iter()
                .map(|one| &one.metadata)
                .collect::<Vec<_>>(),
            bindings: &bindings.iter().collect::<Vec<_>>(),
        });
        assert_eq!(
            explanation.latest_snapshot.as_deref(),
            Some("crp-roll-1-snapshot")
        );
        let [first, second, _] = &explanation.clusters[..] else {
            panic!("{explanation:?}");
        };
        assert!(first.is_latest && !second.is_latest);
        let stuck = "Available is False: NotAllWorkAreAvailable: Work object crp-roll-work is not yet available";
        assert_eq!(first.state, stuck);
        assert_eq!(first.failures.len(), 1);
        assert!(
            first.failures[0].contains("web: ManifestNotAvailableYet: "),
            "{first:?}"
        );
        assert!(
            second
                .state
                .starts_with("RolloutStarted is False: RolloutNotStartedYet: ")
        );
    }

    #[test]
    fn others_have_their_reasons() {
        let placement = from_value(fixture("crp-five-unfulfilled")).unwrap();
        let policy = from_value(fixture("crp-five-policysnapshot-0")).unwrap();
        let explanation = explain(&ExplainFacts {
            placement: &placement,
            policies: &[&policy],
            snapshots: &[],
            bindings: &[],
        });
        let [other] = &explanation.others[..] else {
            panic!("{explanation:?}");
        };
        assert_eq!(other.name, "kind-cluster-3");
        assert!(
            other
                .reason
                .starts_with("ClusterUnschedulable, cluster does not match")
        );
    }
}
