//! A Work as it should be, from its template.

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::{ClusterView, Work, execution_namespace, names};
use objects::replacement::leave_node_ports;
use objects::{Key, Metadata, metadata};
use serde_json::Value;

use super::facts::{WorkFacts, allocated_node_ports, wanted_clusters, work_name};
use super::write::{DesiredWork, Unwritten};
use crate::activation::Record;
use crate::binding_ref::BindingRef;
use crate::claim::{self, Claim};
use crate::interpret;
use crate::manifest::{self, BindingMarks, Marks};

/// A Work to be made: for which cluster, and with which IDs.
pub(super) struct Order<'a> {
    pub(super) cluster: &'a ClusterView,
    /// The Work as it is.
    pub(super) current: Option<&'a Work>,
    /// The replicas there; `None` if only bindings that require the template need it there.
    pub(super) replicas: Option<i32>,
    /// The completions of a Job whose replicas are divided.
    pub(super) completions: Option<i32>,
    pub(super) binding_id: &'a str,
    pub(super) work_id: String,
    pub(super) suspended: bool,
}

/// Returns the Work as it should be.
///
/// # Errors
/// Fails with the reason if an override policy cannot be applied, or the script that revises the manifest has failed.
pub(super) fn desired(facts: &WorkFacts<'_>, order: &Order<'_>) -> Result<DesiredWork, Unwritten> {
    let binding = facts.binding;
    let cluster = order.cluster.metadata.name();
    let key = Key::new(execution_namespace(cluster), work_name(binding));
    let mut manifest = manifest_for(facts, order)?;
    let applied = facts.overrides.apply(&mut manifest, order.cluster);
    let applied = applied.map_err(Unwritten::Refused)?;
    leave_unused_node_ports(facts.template, &mut manifest);
    // Only now: an override may name a field that is removed, or add it.
    manifest::strip(&mut manifest);
    let in_binding = binding.spec.conflict_resolution.as_deref();
    let conflict_resolution = manifest::conflict_resolution(&manifest, in_binding);
    let marks = Marks {
        template_uid: facts.template.uid(),
        template_generation: facts.template.generation(),
        work: &key,
        work_id: &order.work_id,
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
    let ports = facts.template.annotation(names::ALLOCATED_NODE_PORTS);
    let annotations = annotations.chain(ports.map(|ports| (names::ALLOCATED_NODE_PORTS, ports)));
    let labels = [
        (binding.id_label(), order.binding_id),
        (names::WORK_ID, order.work_id.as_str()),
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

/// Returns the template as it goes to a cluster, before it is overridden.
fn manifest_for(facts: &WorkFacts<'_>, order: &Order<'_>) -> Result<Value, Unwritten> {
    let binding = facts.binding;
    let cluster = order.cluster.metadata.name();
    let replicas = order.replicas.filter(|_| has_replicas(binding));
    let revised = replicas.and_then(|replicas| facts.revised.get(&replicas));
    let mut manifest = match revised {
        Some(Ok(revised)) => {
            // A time that the script puts in stays as it was first.
            let current = order.current;
            let current = current.and_then(|work| work.spec.workload.manifests.first());
            revised.with_times_of(current.unwrap_or(&Value::Null))
        }
        Some(Err(error)) => return Err(Unwritten::Unrevised(error.clone())),
        None => facts.template.clone(),
    };
    claim::share(binding.metadata, &mut manifest);
    for (key, value) in preserved_labels(binding, cluster) {
        metadata::edit(&mut manifest, "labels", |labels| {
            labels.insert(key.clone(), value.as_str().into());
        });
    }
    if let Some(replicas) = replicas.filter(|_| revised.is_none()) {
        interpret::revise(&mut manifest, replicas);
        if let Some(completions) = order.completions {
            interpret::revise_completions(&mut manifest, completions);
        }
    }
    Ok(manifest)
}

/// Leaves the node ports open that nobody has asked for if an override has made the Service one of a type that has none: with
/// them it would be refused.
fn leave_unused_node_ports(template: &Value, manifest: &mut Value) {
    let type_ = manifest.pointer("/spec/type").and_then(Value::as_str);
    if type_.is_some_and(|type_| ["NodePort", "LoadBalancer"].contains(&type_)) {
        return;
    }
    leave_node_ports(manifest, &allocated_node_ports(template), None);
}

fn owned<'a>(
    entries: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> BTreeMap<String, String> {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the completions of a Job in each cluster, if its replicas are divided; `existing` are its Works.
pub(super) fn divided_completions<'a>(
    facts: &WorkFacts<'a>,
    existing: &BTreeMap<&'a str, &'a Work>,
) -> BTreeMap<&'a str, i32> {
    let spec = facts.binding.spec;
    let is_divided = facts
        .binding
        .placement()
        .and_then(|placement| placement.replica_scheduling)
        .is_some_and(|scheduling| {
            scheduling.replica_scheduling_type.as_deref() != Some("Duplicated")
        });
    if is_divided && has_replicas(facts.binding) {
        let targets = spec.clusters.as_deref().unwrap_or_default();
        let kept = targets.iter().filter_map(|target| {
            let name = target.name.as_str();
            let manifest = existing.get(name)?.spec.workload.manifests.first()?;
            let is_same = manifest.annotation(names::TEMPLATE_UID) == Some(facts.template.uid());
            let manifest = Some(manifest).filter(|_| is_same)?;
            let completions = manifest.pointer("/spec/completions")?.as_i64()?;
            Some((name, i32::try_from(completions).ok()?))
        });
        interpret::completions(facts.template, targets, kept.collect())
    } else {
        BTreeMap::new()
    }
}

/// Returns the numbers of replicas with which clusters get the template.
pub fn revisions(binding: BindingRef<'_>) -> BTreeSet<i32> {
    let targets = binding.targets().filter(|_| has_replicas(binding));
    targets
        .map(|target| target.replicas.unwrap_or_default())
        .collect()
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
