//! The templates, policies and bindings that a change wakes, and the kinds that are watched after it.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::DynamicEvent;
use karmada_runtime::untyped::Untyped;
use kube::Resource;
use objects::GroupVersionKind;
use objects::write::{ObjectRef, Write};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;
use propagation_rules::customization;

use super::Templates;
use super::kinds::{has_priority, kinds_of, priority_class, selects};
use crate::index::{
    Index, StoredBinding, TemplateKey, is_referring, kinds_of_binding, template_of,
};

impl Templates {
    /// Watches a kind in the version that the API prefers, too.
    pub(crate) fn watch_preferred(&self, kind: GroupVersionKind) {
        let mut index = self.index.lock();
        if index.preferred.insert(kind.clone()) && index.replace_kinds([], [kind]) {
            self.want(&index);
        }
    }

    /// Watches the kinds that the index names, and those that customize their interpretation.
    pub(super) fn want(&self, index: &Index) {
        let mut wanted: BTreeSet<_> = index.kinds().cloned().collect();
        wanted.extend(customization::kinds());
        let are_named = !index.policies_where(has_priority).is_empty();
        wanted.extend(are_named.then(priority_class));
        self.watches.want(wanted);
    }

    /// Watches the kinds that a policy names now.
    pub(crate) fn follow_policy(&self, index: &mut Index, versions: [Option<Candidate<'_>>; 2]) {
        let [before, now] = versions.map(|policy| kinds_of(policy.as_ref()));
        let [was, is] = versions.map(|policy| policy.as_ref().is_some_and(has_priority));
        if index.replace_kinds(before, now) || was != is {
            self.want(index);
        }
    }

    /// Returns the keys of the templates that a policy selects or has, or did so, unless it decides about them as before.
    pub(crate) fn decided_otherwise(
        &self,
        index: &Index,
        versions: [Option<Candidate<'_>>; 2],
    ) -> Vec<TemplateKey> {
        if let [Some(old), Some(new)] = &versions
            && decides_alike(old, new)
        {
            return Vec::new();
        }
        let policies: Vec<_> = versions.into_iter().flatten().collect();
        self.of_candidates(index, &policies)
    }

    /// Watches the kinds that a binding names now, and wakes it, and if it may pause them otherwise, those that it requires;
    /// and unless only its status differs, its template, those whose dependencies it concerns, and the policy that has lost
    /// it: reports of the clusters are of no concern to them.
    pub(crate) fn follow_binding<K>(&self, index: &mut Index, change: &Transition<K>)
    where
        for<'a> &'a K: Into<BindingRef<'a>>,
    {
        let versions: [Option<BindingRef<'_>>; 2] = change.views();
        let kinds = versions.map(|binding| binding.map(kinds_of_binding));
        let [before, now] = kinds.map(Option::unwrap_or_default);
        if index.replace_kinds(before, now) {
            self.want(index);
        }
        let queues = &self.queues;
        queues
            .bindings
            .add_all(index.paused_with(&change.key, versions));
        if let [Some(old), Some(new)] = versions
            && is_same_but_status(old.metadata, new.metadata)
        {
            return;
        }
        queues.dependencies.add_all(index.dependents(versions));
        let bindings = versions.into_iter().flatten();
        let templates = bindings.map(|binding| template_of(binding.spec));
        queues.templates.add_all(templates);
        let [was, is] = versions.map(|binding| Claim::of(binding?.metadata));
        self.wake_former(was, is.as_ref());
    }

    /// Takes in a write of a binding, as an edit that shows it.
    pub(crate) fn binding_written(&self, write: &Write, stored: &ObjectRef) {
        let mut index = self.index.lock();
        if stored.key.namespace.is_empty() {
            if let Some(change) = index.cluster_bindings.written(write, stored) {
                self.follow_binding(&mut index, &change);
            }
        } else if let Some(change) = index.bindings.written(write, stored) {
            self.follow_binding(&mut index, &change);
        }
    }

    /// Takes in a write of a template of a kind.
    pub(crate) fn written(&self, kind: &GroupVersionKind, write: &Write, stored: &ObjectRef) {
        if let Some(change) = self.watches.written(kind, write, stored) {
            let mut index = self.index.lock();
            if self.follow_claim(&mut index, kind, change) {
                self.want(&index);
            }
        }
    }

    /// Applies an event of templates, and wakes them and their bindings.
    pub(super) fn observe(&self, kind: &GroupVersionKind, event: DynamicEvent) {
        let mut index = self.index.lock();
        if customization::kinds().contains(kind) {
            return self.observe_customization(&mut index, kind, event);
        }
        if *kind == priority_class() {
            let policies = index.policies_where(has_priority);
            let templates = self.of_policies(&index, &policies);
            self.queues.templates.add_all(templates);
        }
        match event {
            DynamicEvent::Changed(transitions) => {
                let mut are_others = false;
                for change in transitions {
                    let template = TemplateKey::new(kind, &change.key);
                    self.wake_bindings(&index, &template);
                    are_others |= self.follow_claim(&mut index, kind, change);
                    self.queues.templates.add(template);
                }
                if are_others {
                    self.want(&index);
                }
            }
            event @ (DynamicEvent::Listed | DynamicEvent::NotServed) => {
                let is_served = matches!(event, DynamicEvent::Listed);
                let is_news = if is_served {
                    index.not_served.remove(kind)
                } else {
                    index.not_served.insert(kind.clone())
                };
                // A policy that is being deleted waits until every template is known, any other says whether
                // its kinds are served.
                let concerned = index.policies_where(|policy| {
                    policy.is_deleting() || ((is_served || is_news) && selects(policy, kind))
                });
                self.queues.policies.add_all(concerned);
                // So does a binding that is being deleted.
                self.queues.bindings.add_all(index.deleted_bindings(kind));
                if is_news {
                    self.wake_versions_of(&index, kind);
                }
            }
            DynamicEvent::Unkept(..) | DynamicEvent::Failing => {}
            // It is waited for, as if the list were long; its policies say so.
            DynamicEvent::Forbidden => {
                let concerned = index.policies_where(|policy| selects(policy, kind));
                self.queues.policies.add_all(concerned);
            }
        }
    }

    /// Follows the claim on a template, and returns `true` if other kinds are to be watched now.
    fn follow_claim(
        &self,
        index: &mut Index,
        kind: &GroupVersionKind,
        change: Transition<Untyped>,
    ) -> bool {
        let [old, new] = [change.old, change.new].map(|object| Claim::of(object?.meta()));
        // One without a binding must lose its claim even if no policy names the kind any more.
        let [before, after] = [&old, &new].map(|claim| claim.as_ref().map(|_| kind.clone()));
        let are_others = index.replace_kinds(before, after);
        self.wake_former(old, new.as_ref());
        are_others
    }

    /// Wakes the policy of a claim that is gone: it may be waiting for that to be deleted.
    fn wake_former(&self, old: Option<Claim>, new: Option<&Claim>) {
        if let Some(former) = old.filter(|old| Some(old) != new) {
            self.queues.policies.add(former.policy());
        }
    }

    /// Wakes the binding of a template, and those whose dependencies it concerns: those that list it, and its own
    /// if dependencies follow it.
    fn wake_bindings(&self, index: &Index, template: &TemplateKey) {
        let own = index.binding_of(template);
        let own = own.as_ref().map(StoredBinding::view);
        let referring = own.filter(|own| is_referring(*own));
        let mut dependent = index.depending_on(template);
        dependent.extend(referring.map(|own| own.key()));
        self.queues.dependencies.add_all(dependent);
        self.queues.bindings.add_all(own.map(|own| own.key()));
    }

    /// Wakes the templates of a kind in every version, and those that require a binding of this one: which one counts depends
    /// on those that are served.
    fn wake_versions_of(&self, index: &Index, changed: &GroupVersionKind) {
        let referrers = index.referrers_of_kind(changed);
        self.queues.dependencies.add_all(referrers);
        let templates = self.keys_where(index, |kind, _, _| {
            kind.group == changed.group && kind.kind == changed.kind
        });
        self.queues.templates.add_all(templates);
    }

    /// Notes a change of the customizations, and wakes the templates that they interpret otherwise than before.
    fn observe_customization(
        &self,
        index: &mut Index,
        kind: &GroupVersionKind,
        event: DynamicEvent,
    ) {
        // One that goes is to be forgotten.
        let mut names = index.customization_keys();
        // They are known once they are asked, and no earlier.
        let changes = (index.customizations).observe(kind, event, &self.interpreters);
        if changes.is_empty() {
            return;
        }
        names.extend(index.customization_keys());
        let bindings =
            index.bindings_where(|binding| changes.concern(&template_of(binding.spec).kind));
        self.queues.dependencies.add_all(bindings.iter().cloned());
        self.queues.bindings.add_all(bindings);
        let templates = self.keys_where(index, |kind, _, _| changes.concern(kind));
        self.queues.templates.add_all(templates);
        self.queues.customizations.add_all(names);
    }
}

/// Returns `true` if both versions of a policy are the same for every template.
fn decides_alike(old: &Candidate<'_>, new: &Candidate<'_>) -> bool {
    old.spec == new.spec
        && old.id() == new.id()
        && old.is_deleting() == new.is_deleting()
        && old.metadata.uid == new.metadata.uid
}

fn is_same_but_status(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    old.uid == new.uid
        && old.generation == new.generation
        && old.labels == new.labels
        && old.annotations == new.annotations
        && old.finalizers == new.finalizers
        && old.owner_references == new.owner_references
        && old.deletion_timestamp == new.deletion_timestamp
}
