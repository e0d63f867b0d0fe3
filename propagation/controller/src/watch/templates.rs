//! The watches of templates, of the kinds that policies select, bindings are of and claims are on.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{ResourceBindingSpec, ResourceSelector, names};
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::{DynamicEvent, WatchState};
use karmada_runtime::untyped::Untyped;
use kube::Resource;
use objects::write::{ObjectRef, Write};
use objects::{GroupVersionKind, Key, Metadata, metadata};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;
use propagation_rules::customization;
use propagation_rules::rights::GroupResource;
use serde_json::{Value, json};

use super::kinds::{has_priority, kinds_of, priority_class};
use super::{SharedIndex, wake_former};
use crate::index::{Index, StoredBinding, TemplateKey, is_referring, referrer_keys, template_of};

/// A kind whose objects we may not list.
pub(crate) struct ForbiddenKind {
    pub(crate) kind: GroupVersionKind,
    pub(crate) resource: GroupResource,
}

impl SharedIndex {
    /// Returns the keys of all templates.
    pub(crate) fn template_keys(&self) -> Vec<TemplateKey> {
        let mut keys = Vec::new();
        self.each_template(|kind, key, _| keys.push(TemplateKey::new(kind, key)));
        keys
    }

    /// Returns the keys of the templates of the same kind and namespace.
    pub(crate) fn templates_beside(&self, of: &TemplateKey) -> Vec<TemplateKey> {
        let mut keys = Vec::new();
        self.templates.each(&of.kind, |key, _| {
            if key.namespace == of.key.namespace {
                keys.push(TemplateKey::new(&of.kind, key));
            }
        });
        keys
    }

    /// Returns a template's newest version, with its kind, which the elements of a list lack, and with what the API
    /// has allocated to it.
    pub(crate) fn template(&self, TemplateKey { kind, key }: &TemplateKey) -> Option<Value> {
        let template = self.templates.get(kind, key)?;
        let mut object = template.template();
        let ports = template.allocated_node_ports().iter();
        let ports: Vec<_> = ports.map(ToString::to_string).collect();
        if !ports.is_empty() && (kind.group.as_str(), kind.kind.as_str()) == ("", "Service") {
            metadata::edit(&mut object, "annotations", |annotations| {
                let key = names::ALLOCATED_NODE_PORTS.to_owned();
                annotations.insert(key, ports.join(",").into());
            });
        }
        let fields = object.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
        fields.insert("kind".to_owned(), json!(kind.kind));
        Some(object)
    }

    /// Returns a template as an object of the API, once it is known how that serves its kind.
    pub(crate) fn object(&self, of: &TemplateKey, template: &Value) -> Option<ObjectRef> {
        Some(ObjectRef {
            resource: self.templates.served(&of.kind)?.resource,
            key: of.key.clone(),
            uid: Some(template.uid().to_owned()),
            version: Some(template.resource_version().to_owned()),
            generation: None,
        })
    }

    /// Returns the template of a binding, unless nobody that can be asked interprets its kind. A template that is gone
    /// takes its binding along; one that was made anew gets another.
    pub(crate) fn bound_template(&self, binding: BindingRef<'_>) -> Option<Value> {
        let key = template_of(binding.spec);
        let is_ours = self.read(Index::is_interpretation_known)
            && self.interpreters.refusal(&key.kind).is_none();
        let uid = binding.spec.resource.uid.as_deref();
        let template = self.template(&key).filter(|_| is_ours)?;
        uid.is_none_or(|uid| uid == template.uid())
            .then_some(template)
    }

    /// Returns `true` if all templates of a kind are known: one that is not among them is gone.
    pub(crate) fn is_listed(&self, kind: &GroupVersionKind) -> bool {
        match self.templates.state(kind) {
            WatchState::Complete | WatchState::NotServed => true,
            WatchState::Off | WatchState::Listing | WatchState::Forbidden | WatchState::Failing => {
                false
            }
        }
    }

    /// Returns `true` if some template, or the binding of one, may still have the claim of `policy`.
    pub(crate) fn is_claimed_by(&self, policy: &Candidate<'_>) -> bool {
        let selected = kinds_of(Some(policy));
        let is_known = |kind: &GroupVersionKind| match self.templates.state(kind) {
            // A claim that cannot be seen cannot be taken off either. It goes once the kind may be listed.
            WatchState::Complete | WatchState::NotServed | WatchState::Forbidden => true,
            WatchState::Off | WatchState::Listing | WatchState::Failing => false,
        };
        if !selected.iter().all(is_known) {
            return true;
        }
        let has_claim =
            |metadata: &ObjectMeta| Claim::of(metadata).is_some_and(|claim| claim.is_of(policy));
        let mut found = false;
        self.each_template(|_, _, object| found |= has_claim(object.meta()));
        let index = self.index.lock();
        let bindings = index.bindings.iter().map(|(_, b)| (&b.metadata, &b.spec));
        let cluster = index.cluster_bindings.iter();
        let cluster = cluster.map(|(_, b)| (&b.metadata, &b.spec));
        // The claim on the binding of a template that is gone goes with the binding.
        let is_there = |TemplateKey { kind, key }: &TemplateKey| {
            self.templates.get(kind, key).is_some()
                || self.templates.state(kind) == WatchState::Forbidden
        };
        found
            || bindings
                .chain(cluster)
                .any(|(metadata, spec)| has_claim(metadata) && is_there(&template_of(spec)))
    }

    /// Returns the kinds that `policy` selects and whose objects we may not list.
    pub(crate) fn forbidden_kinds(&self, policy: &Candidate<'_>) -> Vec<ForbiddenKind> {
        let selected = kinds_of(Some(policy)).into_iter();
        let forbidden = selected.filter_map(|kind| {
            let is_forbidden = self.templates.state(&kind) == WatchState::Forbidden;
            let served = self.templates.served(&kind).filter(|_| is_forbidden)?;
            let resource = GroupResource {
                group: served.resource.group,
                resource: served.resource.plural,
            };
            // Of what is never propagated there is nothing to grant.
            let resource = resource.to_string().parse().ok()?;
            Some(ForbiddenKind { kind, resource })
        });
        forbidden.collect()
    }

    /// Returns the kinds that `policy` selects and the API does not serve, once it has answered for each.
    pub(crate) fn unserved_kinds(&self, policy: &Candidate<'_>) -> Option<Vec<GroupVersionKind>> {
        let mut unserved = Vec::new();
        for kind in kinds_of(Some(policy)) {
            if self.templates.state(&kind) == WatchState::NotServed {
                unserved.push(kind);
            } else if self.templates.served(&kind).is_none() {
                return None;
            }
        }
        Some(unserved)
    }

    fn each_template(&self, mut visit: impl FnMut(&GroupVersionKind, &Key, &Untyped)) {
        let kinds: Vec<_> = self.index.lock().kinds().cloned().collect();
        for kind in &kinds {
            self.templates
                .each(kind, |key, object| visit(kind, key, object));
        }
    }

    /// Wakes the templates that meet the condition.
    fn wake_templates_where(
        &self,
        mut is_met: impl FnMut(&GroupVersionKind, &Key, &Untyped) -> bool,
    ) {
        let mut woken = Vec::new();
        self.each_template(|kind, key, object| {
            if is_met(kind, key, object) {
                woken.push(TemplateKey::new(kind, key));
            }
        });
        self.queues.templates.add_all(woken);
    }

    /// Wakes the templates that one of `policies` selects or claims.
    pub(super) fn wake_templates_of(&self, policies: &[Candidate<'_>]) {
        self.wake_templates_where(|kind, key, object| {
            let metadata = object.meta();
            policies.iter().any(|policy| {
                let id = policy.id();
                (id.is_some() && metadata.label(policy.id_label()) == id)
                    || may_select(policy, kind, key, metadata)
            })
        });
    }

    /// Watches a kind in the version that the API prefers, too.
    pub(crate) fn watch_preferred(&self, kind: GroupVersionKind) {
        let is_news = {
            let mut index = self.index.lock();
            index.preferred.insert(kind.clone()) && index.replace_kinds([], [kind])
        };
        if is_news {
            self.want();
        }
    }

    /// Watches the kinds that the index names, and those that customize their interpretation.
    pub(super) fn want(&self) {
        let index = self.index.lock();
        let mut wanted: BTreeSet<_> = index.kinds().cloned().collect();
        wanted.extend(customization::kinds());
        let are_named = !index.policies_where(has_priority).is_empty();
        drop(index);
        wanted.extend(are_named.then(priority_class));
        self.templates.want(wanted);
    }

    /// Applies an event of templates, and wakes them and their bindings.
    pub(super) fn observe_templates(&self, kind: &GroupVersionKind, event: DynamicEvent) {
        if customization::kinds().contains(kind) {
            return self.customization(kind, event);
        }
        if *kind == priority_class() {
            self.wake_prioritized();
        }
        match event {
            DynamicEvent::Changed(transitions) => {
                let mut are_others = false;
                for change in transitions {
                    let template = TemplateKey::new(kind, &change.key);
                    self.wake_bindings(&template);
                    are_others |= self.follow_claim(kind, change);
                    self.queues.templates.add(template);
                }
                if are_others {
                    self.want();
                }
            }
            event @ (DynamicEvent::Listed | DynamicEvent::NotServed) => {
                let mut index = self.index.lock();
                let is_served = matches!(event, DynamicEvent::Listed);
                let is_news = if is_served {
                    index.not_served.remove(kind)
                } else {
                    index.not_served.insert(kind.clone())
                };
                // A policy that is being deleted waits until every template is known, any other says whether
                // its kinds are served.
                let concerned = index.policies_where(|policy| {
                    policy.is_deleting()
                        || ((is_served || is_news) && kinds_of(Some(policy)).contains(kind))
                });
                self.queues.policies.add_all(concerned);
                // So does a binding that is being deleted.
                self.queues.bindings.add_all(index.deleted_bindings(kind));
                drop(index);
                if is_news {
                    self.wake_versions_of(kind);
                }
            }
            DynamicEvent::Unkept(..) | DynamicEvent::Failing => {}
            // It is waited for, as if the list were long; its policies say so.
            DynamicEvent::Forbidden => {
                let selects = |policy: &Candidate<'_>| kinds_of(Some(policy)).contains(kind);
                let concerned = self.read(|index| index.policies_where(selects));
                self.queues.policies.add_all(concerned);
            }
        }
    }

    /// Takes in what was written to a template of a kind.
    pub(crate) fn template_written(
        &self,
        kind: &GroupVersionKind,
        write: &Write,
        stored: &ObjectRef,
    ) {
        let change = self.templates.written(kind, write, stored);
        if change.is_some_and(|change| self.follow_claim(kind, change)) {
            self.want();
        }
    }

    /// Follows the claim on a template, and returns `true` if other kinds are to be watched now.
    fn follow_claim(&self, kind: &GroupVersionKind, change: Transition<Untyped>) -> bool {
        let claim = |object: Option<Arc<Untyped>>| Claim::of(object?.meta());
        let (old, new) = (claim(change.old), claim(change.new));
        // One without a binding must lose its claim even if no policy names the kind any more.
        let named = |claim: &Option<Claim>| claim.as_ref().map(|_| kind.clone());
        let are_others = self.index.lock().replace_kinds(named(&old), named(&new));
        wake_former(&self.queues, old, new.as_ref());
        are_others
    }

    /// Wakes the binding of a template, and those whose dependencies it concerns: those that list it, and its own
    /// if dependencies follow it.
    fn wake_bindings(&self, template: &TemplateKey) {
        let (own, dependent) = self.read(|index| {
            let own = index.binding_of(template);
            let referring = own.as_ref().map(StoredBinding::view);
            let referring = referring.filter(|own| is_referring(*own));
            let mut dependent = index.dependencies.depending_on(template);
            dependent.extend(referring.map(|own| own.key()));
            (own.map(|own| own.view().key()), dependent)
        });
        self.queues.dependencies.add_all(dependent);
        self.queues.bindings.add_all(own);
    }

    /// Wakes the templates of a kind in every version, and those that require a binding of this one: which one counts depends
    /// on those that are served.
    fn wake_versions_of(&self, changed: &GroupVersionKind) {
        let referrers = self.read(|index| {
            let bindings = index.bindings.iter().map(|(_, binding)| &**binding);
            let of_version = bindings.filter(|b| template_of(&b.spec).kind == *changed);
            let referrers = of_version.flat_map(|binding| referrer_keys(binding.into()));
            referrers.collect::<Vec<_>>()
        });
        self.queues.dependencies.add_all(referrers);
        self.wake_templates_where(|kind, _, _| {
            kind.group == changed.group && kind.kind == changed.kind
        });
    }

    /// Notes what the customizations say, and wakes what they say something else about.
    fn customization(&self, kind: &GroupVersionKind, event: DynamicEvent) {
        let mut index = self.index.lock();
        // One that goes is to be forgotten.
        let mut names = index.customization_keys();
        // They are known once they are asked, and no earlier.
        let changes = index
            .customizations
            .observe(kind, event, &self.interpreters);
        names.extend(index.customization_keys());
        drop(index);
        if !changes.is_empty() {
            self.reinterpret(|kind| changes.concern(kind));
            self.queues.customizations.add_all(names);
        }
    }

    /// Wakes the templates and bindings of kinds that are interpreted otherwise.
    fn reinterpret(&self, is_concerned: impl Fn(&GroupVersionKind) -> bool) {
        let of_kind = |spec: &ResourceBindingSpec| is_concerned(&template_of(spec).kind);
        let bindings = self.read(|index| index.bindings_where(of_kind));
        self.queues.dependencies.add_all(bindings.iter().cloned());
        self.queues.bindings.add_all(bindings);
        self.wake_templates_where(|kind, _, _| is_concerned(kind));
    }
}

/// Returns `true` if the policy selects the template.
fn may_select(
    policy: &Candidate<'_>,
    kind: &GroupVersionKind,
    key: &Key,
    metadata: &ObjectMeta,
) -> bool {
    let is_elsewhere = policy.namespace().is_some_and(|own| own != key.namespace);
    let may = |selector: &ResourceSelector| {
        let name = selector.name.as_deref().unwrap_or_default();
        selector.kind == kind.kind && (name.is_empty() || name == key.name)
    };
    // A namespace may have thousands of each: most pairs are told apart without a copy.
    if is_elsewhere || !policy.spec.resource_selectors.iter().any(may) {
        return false;
    }
    // Selection depends on no more of a template.
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "namespace": key.namespace, "name": key.name, "labels": metadata.labels },
    });
    policy.selects(&object)
}
