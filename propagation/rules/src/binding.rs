//! The binding of a template: written from the template and its policy, scheduled by the scheduler.

mod members;
pub(super) mod patch;
mod scheduling;
pub(super) mod write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{PropagationSpec, ResourceBindingSpec, Suspension, Work, names};
use objects::patch::JsonPatch;
use objects::write::Write;
use objects::{Key, api_version};
use serde_json::{Map, Value, json};

use self::members::members;
pub use self::scheduling::{Scheduling, groups};
pub use self::write::{
    Place, changes_spec, new_key, only_records, written_components, written_replicas,
};
use super::activation::Record;
use super::claim::{Claim, marks};
use super::works;
use crate::binding_ref::BindingRef;

/// The sources of a binding.
#[derive(Clone, Copy, Debug)]
pub struct BindingSource<'a> {
    /// The template.
    pub template: &'a Value,
    /// The spec of the policy that has it.
    pub policy: &'a PropagationSpec,
    /// The claim of that policy.
    pub claim: &'a Claim,
    /// The facts about the template that the scheduler needs.
    pub scheduling: &'a Scheduling,
    /// The record of activation.
    pub record: &'a Record,
    /// True if the binding follows the policy; otherwise only claim, record and pause are written.
    pub is_followed: bool,
}

/// Plans the write of the binding of a template; `None` if it is as it should be, or must go first. `new_id` is the ID of
/// one that is made.
///
/// The clusters, `requiredBy` and the evictions are never written: they belong to others.
pub fn plan(
    source: BindingSource<'_>,
    place: Place<'_>,
    new_id: impl FnOnce() -> String,
) -> Option<Write> {
    match place {
        Place::New(key) => {
            let body = body(&key, source, &new_id());
            Some(write::created(key, body))
        }
        Place::Existing(existing) => update(source, existing),
    }
}

/// Plans the write by which a binding names its template in the version in which that is read, and stays as it is otherwise.
pub fn follow_version(template: &Value, existing: BindingRef<'_>) -> Option<Write> {
    let metadata = existing.metadata;
    if patch::is_former(template, metadata) {
        return None;
    }
    let mut patch = JsonPatch::default();
    patch::owner_version(&mut patch, template, metadata);
    if existing.spec.resource.api_version != api_version(template) {
        patch.add(["spec", "resource"], patch::reference(template));
    }
    write::patched(existing, patch)
}

/// Plans the write of the ID and the finalizer without which a binding has no Works. `works` are those that
/// refer to it, and `new_id` is the ID if they have none, either.
pub fn identify(
    binding: BindingRef<'_>,
    works: &[Work],
    new_id: impl FnOnce() -> String,
) -> Option<Write> {
    let metadata = binding.metadata;
    let mut patch = JsonPatch::default();
    if binding.id().is_none() {
        let id = works::id(binding, works).map_or_else(new_id, str::to_owned);
        let label = (binding.id_label(), Some(id.as_str()));
        patch.entries("labels", metadata.labels.as_ref(), [label]);
    }
    patch.add_finalizer(metadata, binding.finalizer());
    write::patched(binding, patch)
}

/// Returns `true` if a binding's spec is as template and policy want it, apart from the pause.
pub fn is_current(
    object: &Value,
    policy: &PropagationSpec,
    scheduling: &Scheduling,
    spec: &ResourceBindingSpec,
) -> bool {
    let mut members = members(object, policy, scheduling, spec).into_iter();
    members.all(|member| member.is_current)
}

fn body(key: &Key, source: BindingSource<'_>, id: &str) -> Value {
    let object = source.template;
    let (mut labels, mut annotations) = (Map::new(), Map::new());
    for mark in marks(Some(source.claim)) {
        if let Some(value) = mark.value {
            let map = if mark.is_label() {
                &mut labels
            } else {
                &mut annotations
            };
            map.insert(mark.key.to_owned(), json!(value));
        }
    }
    annotations.insert(names::ACTIVATED.to_owned(), json!(source.record.to_text()));
    let none = ResourceBindingSpec::default();
    let members = members(object, source.policy, source.scheduling, &none);
    let spec: Map<String, Value> = members
        .into_iter()
        .filter_map(|member| Some((member.name.to_owned(), member.wanted?)))
        .chain(suspension(source.policy).map(|pause| ("suspension".to_owned(), pause)))
        .collect();
    patch::body(key, object, id, labels, annotations, spec)
}

fn update(source: BindingSource<'_>, existing: BindingRef<'_>) -> Option<Write> {
    let metadata = existing.metadata;
    if patch::is_former(source.template, metadata) {
        return None;
    }
    let mut patch = JsonPatch::default();
    if source.is_followed {
        update_spec(&mut patch, source, existing.spec);
    } else {
        pause(&mut patch, source.policy, existing.spec);
    }
    update_metadata(&mut patch, source, metadata);
    write::patched(existing, patch)
}

fn update_metadata(patch: &mut JsonPatch, source: BindingSource<'_>, metadata: &ObjectMeta) {
    let claim = marks(Some(source.claim));
    let labels = claim.iter().filter(|mark| mark.is_label());
    let annotations = claim.iter().filter(|mark| !mark.is_label());
    let labels = labels.map(|mark| (mark.key, mark.value));
    patch.entries("labels", metadata.labels.as_ref(), labels);
    patch::ownership(patch, source.template, metadata);
    patch::owner_version(patch, source.template, metadata);
    let is_written = !patch.is_empty() || claim.iter().any(|mark| !mark.is_on(metadata));
    let record = needs_record(source, metadata, is_written).then(|| source.record.to_text());
    let record = record.as_deref().map(|text| (names::ACTIVATED, Some(text)));
    let annotations = annotations.map(|mark| (mark.key, mark.value)).chain(record);
    patch.entries("annotations", metadata.annotations.as_ref(), annotations);
}

/// Returns `true` if the binding's record must be written. The record of an immediate policy is not
/// read before the policy becomes Lazy: then it must tell whether the template was edited since.
fn needs_record(source: BindingSource<'_>, metadata: &ObjectMeta, is_written: bool) -> bool {
    let wanted = source.record;
    Record::of(metadata).is_none_or(|stored| {
        stored != *wanted
            && (source.policy.is_lazy() || stored.template != wanted.template || is_written)
    })
}

fn update_spec(patch: &mut JsonPatch, source: BindingSource<'_>, spec: &ResourceBindingSpec) {
    for member in members(source.template, source.policy, source.scheduling, spec) {
        if member.is_current {
            continue;
        }
        match member.wanted {
            Some(wanted) => patch.add(["spec", member.name], wanted),
            None => patch.remove(["spec", member.name]),
        }
    }
    pause(patch, source.policy, spec);
    let reference = patch::reference(source.template);
    let current = serde_json::to_value(&spec.resource).unwrap_or_default();
    // Karmada's bindings follow every version of the template, status writes included. Ours do not:
    // a new version in the spec is a new generation, which is scheduled again.
    let mut identity = ["apiVersion", "kind", "namespace", "name", "uid"].into_iter();
    if !patch.is_empty() || !identity.all(|field| current.get(field) == reference.get(field)) {
        patch.add(["spec", "resource"], reference);
    }
}

/// Sets the parts of the pause that belong to the policy. `scheduling`, which third parties set, stays.
fn pause(patch: &mut JsonPatch, policy: &PropagationSpec, spec: &ResourceBindingSpec) {
    let wanted = policy.suspension.clone().unwrap_or_default();
    let Some(current) = &spec.suspension else {
        if let Some(pause) = suspension(policy) {
            patch.add(["spec", "suspension"], pause);
        }
        return;
    };
    let current = &current.dispatching;
    let parts = [
        (
            "dispatching",
            wanted.dispatching.map(|on| json!(on)),
            current.dispatching.map(|on| json!(on)),
        ),
        (
            "dispatchingOnClusters",
            wanted.dispatching_on_clusters.map(|on| json!(on)),
            current.dispatching_on_clusters.as_ref().map(|on| json!(on)),
        ),
    ];
    for (name, wanted, current) in parts {
        let member = ["spec", "suspension", name];
        match wanted {
            _ if wanted == current => {}
            Some(wanted) => patch.add(member, wanted),
            None => patch.remove(member),
        }
    }
}

fn suspension(policy: &PropagationSpec) -> Option<Value> {
    let pause = policy.suspension.as_ref();
    let pause = pause.filter(|pause| **pause != Suspension::default());
    pause.map(|pause| json!(pause))
}

#[cfg(test)]
mod tests;
