//! A template with the objects that belong to it, the decision about it, and its writes.

use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::write::WriteError;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata};
use propagation_rules::activation::{Activation, is_activated};
use propagation_rules::binding::{self, BindingSource, Place, Scheduling};
use propagation_rules::binding_ref;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;
use serde_json::Value;
use uuid::Uuid;

use crate::index::{StoredBinding, TemplateKey};
use crate::reason::Reason;

/// Errors of a reconcile.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("could not write the claim on the template")]
    Claim(#[source] WriteError),
    #[error("could not write binding {key}")]
    Binding { key: Key, source: WriteError },
    #[error("could not read the policy of a claim")]
    Read(#[source] kube::Error),
    #[error("policy {0} exists and is not in the cache yet")]
    Unseen(Key),
    #[error("there is no PriorityClass {0}, which the policy names")]
    NoPriorityClass(String),
    #[error("PriorityClass {0} is not in the cache yet")]
    UnseenPriorityClass(String),
    #[error("could not read the replicas")]
    Replicas(#[from] interpreters::Failure),
    #[error("the names that its binding may have are those of other bindings")]
    NoName,
}

/// The decision about the binding of a template.
pub(super) struct Decided {
    pub(super) activation: Activation,
    /// The write of the binding.
    pub(super) write: Option<Write>,
    /// The reason why it cannot follow its policy, which leaves it as it is.
    pub(super) refusal: Option<TemplateError>,
}

/// A template with its binding and the claim on them.
pub(super) struct Subject {
    pub(super) key: TemplateKey,
    pub(super) template: Value,
    /// The key of its binding, also of one to be made.
    pub(super) binding_key: Key,
    /// Its binding, which may still be that of a former template of its name.
    pub(super) binding: Option<StoredBinding>,
    /// True if the binding is the template's own.
    pub(super) is_bound: bool,
    pub(super) claimed: Option<Claim>,
}

impl Subject {
    /// Returns the template's binding, unless it is merely attached: then no policy has made it yet.
    pub(super) fn bound(&self) -> Option<&StoredBinding> {
        let own = self.binding.as_ref().filter(|_| self.is_bound)?;
        is_activated(own.view()).then_some(own)
    }

    /// Plans the write of the binding; a template that is held has none.
    pub(super) fn plan(
        &self,
        policy: &Candidate<'_>,
        claim: &Claim,
        activation: &Activation,
        scheduling: &Scheduling,
    ) -> Option<Write> {
        let (record, is_followed) = match activation {
            Activation::Holds(_) => return None,
            Activation::Follows(record) => (record, true),
            Activation::Keeps(record) => (record, false),
        };
        let source = BindingSource {
            template: &self.template,
            policy: policy.spec,
            claim,
            scheduling,
            record,
            is_followed,
        };
        let place = match &self.binding {
            Some(existing) => Place::Existing(existing.view()),
            None => Place::New(self.binding_key.clone()),
        };
        binding::plan(source, place, || Uuid::new_v4().to_string())
    }

    /// Returns the binding as an object of the API, also one to be made.
    pub(super) fn object(&self) -> ObjectRef {
        match &self.binding {
            Some(existing) => existing.view().object(),
            None => binding_ref::named(self.binding_key.clone()),
        }
    }

    pub(super) fn failed(&self, source: WriteError) -> TemplateError {
        TemplateError::Binding {
            key: self.binding_key.clone(),
            source,
        }
    }

    /// Returns the reference by which Events name the template.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            uid: Some(self.template.uid().to_owned()),
            resource_version: Some(self.template.resource_version().to_owned()),
            ..self.key.reference()
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key.kind.kind, self.key.key)
    }
}

/// The objects that were written for a template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) claim: bool,
    pub(super) binding: bool,
}

/// Returns the Event of the Pods of a template that its binding gets to know by a write.
pub(super) fn counted(write: &Write) -> Option<(Reason, String)> {
    let (reason, counts) = if let Some(replicas) = binding::written_replicas(write) {
        (Reason::GetReplicasSucceed, format!("replicas({replicas})"))
    } else {
        let names = binding::written_components(write)?.join(", ");
        (Reason::GetComponentsSucceed, format!("components({names})"))
    };
    Some((reason, format!("Get {counts} of the template succeed")))
}
