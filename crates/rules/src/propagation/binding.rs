//! The binding of a template: written from the template and its policy, scheduled by the scheduler.

mod members;
pub(super) mod patch;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{PropagationSpec, ResourceBindingSpec, Suspension, Work, names};
use objects::{Key, Metadata, kind};
use serde_json::{Map, Value, json};

use self::members::members;
use self::patch::Operations;
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
    /// The record of activation.
    pub record: &'a Record,
    /// True if the binding follows the policy; otherwise only claim, record and pause are written.
    pub is_followed: bool,
}

/// The write of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingPlan {
    /// It is up to date.
    Unchanged,
    /// It does not exist: this is its body.
    Create(Value),
    /// A JSON patch (RFC 6902), which fails if the binding has changed since it was read.
    Patch(Value),
    /// The binding of a former template, or one that is being deleted, must go first.
    Waits,
}

impl BindingPlan {
    /// Returns `true` if the spec of the binding is written, and not only its metadata.
    pub fn changes_spec(&self) -> bool {
        let is_in_spec = |operation: &Value| {
            let path = operation.get("path").and_then(Value::as_str);
            path.is_some_and(|path| path.starts_with("/spec"))
        };
        match self {
            Self::Create(_) => true,
            Self::Patch(operations) => operations.as_array().into_iter().flatten().any(is_in_spec),
            Self::Unchanged | Self::Waits => false,
        }
    }

    /// Returns `true` if nothing but the record of activation is written, which Karmada's bindings lack.
    pub fn only_records(&self) -> bool {
        let path = names::ACTIVATED.replace('/', "~1");
        let is_record = |operation: &Value| {
            let of = operation.get("path").and_then(Value::as_str);
            of.is_some_and(|of| of.ends_with(&path) || of == "/metadata/resourceVersion")
        };
        match self {
            Self::Patch(operations) => operations.as_array().into_iter().flatten().all(is_record),
            Self::Create(_) | Self::Unchanged | Self::Waits => false,
        }
    }

    /// Returns the replicas that the template has and its binding had not.
    pub fn replicas(&self) -> Option<i64> {
        let replicas = match self {
            Self::Unchanged | Self::Waits => None,
            Self::Create(body) => body.pointer("/spec/replicas"),
            Self::Patch(operations) => operations.as_array().and_then(|operations| {
                let mut operations = operations.iter();
                let set = operations.find(|set| set["path"] == "/spec/replicas");
                set?.get("value")
            }),
        };
        replicas?.as_i64()
    }
}

/// Returns the key of the template's binding. One without a namespace is a `ClusterResourceBinding`.
pub fn key(object: &Value) -> Key {
    let name = names::binding(kind(object), object.name());
    Key::new(object.namespace(), name)
}

/// Plans the write of the binding of a template. `new_id` is the ID of one that is made.
///
/// The clusters, what requires the binding and its evictions are never written: they belong to others.
pub fn plan(
    source: BindingSource<'_>,
    existing: Option<BindingRef<'_>>,
    new_id: impl FnOnce() -> String,
) -> BindingPlan {
    match existing {
        None => BindingPlan::Create(body(source, &new_id())),
        Some(existing) => update(source, existing),
    }
}

/// Plans the write of the ID and the finalizer without which a binding has no Works. `works` are those that
/// refer to it, and `new_id` is the ID if they have none, either.
pub fn identify(
    binding: BindingRef<'_>,
    works: &[Work],
    new_id: impl FnOnce() -> String,
) -> BindingPlan {
    let metadata = binding.metadata;
    let mut patch = Operations::default();
    if binding.id().is_none() {
        let id = works::id(binding, works).map_or_else(new_id, str::to_owned);
        let mut has_labels = metadata.labels.is_some();
        patch.entry("labels", &mut has_labels, binding.id_label(), Some(&id));
    }
    patch.finalizer(metadata, binding.finalizer());
    patch.guarded(metadata)
}

/// Returns `true` if a binding's spec is as template and policy want it, apart from the pause.
pub fn is_current(object: &Value, policy: &PropagationSpec, spec: &ResourceBindingSpec) -> bool {
    let mut members = members(object, policy, spec).into_iter();
    members.all(|member| member.is_current)
}

fn body(source: BindingSource<'_>, id: &str) -> Value {
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
    let members = members(object, source.policy, &ResourceBindingSpec::default());
    let spec: Map<String, Value> = members
        .into_iter()
        .filter_map(|member| Some((member.name.to_owned(), member.wanted?)))
        .chain(suspension(source.policy).map(|pause| ("suspension".to_owned(), pause)))
        .collect();
    patch::body(object, id, labels, annotations, spec)
}

fn update(source: BindingSource<'_>, existing: BindingRef<'_>) -> BindingPlan {
    let metadata = existing.metadata;
    if patch::is_former(source.template, metadata) {
        return BindingPlan::Waits;
    }
    let mut patch = Operations::default();
    if source.is_followed {
        patch.spec(source, existing.spec);
    } else {
        patch.pause(source.policy, existing.spec);
    }
    patch.metadata(source, metadata);
    patch.guarded(metadata)
}

impl Operations {
    fn metadata(&mut self, source: BindingSource<'_>, metadata: &ObjectMeta) {
        let mut has_labels = metadata.labels.is_some();
        let mut has_annotations = metadata.annotations.is_some();
        for mark in marks(Some(source.claim)) {
            if !mark.is_on(metadata) {
                let exists = if mark.is_label() {
                    &mut has_labels
                } else {
                    &mut has_annotations
                };
                self.entry(mark.map, exists, mark.key, mark.value);
            }
        }
        self.ownership(source.template, metadata);
        if self.needs_record(source, metadata) {
            let text = source.record.to_text();
            self.entry(
                "annotations",
                &mut has_annotations,
                names::ACTIVATED,
                Some(&text),
            );
        }
    }

    /// Returns `true` if the binding's record must be written. What it says of an immediate policy is not
    /// read before the policy becomes Lazy: then it must tell whether the template was edited since.
    fn needs_record(&self, source: BindingSource<'_>, metadata: &ObjectMeta) -> bool {
        let wanted = source.record;
        Record::of(metadata).is_none_or(|stored| {
            stored != *wanted
                && (source.policy.is_lazy() || stored.template != wanted.template || self.len() > 0)
        })
    }

    fn spec(&mut self, source: BindingSource<'_>, spec: &ResourceBindingSpec) {
        let before = self.len();
        for member in members(source.template, source.policy, spec) {
            if member.is_current {
                continue;
            }
            let path = format!("/spec/{}", member.name);
            match member.wanted {
                Some(wanted) => self.set(&path, &wanted),
                None => self.remove(&path),
            }
        }
        self.pause(source.policy, spec);
        let reference = patch::reference(source.template);
        let current = serde_json::to_value(&spec.resource).unwrap_or_default();
        let is_same = |field| current.get(field) == reference.get(field);
        // Karmada's bindings follow every version of the template, status writes included. Ours do not:
        // a new version in the spec is a new generation, which is scheduled again.
        let identity = ["apiVersion", "kind", "namespace", "name", "uid"];
        if self.len() > before || !identity.into_iter().all(is_same) {
            self.set("/spec/resource", &reference);
        }
    }

    /// Sets the parts of the pause that belong to the policy. `scheduling`, which third parties set, stays.
    fn pause(&mut self, policy: &PropagationSpec, spec: &ResourceBindingSpec) {
        let wanted = policy.suspension.clone().unwrap_or_default();
        let Some(current) = &spec.suspension else {
            if let Some(pause) = suspension(policy) {
                self.set("/spec/suspension", &pause);
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
            let path = format!("/spec/suspension/{name}");
            match wanted {
                _ if wanted == current => {}
                Some(wanted) => self.set(&path, &wanted),
                None => self.remove(&path),
            }
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
