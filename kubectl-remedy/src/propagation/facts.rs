//! The facts that were read about one object on its way to the members.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::{ClusterView, PropagationPolicy, ResourceBinding, Work};
use objects::Key;
use propagation_rules::activation::is_activated;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::choice::{Choice, Preemption, choose};
use propagation_rules::claim::{Claim, is_own};
use propagation_rules::namespaces;
use propagation_rules::template::{Skipped, priority};
use propagation_rules::works::work_name;
use serde_json::Value;

use super::discovery::Served;

/// The objects between a template and the members that have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The kind of the template.
    pub(super) kind: Served,
    /// The key of the template.
    pub(super) key: Key,
    /// `None` if it does not exist.
    pub(super) template: Option<Value>,
    /// Those of both scopes that may select it; one without a namespace is a `ClusterPropagationPolicy`.
    pub(super) policies: Vec<PropagationPolicy>,
    /// The override policies that exist, of those on which a policy that selects it depends.
    pub(super) overrides: BTreeSet<Key>,
    /// One without a namespace is a `ClusterResourceBinding`.
    pub(super) binding: Option<ResourceBinding>,
    /// The Works of the binding, and those that have the names of its Works.
    pub(super) works: Vec<Work>,
    /// Every cluster, where there is a Work or is to be one.
    pub(super) clusters: BTreeMap<String, ClusterView>,
    /// The reason why nobody interprets the template.
    pub(super) refusal: Option<String>,
    /// The roles with which the propagation-controller propagates kinds, if they may be read.
    pub(super) roles: Option<Vec<ClusterRole>>,
    pub(super) skipped: Skipped,
    /// The only cluster that is asked about: that of a Work.
    pub(super) only: Option<String>,
}

impl Facts {
    /// Returns the object as people name it.
    pub(super) fn subject(&self) -> String {
        format!("{} {}", self.kind.kind, self.key)
    }

    /// Returns `true` if it is a Namespace, which every member gets without a policy.
    pub(super) fn is_namespace(&self) -> bool {
        self.kind.group.is_empty() && self.kind.kind == "Namespace"
    }

    pub(super) fn binding(&self) -> Option<BindingRef<'_>> {
        self.binding.as_ref().map(BindingRef::from)
    }

    /// Returns the binding that a policy has made for this very template.
    pub(super) fn bound(&self) -> Option<BindingRef<'_>> {
        let (binding, template) = (self.binding()?, self.template.as_ref()?);
        (is_activated(binding) && is_own(binding.metadata, template)).then_some(binding)
    }

    /// Returns the keys of the bindings that require this one.
    pub(super) fn required_by(&self) -> Vec<Key> {
        let required = self.binding.iter();
        let required = required.flat_map(|binding| binding.spec.required_by.iter().flatten());
        let keys = required.map(|snapshot| {
            let (namespace, name) = (snapshot.namespace.clone(), snapshot.name.clone());
            Key::new(namespace.unwrap_or_default(), name.unwrap_or_default())
        });
        keys.collect()
    }

    /// Returns the version in which the template counts: of those in which a policy selects it, or the preferred one.
    pub(super) fn selected_version(&self) -> &str {
        let kind = &self.kind;
        let selected = kind.versions.iter().filter(|version| {
            let version = kind.in_version(version);
            let mut policies = self.candidates();
            let template = self.template.as_ref();
            template.is_some_and(|template| policies.any(|one| one.selects_in(&version, template)))
        });
        let newest = selected.max_by_key(|version| priority(version));
        newest.map_or_else(|| kind.preferred(), String::as_str)
    }

    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        self.policies.iter().map(Candidate::from)
    }

    /// Returns the claim of a policy on the template.
    pub(super) fn claimed(&self) -> Option<Claim> {
        let binding = self.binding.as_ref().map(|binding| &binding.metadata);
        Claim::on(self.template.as_ref()?, binding)
    }

    /// Returns the policy that has the template, as the propagation-controller chooses it.
    pub(super) fn choice(&self) -> Choice<'_> {
        let Some(template) = &self.template else {
            return Choice::None;
        };
        let claimed = self.claimed();
        // Whether it is switched off is a flag of a program that this one does not see.
        let preemption = Preemption::Allowed;
        choose(
            template,
            claimed.as_ref(),
            self.candidates(),
            preemption,
            |namespace, name| {
                let key = Key::new(namespace.unwrap_or_default(), name);
                self.overrides.contains(&key)
            },
        )
    }

    /// Returns the name of its Works.
    pub(super) fn work_name(&self) -> String {
        match self.binding() {
            Some(binding) => work_name(binding),
            None if self.is_namespace() => namespaces::work_name(&self.key.name),
            None => self.key.name.clone(),
        }
    }
}
