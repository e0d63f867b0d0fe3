//! The Works of a binding: those that its clusters need, those that wait there until they may go, and
//! those that nobody needs any more.

mod desired;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::work::APPLIED;
use karmada_api::{
    ClusterView, Placement, Suspension, TargetCluster, Work, cluster_of_execution_namespace,
    condition, execution_namespace, names,
};
use objects::{Key, Metadata, metadata};
use serde_json::Value;

use super::activation::Record;
use super::claim::Claim;
use super::manifest::{self, BindingMarks, Marks};
use super::overrides::{OverrideError, Overrides};
use super::{claim, interpret};
use crate::binding_ref::BindingRef;

pub use desired::{DesiredWork, WorkChange};

/// The facts that decide about the Works of a binding.
#[derive(Clone, Debug)]
pub struct WorkFacts<'a> {
    /// The binding.
    pub binding: BindingRef<'a>,
    /// Its template.
    pub template: &'a Value,
    /// The clusters by name.
    pub clusters: BTreeMap<&'a str, &'a ClusterView>,
    /// The override policies that may select the template.
    pub overrides: Overrides<'a>,
    /// The suspension of its policy, which the binding may not have yet: an edit must not overtake a pause.
    pub policy_suspension: Option<&'a Suspension>,
    /// The Works with the binding's ID, or with the names of its Works.
    pub works: Vec<&'a Work>,
    /// The suspensions of each binding that requires this one: its own and that of its policy.
    pub referrers: BTreeMap<Key, Vec<&'a Suspension>>,
}

/// The step for the Work of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// The cluster needs it.
    Wanted(WorkChange),
    /// The cluster needs it, once the copies are gone that leave other clusters first.
    Deferred,
    /// It stays as it is until an eviction is complete.
    Kept,
    /// Nobody needs it, but while dispatching is suspended no copy may go.
    Held,
    /// It is being deleted, and nobody needs it.
    Leaving,
    /// Nobody needs it: it is deleted.
    Orphaned {
        /// The name of the Work.
        key: Key,
        /// Its uid.
        uid: Option<String>,
    },
    /// The cluster is not known, or is leaving and has no Work.
    NoCluster,
    /// An override policy cannot be applied: the Work stays as it is.
    Refused(OverrideError),
}

/// Plans the Works of a binding, by cluster. `new_id` makes the ID of a Work that has none. A binding
/// without an ID of its own has no Works yet.
pub fn plan(
    facts: &WorkFacts<'_>,
    mut new_id: impl FnMut() -> String,
) -> BTreeMap<String, WorkStep> {
    let binding = facts.binding;
    let Some(id) = binding.id() else {
        return BTreeMap::new();
    };
    let existing: BTreeMap<&str, &Work> = facts
        .works
        .iter()
        .filter(|work| work.metadata.name.as_deref() == Some(&work_name(binding)))
        .filter_map(|work| Some((cluster_of(work)?, *work)))
        .collect();
    let clusters = wanted_clusters(binding);
    let completions = divided_completions(facts);
    let is_left_first = clusters_left(binding, true)
        .iter()
        .any(|cluster| existing.contains_key(cluster) && !clusters.contains_key(cluster));

    let mut steps = BTreeMap::new();
    let mut is_undelivered = false;
    for (&name, target) in &clusters {
        let current = existing.get(name).copied();
        let suspended = is_suspended(facts, name);
        let cluster = facts.clusters.get(name);
        let step = match cluster {
            // No Work can be made in the namespace of a cluster that is leaving.
            Some(cluster) if current.is_some() || cluster.metadata.deletion_timestamp.is_none() => {
                let replicas = target.map(|target| Replicas {
                    replicas: target.replicas.unwrap_or_default(),
                    completions: completions.get(name).copied(),
                });
                let work_id = current
                    .and_then(work_id)
                    .map_or_else(&mut new_id, str::to_owned);
                match desired(facts, cluster, replicas, (id, &work_id), suspended) {
                    Ok(desired) => match desired.change(current) {
                        change if is_left_first && adds(&change, suspended) => WorkStep::Deferred,
                        change => WorkStep::Wanted(change),
                    },
                    Err(error) => WorkStep::Refused(error),
                }
            }
            _ => WorkStep::NoCluster,
        };
        is_undelivered |= suspended && !stays_delivered(&step, current);
        steps.insert(name.to_owned(), step);
    }
    for cluster in kept_clusters(binding) {
        steps.entry(cluster.to_owned()).or_insert(WorkStep::Kept);
    }
    for work in &facts.works {
        let Some(cluster) = cluster_of(work) else {
            continue;
        };
        if label(work, binding.id_label()) == Some(id) && !steps.contains_key(cluster) {
            // Somebody paused to keep what runs, while its replacement has not arrived.
            let is_held = is_undelivered || own_suspension(facts, cluster);
            steps.insert(cluster.to_owned(), unneeded(work, is_held));
        }
    }
    steps
}

/// Returns `true` if the change brings something new into the member.
fn adds(change: &WorkChange, suspended: bool) -> bool {
    match change {
        WorkChange::Create(_) => true,
        // A pause is not put off.
        WorkChange::Patch { manifest, .. } => *manifest && !suspended,
        WorkChange::Unchanged | WorkChange::Deleting => false,
    }
}

fn unneeded(work: &Work, is_held: bool) -> WorkStep {
    if work.metadata.deletion_timestamp.is_some() {
        WorkStep::Leaving
    } else if is_held {
        WorkStep::Held
    } else {
        WorkStep::Orphaned {
            key: Key::of(work),
            uid: work.metadata.uid.clone(),
        }
    }
}

/// Returns the clusters that need the template, with the replicas of those that it was scheduled to.
pub(super) fn wanted_clusters(binding: BindingRef<'_>) -> BTreeMap<&str, Option<&TargetCluster>> {
    let required = binding.spec.required_by.iter().flatten();
    let required = required.flat_map(|snapshot| snapshot.clusters.iter().flatten());
    let scheduled = binding.spec.clusters.iter().flatten();
    required
        .map(|target| (target.name.as_str(), None))
        .chain(scheduled.map(|target| (target.name.as_str(), Some(target))))
        .collect()
}

/// Returns the clusters that the template is leaving with grace.
pub(super) fn kept_clusters(binding: BindingRef<'_>) -> BTreeSet<&str> {
    clusters_left(binding, false)
}

/// Returns the clusters that the template is leaving, either `directly`, before it comes to others, or not.
fn clusters_left(binding: BindingRef<'_>, directly: bool) -> BTreeSet<&str> {
    let tasks = binding.spec.graceful_eviction_tasks.iter().flatten();
    tasks
        .filter(|task| task.purges_directly() == directly)
        .map(|task| task.from_cluster.as_str())
        .collect()
}

/// Returns the ID of a binding, or that of the Works which refer to it: a writer that replaces the labels of
/// the binding takes its own, as Karmada's controller of `MultiClusterService`s does every other time.
pub fn id<'a>(binding: BindingRef<'a>, works: &'a [Work]) -> Option<&'a str> {
    let refers = |work: &&Work| {
        let annotations = work.metadata.annotations.as_ref();
        let annotation = |key| Some(annotations?.get(key)?.as_str());
        let mut reference = binding.reference().into_iter();
        reference.all(|(key, value)| annotation(key) == Some(value))
    };
    binding.id().or_else(|| {
        let mut referring = works.iter().filter(refers);
        referring.find_map(|work| label(work, binding.id_label()))
    })
}

/// Returns the name that the binding's Works have in every cluster.
pub fn work_name(binding: BindingRef<'_>) -> String {
    let resource = &binding.spec.resource;
    let namespace = resource.namespace.as_deref().unwrap_or_default();
    names::work(&resource.kind, namespace, &resource.name)
}

/// Returns the cluster whose Work it is.
pub(super) fn cluster_of(work: &Work) -> Option<&str> {
    cluster_of_execution_namespace(work.metadata.namespace.as_deref()?)
}

fn work_id(work: &Work) -> Option<&str> {
    label(work, names::WORK_ID)
}

fn label<'a>(work: &'a Work, key: &str) -> Option<&'a str> {
    work.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Returns `true` if the binding's own policy suspends dispatching to the cluster.
fn own_suspension(facts: &WorkFacts<'_>, cluster: &str) -> bool {
    let in_binding = facts.binding.spec.suspension.as_ref();
    let in_binding = in_binding.map(|suspension| &suspension.dispatching);
    let mut suspensions = in_binding.into_iter().chain(facts.policy_suspension);
    suspensions.any(|suspension| suspension.suspends(cluster))
}

/// Returns `true` if dispatching to the cluster is suspended: by the binding's own policy, or by that of
/// every binding on whose account alone the cluster needs the template.
fn is_suspended(facts: &WorkFacts<'_>, cluster: &str) -> bool {
    let spec = facts.binding.spec;
    if own_suspension(facts, cluster) {
        return true;
    }
    let has_cluster = |targets: &Option<Vec<TargetCluster>>| {
        let mut targets = targets.iter().flatten();
        targets.any(|target| target.name == cluster)
    };
    if has_cluster(&spec.clusters) {
        return false;
    }
    let snapshots = spec.required_by.iter().flatten();
    let mut requiring = snapshots
        .filter(|snapshot| has_cluster(&snapshot.clusters))
        .peekable();
    requiring.peek().is_some()
        && requiring.all(|snapshot| {
            let key = Key::new(
                snapshot.namespace.clone().unwrap_or_default(),
                snapshot.name.clone().unwrap_or_default(),
            );
            let mut suspensions = facts.referrers.get(&key).into_iter().flatten();
            suspensions.any(|suspension| suspension.suspends(cluster))
        })
}

/// Returns `true` if the member has the manifest of the Work: it was applied at its last change or later.
pub fn is_delivered(work: &Work) -> bool {
    let annotations = work.metadata.annotations.as_ref();
    let changed = annotations
        .and_then(|annotations| annotations.get(names::MANIFEST_GENERATION))
        .and_then(|generation| generation.parse::<i64>().ok())
        .or(work.metadata.generation);
    work.condition(APPLIED).is_some_and(|applied| {
        let observed = applied.observed_generation;
        // One that Karmada wrote has no generation: it may be about an earlier manifest.
        applied.status == condition::TRUE && observed.is_some() && observed >= changed
    })
}

fn stays_delivered(step: &WorkStep, current: Option<&Work>) -> bool {
    let changes = match step {
        WorkStep::Wanted(WorkChange::Unchanged | WorkChange::Deleting) => false,
        WorkStep::Wanted(WorkChange::Patch { manifest, .. }) => *manifest,
        _ => true,
    };
    !changes && current.is_some_and(is_delivered)
}

/// The replicas of a template in one cluster.
#[derive(Clone, Copy)]
struct Replicas {
    replicas: i32,
    completions: Option<i32>,
}

/// Returns the completions of a Job in each cluster, if its replicas are divided.
fn divided_completions<'a>(facts: &WorkFacts<'a>) -> BTreeMap<&'a str, i32> {
    let spec = facts.binding.spec;
    let placement = spec.placement.as_ref();
    let placement =
        placement.and_then(|placement| serde_json::from_value::<Placement>(placement.clone()).ok());
    let is_divided = placement
        .and_then(|placement| placement.replica_scheduling)
        .is_some_and(|scheduling| {
            scheduling.replica_scheduling_type.as_deref() != Some("Duplicated")
        });
    if is_divided && has_replicas(facts.binding) {
        interpret::completions(facts.template, spec.clusters.as_deref().unwrap_or_default())
    } else {
        BTreeMap::new()
    }
}

/// Returns `true` if the clusters' replicas count: a template without replicas has none to divide.
fn has_replicas(binding: BindingRef<'_>) -> bool {
    binding.spec.placement.is_some() && binding.spec.replicas.is_some_and(|replicas| replicas > 0)
}

fn desired(
    facts: &WorkFacts<'_>,
    cluster: &ClusterView,
    replicas: Option<Replicas>,
    (id, work_id): (&str, &str),
    suspended: bool,
) -> Result<DesiredWork, OverrideError> {
    let binding = facts.binding;
    let cluster_name = cluster.metadata.name.as_deref().unwrap_or_default();
    let key = Key::new(execution_namespace(cluster_name), work_name(binding));
    let mut manifest = facts.template.clone();
    claim::share(binding.metadata, &mut manifest);
    manifest::strip(&mut manifest);
    for (key, value) in preserved_labels(binding, cluster_name) {
        metadata::edit(&mut manifest, "labels", |labels| {
            labels.insert(key.clone(), value.as_str().into());
        });
    }
    if let (Some(wanted), true) = (replicas, has_replicas(binding)) {
        interpret::revise(&mut manifest, wanted.replicas);
        if let Some(completions) = wanted.completions {
            interpret::revise_completions(&mut manifest, completions);
        }
    }
    let applied = facts.overrides.apply(&mut manifest, cluster)?;
    let in_binding = binding.spec.conflict_resolution.as_deref();
    let conflict_resolution = manifest::conflict_resolution(&manifest, in_binding);
    let marks = Marks {
        template_uid: facts.template.uid(),
        template_generation: facts.template.generation(),
        work: &key,
        work_id,
        binding: Some(BindingMarks {
            id_label: binding.id_label(),
            id,
            reference: binding.reference(),
            conflict_resolution,
        }),
    };
    manifest::mark(&mut manifest, &marks);

    let mut annotations: BTreeMap<String, String> = binding
        .reference()
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    annotations.insert(
        names::CONFLICT_RESOLUTION.to_owned(),
        conflict_resolution.to_owned(),
    );
    let labels = [(binding.id_label(), id), (names::WORK_ID, work_id)];
    Ok(DesiredWork {
        key,
        labels: labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        annotations,
        applied,
        owner: None,
        suspended: Some(suspended),
        preserved: Some(binding.spec.preserve_resources_on_deletion == Some(true)),
        manifest,
        follows_claim: follows_claim(binding),
    })
}

/// Returns `true` unless the binding follows another policy until the next edit of its template.
fn follows_claim(binding: BindingRef<'_>) -> bool {
    let claim = Claim::of(binding.metadata);
    match (Record::of(binding.metadata), claim) {
        (Some(record), Some(claim)) => record.policy == claim.policy_text(),
        _ => true,
    }
}

/// Returns the labels with which Karmada's application failover hands the state of a workload to its one new
/// cluster (Karmada, `pkg/controllers/binding/common.go`, `injectReservedLabelState`).
fn preserved_labels<'a>(
    binding: BindingRef<'a>,
    cluster: &str,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    let tasks = binding.spec.graceful_eviction_tasks.as_deref();
    let last = tasks.and_then(|tasks| tasks.last());
    let left = last.filter(|task| {
        let mut before = task.clusters_before_failover.iter().flatten();
        task.purges_directly()
            && !before.any(|before| before == cluster)
            && wanted_clusters(binding).len() == 1
    });
    left.into_iter()
        .flat_map(|task| task.preserved_label_state.iter().flatten())
}
