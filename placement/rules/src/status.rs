//! The status of a placement: its selection, and where that stands in each cluster and in all.
//!
//! Each cluster goes through the same steps, and so does the whole; steps that are not reached yet are not spoken of.
//!
//! - `step`: the steps, with the words for each.
//! - `cluster`: one cluster.
//! - `external`: the differences where runs update them.
//! - `complete`: the end of a rollout.
//! - `whole`: all of them; `stuck`: those that make no progress.
//! - `shorten`: keeps all that small enough to be stored.
//! - `copy`: the status in the namespace that is placed.

mod cluster;
mod complete;
mod copy;
mod external;
mod facts;
mod shorten;
mod step;
mod stuck;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::BTreeMap;

use fleet_api::binding::{BindingState, ClusterDecision};
use fleet_api::conditions::{SCHEDULED, of_placement};
use fleet_api::names::{NUMBER_OF_CLUSTERS, RESOURCE_INDEX};
use fleet_api::placement::{ClusterPlacementStatus, PlacementStatus};
use fleet_api::policy::PlacementType;
use fleet_api::{Binding, PolicySnapshot};
use jiff::Timestamp;
use objects::condition::{Condition, FALSE, find, transition, upsert};
use objects::{Metadata, Scope};

pub use complete::{has_arrived, is_complete};
pub use copy::{copy, with_copied};
pub use external::given_snapshot;
pub use facts::StatusFacts;

use super::condition::condition;
use super::select::{Selection, identifier, show};
use super::snapshot::has_same_policy;
use super::strategy::is_external;
use cluster::{ClusterProgress, progress};
use facts::is_current;
use shorten::shorten;
use stuck::Stuck;
use whole::conditions;

/// The text before a selector that selects nothing.
const IDLE: &str = "; nothing is selected by ";

/// Returns the words of a placement of a scope about selectors that select nothing; empty if each selects something.
pub fn said_of_idle_selectors(scope: Scope, status: &PlacementStatus) -> &str {
    let scheduled = find(&status.conditions, &of_placement(scope, SCHEDULED));
    let message = scheduled.map_or("", |scheduled| &scheduled.message);
    let said = message.find(IDLE).and_then(|at| message.get(at..));
    said.unwrap_or_default().trim_start_matches("; ")
}

/// Returns the status of a placement, unless it is up to date, and the time at which the same facts mean something else.
pub fn plan(facts: &StatusFacts<'_>) -> (Option<PlacementStatus>, Option<Timestamp>) {
    let bindings = current(facts).into_values();
    let stuck = Stuck::among(bindings, facts.progress_deadline, facts.now);
    (status(facts, &stuck), stuck.next)
}

fn status(facts: &StatusFacts<'_>, stuck: &Stuck) -> Option<PlacementStatus> {
    let before = facts.placement.status.clone().unwrap_or_default();
    let mut after = match facts.selection {
        Ok(selection) => of_selection(facts, selection, stuck, &before),
        Err(refusal) => {
            let mut after = before.clone();
            let refused = scheduled(facts, (FALSE, refusal.reason), &refusal.message);
            upsert(&mut after.conditions, refused);
            after
        }
    };
    if facts.selection.is_err() {
        let kind = of_placement(facts.placement.scope(), SCHEDULED);
        let refused = after.conditions.iter_mut().filter(|one| one.type_ == kind);
        refused.for_each(|one| date(one, &before.conditions, facts));
        return (after != before).then_some(after);
    }
    for condition in &mut after.conditions {
        date(condition, &before.conditions, facts);
    }
    let old: BTreeMap<_, _> = before
        .placement_statuses
        .iter()
        .map(|one| (&*one.cluster_name, &*one.conditions))
        .collect();
    for cluster in &mut after.placement_statuses {
        let old = old.get(&*cluster.cluster_name).copied().unwrap_or_default();
        for condition in &mut cluster.conditions {
            date(condition, old, facts);
        }
    }
    shorten(&mut after);
    (after != before).then_some(after)
}

/// Completes a condition: it is of the placement's generation, and as old as its status.
fn date(condition: &mut Condition, before: &[Condition], facts: &StatusFacts<'_>) {
    let old = find(before, &condition.type_);
    condition.observed_generation = facts.placement.metadata.generation;
    condition.last_transition_time = Some(transition(old, &condition.status, facts.now));
}

/// Returns where each selected cluster stands, with the index of the snapshot that it is to have: the latest, or that of the
/// run.
fn clusters(
    facts: &StatusFacts<'_>,
    selected: &[&ClusterDecision],
    latest: &str,
) -> Vec<(ClusterProgress, String)> {
    let bindings = current(facts);
    let clusters = selected.iter().map(|decision| {
        let binding = bindings.get(&*decision.cluster_name).copied();
        if is_external(facts.placement) {
            let given = binding.map(|binding| &*binding.spec.resource_snapshot_name);
            let index = external::index(facts.placement, binding);
            let progress = progress(facts.placement, decision, binding, given);
            return (progress, index.to_owned());
        }
        let snapshot = facts.snapshot.map(Metadata::name);
        let progress = progress(facts.placement, decision, binding, snapshot);
        (progress, latest.to_owned())
    });
    clusters.collect()
}

/// Returns the status of a placement that is not scheduled yet: the words about its clusters stay.
fn pending(
    facts: &StatusFacts<'_>,
    before: &PlacementStatus,
    mut after: PlacementStatus,
) -> PlacementStatus {
    if is_external(facts.placement) {
        after
            .selected_resources
            .clone_from(&before.selected_resources);
        let index = &before.observed_resource_index;
        after.observed_resource_index.clone_from(index);
    }
    let said = ("Unknown", "SchedulePending");
    let message = if names_nobody(facts) {
        "No cluster is named in spec.policy.clusterNames"
    } else {
        after
            .placement_statuses
            .clone_from(&before.placement_statuses);
        "Scheduling has not completed"
    };
    after.conditions = vec![scheduled(facts, said, message)];
    after
}

/// Returns `true` if the policy of a placement is to name its clusters, and names none.
fn names_nobody(facts: &StatusFacts<'_>) -> bool {
    let policy = facts.placement.spec.policy.as_ref();
    policy.is_some_and(|policy| {
        policy.placement_type == PlacementType::PickFixed && policy.cluster_names.is_empty()
    })
}

fn of_selection(
    facts: &StatusFacts<'_>,
    selection: &Selection,
    stuck: &Stuck,
    before: &PlacementStatus,
) -> PlacementStatus {
    let index = facts
        .snapshot
        .and_then(|snapshot| snapshot.label(RESOURCE_INDEX));
    let mut after = PlacementStatus {
        selected_resources: selection.objects.iter().map(identifier).collect(),
        observed_resource_index: index.unwrap_or_default().to_owned(),
        ..PlacementStatus::default()
    };
    let is_external = is_external(facts.placement);
    let Some((policy, mut scheduled)) = scheduling(facts) else {
        return pending(facts, before, after);
    };
    let message = &mut scheduled.message;
    for object in &selection.too_large {
        let name = show(object);
        message.extend(["; ", &name, " is too large to be placed, and is left out"]);
    }
    for selector in &selection.idle {
        message.extend([IDLE, selector]);
    }
    let decisions = policy
        .status
        .iter()
        .flat_map(|status| &status.target_clusters);
    let selected: Vec<_> = decisions.clone().filter(|one| one.selected).collect();
    let refused: Vec<_> = decisions.filter(|one| !one.selected).collect();
    for part in &selection.unanswered {
        let left_out = [
            "; the hub does not answer about ",
            part,
            ": nothing of it is selected",
        ];
        message.extend(left_out);
    }
    for cluster in leaving(facts, &selected) {
        let left = [
            "; ",
            cluster,
            " is no longer picked: what it has is being removed",
        ];
        message.extend(left);
    }
    for (cluster, held) in facts.held {
        message.extend(["; in ", cluster, ": ", held]);
    }
    let clusters = clusters(facts, &selected, &after.observed_resource_index);
    after.conditions = vec![scheduled];
    let scope = facts.placement.scope();
    let unknown = is_external.then(|| external::observe(facts, &clusters, &mut after));
    if let Some(unknown) = unknown.flatten() {
        after.conditions.push(unknown);
    } else {
        let clusters: Vec<_> = clusters.iter().map(|(progress, _)| progress).collect();
        after.conditions.extend(conditions(scope, &clusters));
    }
    stuck.mark(scope, &mut after.conditions);
    let listed = clusters.into_iter();
    let listed = listed.map(|(progress, index)| progress.into_status(&index));
    after.placement_statuses = listed.collect();
    let missing = wanted(policy).saturating_sub(selected.len());
    after
        .placement_statuses
        .extend(refused.iter().take(missing).map(|one| not_found(one)));
    keep_order(&mut after.placement_statuses, &before.placement_statuses);
    after
}

/// Returns the clusters that are no longer picked, as long as they have something. Where runs update the clusters, one that
/// is left stays as it is until a run comes.
fn leaving<'a>(
    facts: &StatusFacts<'a>,
    selected: &[&ClusterDecision],
) -> impl Iterator<Item = &'a str> {
    let is_external = is_external(facts.placement);
    let left = facts.bindings.iter().filter(move |binding| {
        let is_unscheduled = binding.spec.state == BindingState::Unscheduled && !is_external;
        is_unscheduled || binding.metadata.is_deleting()
    });
    let left = left.map(|binding| &*binding.spec.target_cluster);
    left.filter(move |cluster| selected.iter().all(|one| one.cluster_name != **cluster))
}

/// Returns the latest policy and the scheduler's condition about it, if that has seen it as the placement has it.
fn scheduling<'a>(facts: &StatusFacts<'a>) -> Option<(&'a PolicySnapshot, Condition)> {
    let policy = facts.policy.filter(|_| !names_nobody(facts))?;
    let status = policy.status.as_ref()?;
    let is_current = status.observed_placement_generation == facts.placement.metadata.generation
        || has_same_policy(policy, facts.placement);
    let found = find(&status.conditions, SCHEDULED).filter(|_| is_current)?;
    Some((
        policy,
        scheduled(facts, (&found.status, &found.reason), &found.message),
    ))
}

fn scheduled(facts: &StatusFacts<'_>, (status, reason): (&str, &str), message: &str) -> Condition {
    let kind = of_placement(facts.placement.scope(), SCHEDULED);
    condition((&kind, status), reason, message)
}

/// Returns the bindings of clusters that have the placement, or are to have it.
fn current<'a>(facts: &StatusFacts<'a>) -> BTreeMap<&'a str, &'a Binding> {
    let bindings = facts.bindings.iter();
    let bindings = bindings.filter(|binding| is_current(binding));
    bindings
        .map(|binding| (&*binding.spec.target_cluster, *binding))
        .collect()
}

/// Returns the number of clusters that a policy asks for; 0 if it asks for no number.
fn wanted(policy: &PolicySnapshot) -> usize {
    let Some(spec) = &policy.spec.policy else {
        return 0;
    };
    match spec.placement_type {
        PlacementType::PickAll => 0,
        PlacementType::PickFixed => spec.cluster_names.len(),
        PlacementType::PickN => {
            let number = policy.metadata.annotation(NUMBER_OF_CLUSTERS);
            number
                .and_then(|number| number.parse().ok())
                .unwrap_or_default()
        }
    }
}

/// Returns the entry for one of the clusters that could not be found.
fn not_found(decision: &ClusterDecision) -> ClusterPlacementStatus {
    ClusterPlacementStatus {
        conditions: vec![condition(
            (SCHEDULED, FALSE),
            "ScheduleFailed",
            &decision.reason,
        )],
        ..ClusterPlacementStatus::default()
    }
}

/// Sorts clusters as they stood: nothing is written for an order alone.
fn keep_order(after: &mut [ClusterPlacementStatus], before: &[ClusterPlacementStatus]) {
    let places = before.iter().zip(0_usize..);
    let places: BTreeMap<_, _> = places
        .map(|(one, place)| (&*one.cluster_name, place))
        .collect();
    let mut named = after.iter().filter(|one| !one.cluster_name.is_empty());
    if named.all(|one| places.contains_key(&*one.cluster_name)) {
        after.sort_by_key(|one| (one.cluster_name.is_empty(), places.get(&*one.cluster_name)));
    }
}
