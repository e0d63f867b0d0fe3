//! The bindings that are scheduled, and the moments at which they are.

use karmada_api::placement::ClusterSelector;
use karmada_api::{ClusterView, Placement, condition, names};
use objects::condition::find;
use serde::Deserialize;
use serde_json::Value;

use super::plan::{SCHEDULER_ERROR, UNSCHEDULABLE};
use super::strategy::ReplicaStrategy;
use super::{SCHEDULED, selects};
use crate::binding_ref::BindingRef;

/// The settings of a scheduler.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    /// The name by which policies choose it.
    pub name: String,
    /// True if a cluster that gets no replica of a workload is a target all the same.
    pub keeps_empty: bool,
    /// True if workloads leave clusters with a `NoExecute` taint that they do not tolerate.
    pub evicts: bool,
    /// True if workloads return to an earlier group of clusters once it fits again.
    pub fails_back: bool,
}

impl Scheduler {
    /// Returns `true` if evictions are ended by this scheduler, which begins some.
    pub(super) fn ends_evictions(&self) -> bool {
        self.evicts || self.fails_back
    }

    /// Returns `true` if the binding is to be scheduled, and by this scheduler.
    pub fn schedules(&self, binding: BindingRef<'_>) -> bool {
        let BindingRef { metadata, spec, .. } = binding;
        let has_label = |key: &str| {
            let labels = metadata.labels.as_ref();
            labels
                .and_then(|labels| labels.get(key))
                .is_some_and(|id| !id.is_empty())
        };
        let name = spec
            .scheduler_name
            .as_deref()
            .filter(|name| !name.is_empty());
        let suspension = spec.suspension.as_ref();
        spec.placement.as_ref().is_some_and(Value::is_object)
            && metadata.deletion_timestamp.is_none()
            && name.unwrap_or(DEFAULT) == self.name
            && suspension.and_then(|suspension| suspension.scheduling) != Some(true)
            && [
                names::POLICY_ID,
                names::CLUSTER_POLICY_ID,
                names::MANAGED_BY,
            ]
            .into_iter()
            .any(has_label)
    }
}

/// The scheduler of a binding that names none.
const DEFAULT: &str = "default-scheduler";

/// Returns `true` if the cluster is one that the binding has, or may get: its changes may change where
/// the template runs.
pub fn concerns(binding: BindingRef<'_>, cluster: &ClusterView) -> bool {
    let is_target = |name: &str| binding.targets().any(|target| target.name == name);
    cluster.metadata.name.as_deref().is_some_and(is_target)
        || binding.placement().is_some_and(|placement| {
            let mut affinities = affinities(&placement);
            affinities.any(|affinity| affinity.is_none_or(|affinity| selects(affinity, cluster)))
        })
}

/// Returns `true` if the binding may be scheduled otherwise once a cluster has more room: it is not scheduled,
/// has no other place for what has to leave one of the `tainted` clusters, or may return to an earlier group.
pub fn waits_for_room(
    scheduler: &Scheduler,
    binding: BindingRef<'_>,
    tainted: &[&ClusterView],
) -> bool {
    is_short_of_room(binding)
        || super::evict::has_to_leave(scheduler, binding, tainted)
        || scheduler.fails_back
            && binding.placement().is_some_and(|placement| {
                let groups = &placement.cluster_affinities;
                super::groups::start(groups, binding.observed_group(), false) > 0
            })
}

/// Returns `true` if the binding could not be scheduled. Its status counts every cluster of the fleet, with the
/// reason why it does not fit.
pub fn is_unscheduled(binding: BindingRef<'_>) -> bool {
    let condition = binding.condition();
    condition.is_some_and(|condition| condition.status == condition::FALSE)
}

fn is_short_of_room(binding: BindingRef<'_>) -> bool {
    binding.condition().is_some_and(|condition| {
        condition.status == condition::FALSE
            && [UNSCHEDULABLE, SCHEDULER_ERROR].contains(&condition.reason.as_str())
    })
}

/// Returns `true` if the cluster is selected by the affinity in use.
pub fn is_observed(binding: BindingRef<'_>, cluster: &ClusterView) -> bool {
    binding.placement().is_some_and(|placement| {
        let groups = &placement.cluster_affinities;
        let start = super::groups::start(groups, binding.observed_group(), false);
        let affinity = affinities(&placement).nth(start).flatten();
        affinity.is_none_or(|affinity| selects(affinity, cluster))
    })
}

/// Iterates over the affinities of a placement: its groups, or the only one, which may be absent.
fn affinities(placement: &Placement) -> impl Iterator<Item = Option<&ClusterSelector>> {
    let groups = &placement.cluster_affinities;
    let only = groups
        .is_empty()
        .then_some(placement.cluster_affinity.as_ref());
    groups.iter().map(|group| Some(&group.affinity)).chain(only)
}

/// Returns `true` if the binding is to be decided anew.
pub(super) fn is_due(
    binding: BindingRef<'_>,
    strategy: ReplicaStrategy<'_>,
    clusters: &[&ClusterView],
) -> bool {
    let is_leaving = |name: &str| {
        let mut named = clusters.iter();
        let named = named.find(|cluster| cluster.metadata.name.as_deref() == Some(name));
        named.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some())
    };
    let assigned = || {
        binding
            .targets()
            .map(|target| i64::from(target.replicas.unwrap_or(0)))
    };
    !strategy.divides()
        || assigned().sum::<i64>() != i64::from(binding.spec.replicas.unwrap_or(0))
        || placement_changed(binding)
        || is_triggered(binding)
        || binding.targets().any(|target| is_leaving(&target.name))
        // A failure is retried whatever has changed.
        || binding.condition().is_none_or(|condition| condition.status != condition::TRUE)
}

/// Returns `true` if scheduling anew was asked for since the last one. Both times have whole seconds: an
/// equal one is no later.
pub(super) fn is_triggered(binding: BindingRef<'_>) -> bool {
    let last = binding
        .status
        .and_then(|status| status.last_scheduled_time.as_ref());
    let triggered = binding.spec.reschedule_triggered_at.as_ref();
    triggered.is_some_and(|at| last.is_none_or(|last| at.0.as_second() > last.0.as_second()))
}

/// Returns `true` if the placement differs from the one that was applied, other than in groups that are
/// not in use.
pub(super) fn placement_changed(binding: BindingRef<'_>) -> bool {
    let applied = binding.annotation(names::APPLIED_PLACEMENT);
    let applied: Option<Value> = applied.and_then(|text| serde_json::from_str(text).ok());
    let (Some(mut applied), Some(mut placement)) = (applied, binding.spec.placement.clone()) else {
        return true;
    };
    let observed = |placement: &mut Value| {
        let groups = placement.get_mut("clusterAffinities")?.take();
        let name = binding.observed_group()?;
        let mut groups = groups.as_array()?.iter();
        groups
            .find(|group| group.get("affinityName").and_then(Value::as_str) == Some(name))
            .cloned()
    };
    if applied == placement {
        return false;
    }
    match (observed(&mut applied), observed(&mut placement)) {
        (Some(before), Some(now)) => before != now || applied != placement,
        _ => true,
    }
}

impl<'a> BindingRef<'a> {
    /// Returns the placement, and `None` if there is none or it cannot be read.
    pub(super) fn placement(self) -> Option<Placement> {
        Placement::deserialize(self.spec.placement.as_ref()?).ok()
    }

    pub(super) fn targets(self) -> impl Iterator<Item = &'a karmada_api::TargetCluster> {
        self.spec.clusters.iter().flatten()
    }

    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.metadata
            .annotations
            .as_ref()?
            .get(key)
            .map(String::as_str)
    }

    /// Returns the name of the group in use. The annotation is written with the clusters; the status,
    /// which is written after them, mirrors it, and is all that Karmada's scheduler leaves.
    pub(super) fn observed_group(self) -> Option<&'a str> {
        self.annotation(names::SCHEDULED_AFFINITY)
            .or_else(|| self.mirrored_group())
    }

    /// Returns the name of the group in use as the status has it.
    pub(super) fn mirrored_group(self) -> Option<&'a str> {
        let name = self.status?.scheduler_observed_affinity_name.as_deref();
        name.filter(|name| !name.is_empty())
    }

    pub(super) fn condition(self) -> Option<&'a karmada_api::Condition> {
        find(self.status?.conditions.iter().flatten(), SCHEDULED)
    }
}
