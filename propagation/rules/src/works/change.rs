//! A Work as it should be, and the way there from what it is.

use std::borrow::Cow;
use std::collections::BTreeMap;

use karmada_api::work::APPLIED;
use karmada_api::{Work, condition, names};
use objects::patch::JsonPatch;
use objects::replacement::keep_allocated;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
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

/// The step for the Work of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// The cluster needs it.
    Apply(WorkChange),
    /// The cluster needs it, once the copies are gone that leave other clusters first.
    AwaitRemoval,
    /// It stays as it is until an eviction is complete.
    Keep,
    /// Nobody needs it, but while dispatching is suspended no copy may go.
    HoldWhilePaused,
    /// It is being deleted, and nobody needs it.
    Deleting,
    /// Nobody needs it: it is deleted.
    Delete {
        /// The name of the Work.
        key: Key,
        /// Its uid.
        uid: Option<String>,
    },
    /// The cluster needs it, and the Work of its name there is that of this binding.
    Taken(Key),
    /// The cluster is not known, or is leaving and has no Work.
    NoCluster,
    /// An override policy cannot be applied: the Work stays as it is.
    Refused(OverrideError),
    /// The script that revises its manifest has failed with this error: the Work stays as it is.
    Unrevised(String),
}

/// The write that a Work needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkChange {
    /// It is as it should be.
    Unchanged,
    /// It is being deleted. A new one can be created once it is gone.
    Deleting,
    /// This Work is created.
    Create(Value),
    /// It is patched.
    Patch {
        /// The patch.
        patch: JsonPatch,
        /// True if the manifest changes.
        manifest: bool,
    },
}

impl WorkChange {
    /// Returns the write that gives the Work of a Namespace back from a binding to the Namespace, which keeps its copies
    /// up to date then: with the copy everything in it would go.
    pub fn to_namespace(namespace: &Value, binding: BindingRef<'_>, work: &Work) -> Self {
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
        for (field, value) in [
            (
                "preserveResourcesOnDeletion",
                spec.preserve_resources_on_deletion,
            ),
            ("suspendDispatching", spec.suspend_dispatching),
        ] {
            if value.is_some() {
                patch.remove(["spec", field]);
            }
        }
        Self::Patch {
            patch,
            manifest: false,
        }
    }

    /// Returns the write to the Work, which is this object; `None` if there is none.
    pub fn write(self, object: ObjectRef) -> Option<Write> {
        let wanted = self.wanted()?;
        let write = match self {
            Self::Unchanged | Self::Deleting => return None,
            Self::Create(body) => Write::create_as("work", object, body),
            Self::Patch { patch, .. } => Write::json("work", object, patch).guarded(Guard::Version),
        };
        Some(write.bringing(wanted))
    }

    /// Returns the effect of the write; `None` if there is none.
    fn wanted(&self) -> Option<Wanted> {
        match self {
            Self::Unchanged | Self::Deleting => None,
            Self::Create(body) => {
                let mut labels = body["metadata"]["labels"].clone();
                if let Some(labels) = labels.as_object_mut() {
                    // Made for each Work.
                    labels.remove(names::WORK_ID);
                }
                Some(Wanted::created(json!([labels, body["spec"]])))
            }
            Self::Patch { patch, .. } => Some(Wanted::patched(
                patch,
                &[names::WORK_ID, names::MANIFEST_GENERATION],
            )),
        }
    }

    /// Returns `true` if the write changes which override rules are applied, and some are.
    pub fn is_overridden(&self) -> bool {
        let lists = [names::APPLIED_CLUSTER_OVERRIDES, names::APPLIED_OVERRIDES];
        match self {
            Self::Unchanged | Self::Deleting => false,
            Self::Create(body) => lists.iter().any(|list| body.annotation(list).is_some()),
            Self::Patch { patch, .. } => lists
                .iter()
                .any(|list| patch.value(["metadata", "annotations", list]).is_some()),
        }
    }
}

impl DesiredWork {
    /// Returns the write that the current Work needs, if there is one.
    pub fn change(&self, current: Option<&Work>) -> WorkChange {
        match current {
            None => WorkChange::Create(self.body()),
            Some(work) if work.metadata.deletion_timestamp.is_some() => WorkChange::Deleting,
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

    /// Returns `true` for a Work of Karmada's that no member refuses: what the control plane has allocated to its Service
    /// is not worth a write then.
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

    fn patch(&self, work: &Work) -> WorkChange {
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
        patch.finalizer(metadata, names::WORK_FINALIZER);
        patch.append(spec);
        if patch.is_empty() {
            return WorkChange::Unchanged;
        }
        WorkChange::Patch {
            patch,
            manifest: !is_same,
        }
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
