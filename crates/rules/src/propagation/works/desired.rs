//! A Work as it should be, from its template.

use std::collections::BTreeMap;

use karmada_api::{ClusterView, execution_namespace, names};
use objects::{Key, Metadata, metadata};

use super::change::DesiredWork;
use super::facts::{WorkFacts, wanted_clusters, work_name};
use crate::binding_ref::BindingRef;
use crate::propagation::activation::Record;
use crate::propagation::claim::{self, Claim};
use crate::propagation::interpret;
use crate::propagation::manifest::{self, BindingMarks, Marks};
use crate::propagation::overrides::OverrideError;

/// A Work to be made: for which cluster, and with which IDs.
pub(super) struct Order<'a> {
    pub(super) cluster: &'a ClusterView,
    /// The replicas there; `None` if only bindings that require the template need it there.
    pub(super) replicas: Option<i32>,
    /// The completions of a Job whose replicas are divided.
    pub(super) completions: Option<i32>,
    pub(super) binding_id: &'a str,
    pub(super) work_id: &'a str,
    pub(super) suspended: bool,
}

/// Returns the Work as it should be.
///
/// # Errors
/// Fails if an override policy cannot be applied.
pub(super) fn desired(
    facts: &WorkFacts<'_>,
    order: &Order<'_>,
) -> Result<DesiredWork, OverrideError> {
    let binding = facts.binding;
    let cluster = order.cluster.metadata.name();
    let key = Key::new(execution_namespace(cluster), work_name(binding));
    let mut manifest = facts.template.clone();
    claim::share(binding.metadata, &mut manifest);
    manifest::strip(&mut manifest);
    for (key, value) in preserved_labels(binding, cluster) {
        metadata::edit(&mut manifest, "labels", |labels| {
            labels.insert(key.clone(), value.as_str().into());
        });
    }
    if let Some(replicas) = order.replicas
        && has_replicas(binding)
    {
        interpret::revise(&mut manifest, replicas);
        if let Some(completions) = order.completions {
            interpret::revise_completions(&mut manifest, completions);
        }
    }
    let applied = facts.overrides.apply(&mut manifest, order.cluster)?;
    let in_binding = binding.spec.conflict_resolution.as_deref();
    let conflict_resolution = manifest::conflict_resolution(&manifest, in_binding);
    let marks = Marks {
        template_uid: facts.template.uid(),
        template_generation: facts.template.generation(),
        work: &key,
        work_id: order.work_id,
        binding: Some(BindingMarks {
            id_label: binding.id_label(),
            id: order.binding_id,
            reference: binding.reference(),
            conflict_resolution,
        }),
    };
    manifest::mark(&mut manifest, &marks);

    let resolution = (names::CONFLICT_RESOLUTION, conflict_resolution);
    let annotations = binding.reference().into_iter().chain([resolution]);
    let labels = [
        (binding.id_label(), order.binding_id),
        (names::WORK_ID, order.work_id),
    ];
    Ok(DesiredWork {
        key,
        labels: owned(labels),
        annotations: owned(annotations),
        applied,
        owner: None,
        suspended: Some(order.suspended),
        preserved: Some(binding.spec.preserve_resources_on_deletion == Some(true)),
        manifest,
        follows_claim: follows_claim(binding),
    })
}

fn owned<'a>(
    entries: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> BTreeMap<String, String> {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the completions of a Job in each cluster, if its replicas are divided.
pub(super) fn divided_completions<'a>(facts: &WorkFacts<'a>) -> BTreeMap<&'a str, i32> {
    let spec = facts.binding.spec;
    let is_divided = facts
        .binding
        .placement()
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
