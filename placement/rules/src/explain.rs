//! Why a placement is where it is: the answer to a person who asks.

use fleet_api::binding::{BindingState, BindingStatus};
use fleet_api::conditions::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, ROLLOUT_STARTED, WORK_SYNCHRONIZED,
};
use fleet_api::placement::{Difference, ResourceIdentifier};
use fleet_api::{Binding, Placement, PolicySnapshot, StagedUpdateRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use objects::Metadata;
use objects::condition::Condition;
use serde::Serialize;

use super::condition::{current_condition, is_true};
use super::select::show;
use super::snapshot::{latest_policy, latest_resources};
use super::strategy::Strategy;
use super::update::{self, RunExplanation};

/// A placement and the objects made for it.
#[derive(Clone, Copy, Debug)]
pub struct ExplainFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The snapshots of its policy.
    pub policies: &'a [&'a PolicySnapshot],
    /// The metadata of the snapshots of its selection.
    pub snapshots: &'a [&'a ObjectMeta],
    /// Its bindings.
    pub bindings: &'a [&'a Binding],
    /// The runs of the hub, of this placement and of others.
    pub runs: &'a [&'a StagedUpdateRun],
}

/// An explanation of a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementExplanation {
    /// Its name, after its namespace if it has one.
    pub placement: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The latest snapshot of its selection, if there is one.
    pub latest_snapshot: Option<String>,
    /// The clusters that it is in, or is to be in.
    pub clusters: Vec<PlacedCluster>,
    /// Other clusters that were looked at.
    pub others: Vec<OtherCluster>,
    /// The runs that update the clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunExplanation>,
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
    /// Where it stands, and the reason why it waits.
    pub state: String,
    /// The objects that are not as they are to be.
    pub failures: Vec<String>,
    /// The objects that somebody has changed there, or that differ.
    pub differences: Vec<String>,
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
        placement: facts.placement.metadata.key().to_string(),
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
        runs: update::explain(&facts.placement.metadata.key(), facts.runs),
    }
}

fn placed(binding: &Binding, latest: Option<&str>) -> PlacedCluster {
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
        state: state(binding),
        failures: failures.collect(),
        differences: differences(&status),
    }
}

/// Returns a line for each object that somebody has changed, or that differs.
fn differences(status: &BindingStatus) -> Vec<String> {
    let drifted = status.drifted_placements.iter().map(|one| {
        let since = one.first_drifted_observed_time.as_ref();
        line(
            &one.identifier,
            "was changed there",
            since,
            &one.observed_drifts,
        )
    });
    let diffed = status.diffed_placements.iter().map(|one| {
        let since = one.first_diffed_observed_time.as_ref();
        line(&one.identifier, "differs", since, &one.observed_diffs)
    });
    drifted.chain(diffed).collect()
}

/// The fields that a line names.
const NAMED: usize = 3;

fn line(
    object: &ResourceIdentifier,
    what: &str,
    since: Option<&Time>,
    differences: &[Difference],
) -> String {
    let since = since.map_or_else(String::new, |since| format!(" since {}", since.0));
    let named = differences.iter().take(NAMED).map(|one| {
        let (there, here) = (short(&one.value_in_member), short(&one.value_in_hub));
        format!("{} is {there}, on the hub {here}", one.path)
    });
    let mut named: Vec<_> = named.collect();
    if named.is_empty() {
        named.push("in too much to be told".to_owned());
    }
    let more = match differences.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{} {what}{since}: {}{more}", show(object), named.join("; "))
}

/// Returns a value as a part of a line.
fn short(value: &str) -> String {
    const LONGEST: usize = 40;
    let first = value.lines().next().unwrap_or_default();
    if value.is_empty() {
        "absent".to_owned()
    } else if first.len() < value.len() || first.chars().count() > LONGEST {
        first.chars().take(LONGEST).chain("…".chars()).collect()
    } else {
        value.to_owned()
    }
}

/// Returns where a binding stands: the first step that is not done, with its message.
fn state(binding: &Binding) -> String {
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
    let given = [ROLLOUT_STARTED, OVERRIDDEN, WORK_SYNCHRONIZED];
    let (last, done) = if Strategy::of(binding.spec.apply_strategy.as_ref()).only_reports() {
        (&[DIFF_REPORTED][..], "has reported its differences")
    } else {
        (
            &[APPLIED, AVAILABLE][..],
            "has it, and all of it is available",
        )
    };
    let mut steps = given.into_iter().chain(last.iter().copied());
    let Some(step) = steps.find(|step| !is_true(binding, step)) else {
        return done.to_owned();
    };
    match current_condition(binding, step) {
        Some(said) => format!(
            "{step} is {}: {}: {}",
            said.status, said.reason, said.message
        ),
        None => format!("waits for word on {step}"),
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
        let bindings = all::<Binding>("crp-roll-bindings-mid-rollout");
        let snapshots = all::<fleet_api::ResourceSnapshot>("crp-roll-resourcesnapshots");
        let explanation = explain(&ExplainFacts {
            placement: &placement,
            policies: &[],
            snapshots: &snapshots
                .iter()
                .map(|one| &one.metadata)
                .collect::<Vec<_>>(),
            bindings: &bindings.iter().collect::<Vec<_>>(),
            runs: &[],
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

    /// An object on the first member has other values, and the second has nothing.
    #[test]
    fn recorded_differences_are_explained() {
        let placement = from_value(fixture("crp-diff-reported")).unwrap();
        let bindings = all::<Binding>("crp-diff-bindings");
        let explanation = explain(&ExplainFacts {
            placement: &placement,
            policies: &[],
            snapshots: &[],
            bindings: &bindings.iter().collect::<Vec<_>>(),
            runs: &[],
        });
        let told = explanation.clusters.iter().map(|one| &one.differences[..]);
        let map = "ConfigMap app-10/c differs since 2026-11-25T16:47:13Z";
        let namespace = "Namespace app-10 differs since 2026-11-25T16:47:13Z";
        let values = "/data/extra is 1, on the hub absent; /data/k is other, on the hub v; \
                      /data/l is absent, on the hub w";
        let whole = "/ is absent, on the hub (the whole object)";
        let expected = [
            vec![format!("{map}: {values}")],
            vec![format!("{namespace}: {whole}"), format!("{map}: {whole}")],
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let states = explanation.clusters.iter().map(|one| &*one.state);
        assert_eq!(
            states.collect::<Vec<_>>(),
            ["has reported its differences"; 2]
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
            runs: &[],
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
