//! A Work as it should be, and the write that leads there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use karmada_api::work::APPLIED;
use karmada_api::{Work, condition, names};
use objects::patch::JsonPatch;
use objects::replacement::keep_allocated;
use objects::wanted::Wanted;
use objects::write::{Action, Guard, ObjectRef, Write};
use objects::{Key, Metadata, kind};
use serde_json::{Value, json};

use crate::binding_ref::BindingRef;
use crate::manifest;
use crate::overrides::{Applied, OverrideError};

/// A Work as it should be.
#[derive(Clone, Debug)]
pub struct DesiredWork {
    /// Its namespace and name.
    pub key: Key,
    /// The labels that are ours.
    pub labels: BTreeMap<String, String>,
    /// The annotations that are ours.
    pub annotations: BTreeMap<String, String>,
    /// The override rules that were applied, which are annotations, too.
    pub applied: Applied,
    /// The owner reference of a Work without a binding.
    pub owner: Option<Value>,
    /// The suspension; `None` for a Work that cannot be suspended.
    pub suspended: Option<bool>,
    /// True if the object stays in the member when the Work is deleted.
    pub preserved: Option<bool>,
    /// The manifest.
    pub manifest: Value,
    /// True if the template follows the policy of its claim.
    pub follows_claim: bool,
}

/// The write that the Work of a cluster needs, if it needs one, or the reason why it is left as it is.
pub type Step = Result<Option<Write>, Unwritten>;

/// The reason why the Work of a cluster is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The cluster needs it, once the copies are gone that leave other clusters first.
    AwaitRemoval,
    /// The cluster needs it, and it is being deleted: a new one can be created once it is gone.
    AwaitDeletion,
    /// It stays until an eviction is complete.
    Keep,
    /// Nobody needs it, but while dispatching is suspended no copy may go.
    HoldWhilePaused,
    /// It is being deleted, and nobody needs it.
    Deleting,
    /// The cluster needs it, and the Work of its name there is that of this binding.
    Taken(Key),
    /// The cluster is not known, or is leaving and has no Work.
    NoCluster,
    /// An override policy cannot be applied.
    Refused(OverrideError),
    /// The script that revises its manifest has failed with this error.
    Unrevised(String),
}

/// Returns the write that creates a Work with this body.
fn created(key: Key, body: Value) -> Write {
    let mut labels = body["metadata"]["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        // Made for each Work.
        labels.remove(names::WORK_ID);
    }
    let wanted = Wanted::created(json!([labels, body["spec"]]));
    let object = ObjectRef::named::<Work>(key, &());
    Write::create_as("work", object, body).bringing(wanted)
}

/// Returns the write that patches a Work, unless it has changed since it was read.
fn patched(work: &Work, patch: JsonPatch) -> Write {
    let wanted = Wanted::patched(&patch, &[names::WORK_ID, names::MANIFEST_GENERATION]);
    let write = Write::json("work", ObjectRef::of(work, &()), patch);
    write.guarded(Guard::Version).bringing(wanted)
}

/// Returns the write that deletes the Work `key`, if it is that with the uid.
pub fn deletion(key: Key, uid: Option<String>) -> Write {
    let guard = match uid {
        Some(_) => Guard::Uid,
        None => Guard::None,
    };
    let object = ObjectRef {
        uid,
        ..ObjectRef::named::<Work>(key, &())
    };
    Write::delete("work", object).guarded(guard)
}

/// Returns the write that gives the Work of a Namespace back from a binding to the Namespace, which keeps its copies
/// up to date then: with the copy everything in it would go.
pub fn to_namespace(namespace: &Value, binding: BindingRef<'_>, work: &Work) -> Write {
    let (metadata, spec) = (&work.metadata, &work.spec);
    let reference = binding.reference().into_iter().map(|(key, _)| key);
    let of_binding = [names::CONFLICT_RESOLUTION, names::MANIFEST_GENERATION];
    let annotations = reference.chain(of_binding).map(|key| (key, None));
    let mut patch = JsonPatch::default();
    patch.entries(
        "labels",
        metadata.labels.as_ref(),
        [(binding.id_label(), None)],
    );
    patch.entries("annotations", metadata.annotations.as_ref(), annotations);
    if metadata.owner_references.iter().flatten().next().is_none() {
        let owner = namespace_owner(namespace);
        patch.add(["metadata", "ownerReferences"], json!([owner]));
    }
    if spec.preserve_resources_on_deletion.is_some() {
        patch.remove(["spec", "preserveResourcesOnDeletion"]);
    }
    if spec.suspend_dispatching.is_some() {
        patch.remove(["spec", "suspendDispatching"]);
    }
    patched(work, patch)
}

/// Returns `true` if the write of a Work that a cluster needs changes its manifest.
pub(super) fn changes_manifest(write: &Write) -> bool {
    match &write.action {
        Action::Json(patch) => patch.value(["spec", "workload"]).is_some(),
        _ => true,
    }
}

/// Returns `true` if the write of a Work changes which override rules are applied, and some are.
pub fn is_overridden(write: &Write) -> bool {
    let mut lists = [names::APPLIED_CLUSTER_OVERRIDES, names::APPLIED_OVERRIDES].into_iter();
    match &write.action {
        Action::Json(patch) => lists.any(|list| {
            let annotation = patch.value(["metadata", "annotations", list]);
            annotation.is_some()
        }),
        _ => lists.any(|list| write.body().annotation(list).is_some()),
    }
}

impl DesiredWork {
    /// Returns the write that the current Work needs, if there is one. One that is being deleted needs none.
    pub fn write(&self, current: Option<&Work>) -> Option<Write> {
        match current {
            None => Some(created(self.key.clone(), self.body())),
            Some(work) if work.metadata.is_deleting() => None,
            Some(work) => self.patch(work),
        }
    }

    fn body(&self) -> Value {
        let mut annotations = self.annotations.clone();
        for (key, value) in self.overrides() {
            if let Some(value) = value {
                annotations.insert(key.to_owned(), value.to_string());
            }
        }
        if self.suspended.is_some() {
            // The generation that every object is created with.
            annotations.insert(names::MANIFEST_GENERATION.to_owned(), "1".to_owned());
        }
        let mut metadata = json!({
            "namespace": self.key.namespace,
            "name": self.key.name,
            "labels": self.labels,
            "finalizers": [names::WORK_FINALIZER],
        });
        if !annotations.is_empty() {
            metadata["annotations"] = json!(annotations);
        }
        if let Some(owner) = &self.owner {
            metadata["ownerReferences"] = json!([owner]);
        }
        let mut spec = json!({ "workload": { "manifests": [self.manifest] } });
        for (field, value) in self.flags() {
            if let Some(value) = value {
                spec[field] = value.into();
            }
        }
        json!({
            "apiVersion": Work::API_VERSION,
            "kind": Work::KIND,
            "metadata": metadata,
            "spec": spec,
        })
    }

    /// Returns `true` for a Work of Karmada's that no member refuses: the fields that the control plane has allocated to
    /// its Service are not worth a write then.
    fn may_stay(work: &Work) -> bool {
        let is_theirs = work
            .metadata
            .annotation(names::MANIFEST_GENERATION)
            .is_none();
        let applied = work.condition(APPLIED);
        is_theirs && applied.is_none_or(|applied| applied.status != condition::FALSE)
    }

    /// Returns the manifest as it is to be beside the one that a Work has.
    fn beside<'a>(&'a self, work: &Work, current: &Value) -> Cow<'a, Value> {
        if !Self::may_stay(work) || kind(current) != "Service" {
            return Cow::Borrowed(&self.manifest);
        }
        let mut manifest = self.manifest.clone();
        keep_allocated(&mut manifest, current);
        Cow::Owned(manifest)
    }

    fn patch(&self, work: &Work) -> Option<Write> {
        let is_same = match work.spec.workload.manifests.as_slice() {
            [current] => {
                let wanted = self.beside(work, current);
                manifest::is_same(current, &wanted, self.follows_claim)
            }
            _ => false,
        };
        let mut spec = JsonPatch::default();
        let current = [
            work.spec.preserve_resources_on_deletion,
            work.spec.suspend_dispatching,
        ];
        for ((field, wanted), current) in self.flags().into_iter().zip(current) {
            if wanted.is_some() && wanted != current {
                spec.add(["spec", field], json!(wanted));
            }
        }
        if !is_same {
            let workload = json!({ "manifests": [self.manifest] });
            spec.add(["spec", "workload"], workload);
        }

        let metadata = &work.metadata;
        let mut annotations: BTreeMap<&str, Option<String>> = self
            .annotations
            .iter()
            .map(|(key, value)| (key.as_str(), Some(value.clone())))
            .collect();
        for (key, value) in self.overrides() {
            let current = metadata.annotation(key);
            let is_same = match (value, current) {
                (Some(value), Some(current)) => parses_as(current, value),
                (value, current) => value.is_none() && current.is_none(),
            };
            if !is_same {
                annotations.insert(key, value.map(Value::to_string));
            }
        }
        if is_same && Self::may_stay(work) {
            annotations.remove(names::ALLOCATED_NODE_PORTS);
        } else if metadata.annotation(names::ALLOCATED_NODE_PORTS).is_some() {
            annotations.entry(names::ALLOCATED_NODE_PORTS).or_default();
        }
        if let (Some(generation), false) =
            (self.manifest_generation(work, is_same), spec.is_empty())
        {
            annotations.insert(names::MANIFEST_GENERATION, Some(generation.to_string()));
        }
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| (key.as_str(), Some(value.as_str())));
        let annotations = annotations
            .iter()
            .map(|(key, value)| (*key, value.as_deref()));

        let mut patch = JsonPatch::default();
        patch.entries("labels", metadata.labels.as_ref(), labels);
        patch.entries("annotations", metadata.annotations.as_ref(), annotations);
        patch.add_finalizer(metadata, names::WORK_FINALIZER);
        patch.append(spec);
        (!patch.is_empty()).then(|| patched(work, patch))
    }

    /// Returns the generation of the manifest's last change, if a write of the spec must record it.
    fn manifest_generation(&self, work: &Work, is_same: bool) -> Option<i64> {
        self.suspended?;
        let generation = work.metadata.generation?;
        if !is_same {
            // The write itself makes the next generation, and is refused if another came first.
            Some(generation + 1)
        } else if work
            .metadata
            .annotation(names::MANIFEST_GENERATION)
            .is_none()
        {
            // Without a record the generation counts, which is about to change for another reason.
            Some(generation)
        } else {
            None
        }
    }

    fn flags(&self) -> [(&'static str, Option<bool>); 2] {
        [
            ("preserveResourcesOnDeletion", self.preserved),
            ("suspendDispatching", self.suspended),
        ]
    }

    fn overrides(&self) -> [(&'static str, Option<&Value>); 2] {
        [
            (
                names::APPLIED_CLUSTER_OVERRIDES,
                self.applied.cluster_policies.as_ref(),
            ),
            (names::APPLIED_OVERRIDES, self.applied.policies.as_ref()),
        ]
    }
}

/// Returns the reference by which a Work is that of a Namespace.
pub(crate) fn namespace_owner(namespace: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": namespace.name(),
        "uid": namespace.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns `true` if the text is the value, whatever the order of its fields.
fn parses_as(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *value)
}
