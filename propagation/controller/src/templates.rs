//! The templates, which are objects of the kinds that policies select, bindings are of and claims are on, and who interprets
//! them.

mod kinds;
mod priorities;
mod wakes;

use std::sync::{Arc, Weak};

use interpreters::Interpreters;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names;
use karmada_runtime::dynamic::{DynamicWatches, WatchState};
use karmada_runtime::program::Program;
use karmada_runtime::untyped::Untyped;
use kube::{Client, Resource};
use objects::write::ObjectRef;
use objects::{GroupVersionKind, Key, Metadata, metadata};
use parking_lot::Mutex;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim;
use propagation_rules::rights::GroupResource;
use serde_json::{Value, json};

use self::kinds::{kinds_of, selected};
use crate::index::{Index, Policy, TemplateKey, template_of};
use crate::queues::Queues;

/// The watches of the templates, of the kinds that the index names.
pub(crate) struct Templates {
    watches: DynamicWatches,
    pub(crate) interpreters: Interpreters,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queues: Queues,
}

/// A kind whose objects we may not list.
pub(crate) struct ForbiddenKind {
    pub(crate) kind: GroupVersionKind,
    pub(crate) resource: GroupResource,
}

impl Templates {
    /// Watches the templates.
    pub(crate) fn watch(
        program: &mut Program,
        client: &Client,
        index: &Arc<Mutex<Index>>,
        queues: &Queues,
    ) -> Arc<Self> {
        let interpreters = Interpreters::of_program(program, client);
        let templates = Arc::new_cyclic(|templates: &Weak<Self>| {
            // Their owner observes the events of the watches.
            let templates = Weak::clone(templates);
            let (watches, watching) =
                DynamicWatches::new(client.clone(), selected, move |kind, event| {
                    if let Some(templates) = templates.upgrade() {
                        templates.observe(kind, event);
                    }
                });
            program.run_until_stopped("templates", watching);
            Self {
                watches,
                interpreters,
                index: Arc::clone(index),
                queues: queues.clone(),
            }
        });
        templates.want(&index.lock());
        templates
    }

    /// Returns the keys of all templates.
    pub(crate) fn keys(&self) -> Vec<TemplateKey> {
        self.keys_where(&self.index.lock(), |_, _, _| true)
    }

    /// Returns the keys of the templates that meet the condition.
    fn keys_where(
        &self,
        index: &Index,
        is_met: impl Fn(&GroupVersionKind, &Key, &Untyped) -> bool,
    ) -> Vec<TemplateKey> {
        let mut keys = Vec::new();
        for kind in index.kinds() {
            self.watches.each(kind, |key, object| {
                if is_met(kind, key, object) {
                    keys.push(TemplateKey::new(kind, key));
                }
            });
        }
        keys
    }

    /// Returns the keys of the templates that one of these policies selects or claims.
    pub(crate) fn of_policies(&self, index: &Index, policies: &[Key]) -> Vec<TemplateKey> {
        let policies = policies.iter().filter_map(|key| index.policy(key));
        let policies: Vec<_> = policies.collect();
        let policies: Vec<_> = policies.iter().map(Policy::candidate).collect();
        self.of_candidates(index, &policies)
    }

    fn of_candidates(&self, index: &Index, policies: &[Candidate<'_>]) -> Vec<TemplateKey> {
        if policies.is_empty() {
            return Vec::new();
        }
        self.keys_where(index, |kind, key, object| {
            let metadata = object.meta();
            policies.iter().any(|policy| {
                let id = policy.id();
                (id.is_some() && metadata.label(policy.id_label()) == id)
                    || may_select(policy, kind, key, metadata)
            })
        })
    }

    /// Returns the keys of the templates of the same kind and namespace.
    pub(crate) fn beside(&self, of: &TemplateKey) -> Vec<TemplateKey> {
        let mut keys = Vec::new();
        self.watches.each(&of.kind, |key, _| {
            if key.namespace == of.key.namespace {
                keys.push(TemplateKey::new(&of.kind, key));
            }
        });
        keys
    }

    /// Returns a template's newest version, with its kind, which the elements of a list lack, and with the fields that the
    /// API has allocated to it.
    pub(crate) fn get(&self, TemplateKey { kind, key }: &TemplateKey) -> Option<Value> {
        let template = self.watches.get(kind, key)?;
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
            resource: self.watches.served(&of.kind)?.resource,
            key: of.key.clone(),
            uid: Some(template.uid().to_owned()),
            version: Some(template.resource_version().to_owned()),
            generation: None,
        })
    }

    /// Returns the template of a binding, unless nobody that can be asked interprets its kind. A template that is gone
    /// takes its binding along; one that was made anew gets another.
    pub(crate) fn bound(&self, binding: BindingRef<'_>) -> Option<Value> {
        let key = template_of(binding.spec);
        let is_known = self.index.lock().is_interpretation_known();
        if !is_known || self.interpreters.refusal(&key.kind).is_some() {
            return None;
        }
        let uid = binding.spec.resource.uid.as_deref();
        let template = self.get(&key)?;
        uid.is_none_or(|uid| uid == template.uid())
            .then_some(template)
    }

    /// Returns `true` if all templates of a kind are known: one that is not among them is gone.
    pub(crate) fn is_listed(&self, kind: &GroupVersionKind) -> bool {
        match self.watches.state(kind) {
            WatchState::Complete | WatchState::NotServed => true,
            WatchState::Off | WatchState::Listing | WatchState::Forbidden | WatchState::Failing => {
                false
            }
        }
    }

    /// Returns `true` if some template, or the binding of one, may still have the claim of `policy`.
    pub(crate) fn is_claimed_by(&self, policy: &Candidate<'_>) -> bool {
        let selected = kinds_of(Some(policy));
        if !selected.iter().all(|kind| self.shows_claims(kind)) {
            return true;
        }
        let index = self.index.lock();
        let claimed = self.keys_where(&index, |_, _, object| {
            claim::is_claimed_by(object.meta(), policy)
        });
        // The claim on the binding of a template that is gone goes with the binding.
        let mut bindings = index.bindings();
        !claimed.is_empty()
            || bindings.any(|binding| {
                claim::is_claimed_by(binding.metadata, policy)
                    && self.may_exist(&template_of(binding.spec))
            })
    }

    /// Returns `true` if every claim on a template of the kind is known that can be taken off.
    fn shows_claims(&self, kind: &GroupVersionKind) -> bool {
        match self.watches.state(kind) {
            // A claim that cannot be seen cannot be taken off either. It goes once the kind may be listed.
            WatchState::Complete | WatchState::NotServed | WatchState::Forbidden => true,
            WatchState::Off | WatchState::Listing | WatchState::Failing => false,
        }
    }

    fn may_exist(&self, TemplateKey { kind, key }: &TemplateKey) -> bool {
        self.watches.get(kind, key).is_some() || self.watches.state(kind) == WatchState::Forbidden
    }

    /// Returns the kinds that `policy` selects and whose objects we may not list.
    pub(crate) fn forbidden_kinds(&self, policy: &Candidate<'_>) -> Vec<ForbiddenKind> {
        let selected = kinds_of(Some(policy)).into_iter();
        let forbidden = selected.filter_map(|kind| {
            let is_forbidden = self.watches.state(&kind) == WatchState::Forbidden;
            let served = self.watches.served(&kind).filter(|_| is_forbidden)?;
            let resource = GroupResource {
                group: served.resource.group,
                resource: served.resource.plural,
            };
            // A kind that is never propagated needs no rights.
            let resource = resource.to_string().parse().ok()?;
            Some(ForbiddenKind { kind, resource })
        });
        forbidden.collect()
    }

    /// Returns the kinds that `policy` selects and the API does not serve, once it has answered for each.
    pub(crate) fn unserved_kinds(&self, policy: &Candidate<'_>) -> Option<Vec<GroupVersionKind>> {
        let mut unserved = Vec::new();
        for kind in kinds_of(Some(policy)) {
            if self.watches.state(&kind) == WatchState::NotServed {
                unserved.push(kind);
            } else if self.watches.served(&kind).is_none() {
                return None;
            }
        }
        Some(unserved)
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
    let mut selectors = policy.spec.resource_selectors.iter();
    let is_named = selectors.any(|selector| {
        let name = selector.name.as_deref().unwrap_or_default();
        selector.kind == kind.kind && (name.is_empty() || name == key.name)
    });
    // A namespace may have thousands of each: most pairs are told apart without a copy.
    if is_elsewhere || !is_named {
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
