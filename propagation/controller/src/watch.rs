//! The changes that wake templates, policies and bindings.

mod kinds;
mod priorities;
mod templates;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock, Weak};

use interpreters::Interpreters;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{
    ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding, ObjectReference,
    OverridePolicy, OverrideSpec, PropagationPolicy, ResourceBinding,
};
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::DynamicWatches;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::write::{ObjectRef, Write};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;
use serde::de::DeserializeOwned;

use self::kinds::{has_priority, kinds_of, selected};
pub(crate) use self::templates::ForbiddenKind;
use crate::index::{
    Index, Policy, StoredBinding, TemplateKey, is_referring, listed_kinds, referrer_keys,
    template_of,
};

/// The queues of the loops, which share no worker. The key of a policy or a binding without a namespace
/// is that of the cluster-scoped kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    pub(crate) templates: Queue<TemplateKey>,
    pub(crate) policies: Queue<Key>,
    pub(crate) bindings: Queue<Key>,
    /// The bindings whose dependencies follow them.
    pub(crate) dependencies: Queue<Key>,
    pub(crate) namespaces: Queue<Key>,
    /// The customizations, which are told what is wrong with them.
    pub(crate) customizations: Queue<TemplateKey>,
}

/// The index behind a lock, the templates, and the queues of those that their changes wake.
pub(crate) struct SharedIndex {
    pub(crate) templates: DynamicWatches,
    pub(crate) interpreters: Interpreters,
    index: Mutex<Index>,
    queues: Queues,
}

impl SharedIndex {
    /// Creates an empty index, and the future that watches the templates of the kinds it names.
    pub(crate) fn new(
        client: &Client,
        interpreters: Interpreters,
        queues: Queues,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        // What the watches show is observed by what holds them.
        let observer = Arc::new(OnceLock::<Weak<Self>>::new());
        let observing = Arc::clone(&observer);
        let (templates, watching) =
            DynamicWatches::new(client.clone(), selected, move |kind, event| {
                if let Some(shared) = observing.get().and_then(Weak::upgrade) {
                    shared.observe_templates(kind, event);
                }
            });
        let shared = Arc::new(Self {
            templates,
            interpreters,
            index: Mutex::default(),
            queues,
        });
        observer.get_or_init(|| Arc::downgrade(&shared));
        shared.want();
        (shared, watching)
    }

    /// Creates the index and watches every kind that decides about templates and bindings.
    pub(crate) fn watch(program: &mut Program, client: &Client, queues: Queues) -> Arc<Self> {
        let interpreters = Interpreters::of_program(program, client);
        let (shared, watching) = Self::new(client, interpreters, queues);
        program.run_until_stopped("templates", watching);
        let mut to = Watching {
            program,
            client,
            shared: &shared,
        };
        to.start("policies", Self::observe_policy);
        to.start("clusterpolicies", Self::observe_cluster_policy);
        to.start("overrides", Self::observe_override);
        to.start("clusteroverrides", Self::observe_cluster_override);
        to.start("bindings", Self::observe_binding);
        to.start("clusterbindings", Self::observe_cluster_binding);
        let index = Arc::clone(&shared);
        program.report_undecoded(move || index.read(Index::undecoded));
        shared
    }

    /// Reads from the index.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.lock())
    }

    /// Wakes a binding whose status depends on a policy.
    pub(crate) fn wake_binding(&self, key: Key) {
        self.queues.bindings.add(key);
    }

    /// Applies an event of a policy, wakes the policy, and the templates whose policy it may be or have
    /// been.
    pub(crate) fn observe_policy(&self, event: Event<Decoded<PropagationPolicy>>) {
        let transitions = self.index.lock().policies.observe(event);
        self.policies_changed(transitions, Policy::Namespaced);
    }

    /// Applies an event of a policy as [`Self::observe_policy`] does.
    pub(crate) fn observe_cluster_policy(&self, event: Event<Decoded<ClusterPropagationPolicy>>) {
        let transitions = self.index.lock().cluster_policies.observe(event);
        self.policies_changed(transitions, Policy::Cluster);
    }

    fn policies_changed<K>(&self, changes: Vec<Transition<K>>, policy: fn(Arc<K>) -> Policy) {
        for Transition { key, old, new } in changes {
            let (old, new) = (old.map(policy), new.map(policy));
            let is_suspension = old.as_ref().and_then(Policy::suspension)
                != new.as_ref().and_then(Policy::suspension);
            let old = old.as_ref().map(Policy::candidate);
            let new = new.as_ref().map(Policy::candidate);
            let (before, now) = (kinds_of(old.as_ref()), kinds_of(new.as_ref()));
            let are_others = {
                let mut index = self.index.lock();
                index.replace_candidate(&key, new.as_ref());
                index.replace_kinds(before, now)
            };
            let [was, is] = [&old, &new].map(|policy| policy.as_ref().is_some_and(has_priority));
            if are_others || was != is {
                self.want();
            }
            self.queues.policies.add(key);
            let is_same = matches!((&old, &new), (Some(old), Some(new)) if decides_alike(old, new));
            if !is_same {
                let concerned: Vec<_> = [old, new].into_iter().flatten().collect();
                self.wake_templates_of(&concerned);
                // Their Works heed it before the bindings have it.
                if is_suspension {
                    let bindings = self.read(|index| {
                        let concerned = concerned.iter();
                        let bindings = concerned.flat_map(|policy| index.bindings_of(policy));
                        bindings.collect::<Vec<_>>()
                    });
                    for binding in &bindings {
                        self.wake_required_by(binding);
                    }
                    self.queues.dependencies.add_all(bindings.iter().cloned());
                    self.queues.bindings.add_all(bindings);
                }
            }
        }
    }

    /// Applies an event of an override policy, and wakes the policies that wait for it.
    pub(crate) fn observe_override(&self, event: Event<Decoded<OverridePolicy>>) {
        let transitions = self.index.lock().overrides.observe(event);
        self.overrides_changed(&transitions);
        for change in &transitions {
            let specs = [&change.old, &change.new].map(|policy| policy.as_ref().map(|p| &p.spec));
            self.wake_overridden(&change.key.namespace, specs);
        }
    }

    /// Applies an event of an override policy as [`Self::observe_override`] does.
    pub(crate) fn observe_cluster_override(&self, event: Event<Decoded<ClusterOverridePolicy>>) {
        let transitions = self.index.lock().cluster_overrides.observe(event);
        self.overrides_changed(&transitions);
        for change in &transitions {
            let specs = [&change.old, &change.new].map(|policy| policy.as_ref().map(|p| &p.spec));
            if self.wake_overridden("", specs) {
                // The key of all.
                self.queues.namespaces.add(Key::default());
            }
        }
    }

    /// Wakes the bindings of templates that an override policy selects or selected. A policy without a
    /// namespace is one for all. Returns `true` unless it is the same for every template.
    fn wake_overridden(&self, namespace: &str, specs: [Option<&OverrideSpec>; 2]) -> bool {
        if let [Some(old), Some(new)] = specs
            && old == new
        {
            return false;
        }
        let concerned = self.read(|index| {
            index.bindings_where(|spec| {
                let resource = &spec.resource;
                let of = resource.namespace.as_deref().unwrap_or_default();
                (namespace.is_empty() || namespace == of)
                    && specs
                        .into_iter()
                        .flatten()
                        .any(|policy| may_select(policy, resource))
            })
        });
        self.queues.bindings.add_all(concerned);
        true
    }

    fn overrides_changed<K>(&self, changes: &[Transition<K>]) {
        let appeared = |change: &&Transition<K>| change.old.is_none() != change.new.is_none();
        for Transition { key, .. } in changes.iter().filter(appeared) {
            let policies = self.read(|index| {
                let keys = index.policy_keys().into_iter();
                let keys = keys.filter(|policy| policy.namespace == key.namespace);
                let policies = keys.filter_map(|key| Some((index.policy(&key)?, key)));
                policies.collect::<Vec<_>>()
            });
            for (policy, of) in policies {
                let policy = policy.candidate();
                if policy.spec.dependent_overrides.contains(&key.name) {
                    self.queues.policies.add(of);
                    self.wake_templates_of(&[policy]);
                }
            }
        }
    }

    /// Applies an event of a binding, and wakes its template and itself.
    pub(crate) fn observe_binding(&self, event: Event<Decoded<ResourceBinding>>) {
        let transitions = self.index.lock().bindings.observe(event);
        self.bindings_changed(transitions, StoredBinding::Namespaced);
    }

    /// Applies an event of a binding as [`Self::observe_binding`] does.
    pub(crate) fn observe_cluster_binding(&self, event: Event<Decoded<ClusterResourceBinding>>) {
        let transitions = self.index.lock().cluster_bindings.observe(event);
        self.bindings_changed(transitions, StoredBinding::Cluster);
    }

    /// Takes in what was written to a binding, as an event that shows it.
    pub(crate) fn binding_written(&self, write: &Write, stored: &ObjectRef) {
        if stored.key.namespace.is_empty() {
            let change = self.index.lock().cluster_bindings.written(write, stored);
            self.bindings_changed(change.into_iter().collect(), StoredBinding::Cluster);
        } else {
            let change = self.index.lock().bindings.written(write, stored);
            self.bindings_changed(change.into_iter().collect(), StoredBinding::Namespaced);
        }
    }

    /// Wakes the bindings that the binding `key` requires, which are suspended with it.
    fn wake_required_by(&self, key: &Key) {
        let required = self.read(|index| index.dependencies.required_by(key));
        self.queues.bindings.add_all(required);
    }

    /// Wakes the bindings whose dependencies follow them and that a change of a binding concerns: itself,
    /// those that require it, and those that list its template.
    fn wake_dependencies(&self, key: &Key, versions: [Option<&StoredBinding>; 2]) {
        let versions = versions.into_iter().flatten().map(StoredBinding::view);
        let mut woken = BTreeSet::new();
        for binding in versions {
            if is_referring(binding) {
                woken.insert(key.clone());
            }
            woken.extend(referrer_keys(binding));
            let template = template_of(binding.spec);
            woken.extend(self.read(|index| index.dependencies.depending_on(&template)));
        }
        self.queues.dependencies.add_all(woken);
    }

    fn bindings_changed<K>(
        &self,
        changes: Vec<Transition<K>>,
        binding: fn(Arc<K>) -> StoredBinding,
    ) {
        for Transition { key, old, new } in changes {
            let (old, new) = (old.map(binding), new.map(binding));
            let forms = [old.as_ref(), new.as_ref()];
            let [before, now] =
                forms.map(|binding| binding.map(kinds_of_binding).unwrap_or_default());
            let are_others = {
                let mut index = self.index.lock();
                index.dependencies.replace(&key, new.as_ref());
                index.renamed.replace(&key, new.as_ref());
                index.replace_kinds(before, now)
            };
            if are_others {
                self.want();
            }
            let [was, is] = forms.map(|binding| binding?.view().spec.suspension.as_ref());
            if was != is {
                self.wake_required_by(&key);
            }
            self.queues.bindings.add(key.clone());
            // What happens in the clusters is of no concern to the template.
            let is_status = matches!((&old, &new), (Some(old), Some(new)) if is_same_but_status(old.metadata(), new.metadata()));
            if !is_status {
                self.wake_dependencies(&key, forms);
                let bindings = forms.into_iter().flatten();
                let templates = bindings.map(|binding| template_of(binding.view().spec));
                self.queues.templates.add_all(templates);
                let [was, is] = forms.map(|binding| Claim::of(binding?.metadata()));
                wake_former(&self.queues, was, is.as_ref());
            }
        }
    }
}

impl Debug for SharedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedIndex").finish_non_exhaustive()
    }
}

/// Returns `true` if an override policy may select the object. Its labels decide, too: the binding's own loop
/// looks at them.
fn may_select(policy: &OverrideSpec, resource: &ObjectReference) -> bool {
    let mut selectors = policy.resource_selectors.iter();
    policy.resource_selectors.is_empty()
        || selectors.any(|selector| {
            let name = selector.name.as_deref().unwrap_or_default();
            selector.kind == resource.kind && (name.is_empty() || name == resource.name)
        })
}

/// Returns the kinds of a binding's template, and of what follows it.
fn kinds_of_binding(binding: &StoredBinding) -> Vec<GroupVersionKind> {
    let binding = binding.view();
    let of_template = template_of(binding.spec).kind;
    let kinds = [of_template].into_iter().chain(listed_kinds(binding));
    kinds.collect()
}

/// Wakes the policy of a claim that is gone: it may be waiting for that to be deleted.
fn wake_former(queues: &Queues, old: Option<Claim>, new: Option<&Claim>) {
    if let Some(former) = old.filter(|old| Some(old) != new) {
        queues.policies.add(former.policy());
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

struct Watching<'a> {
    program: &'a mut Program,
    client: &'a Client,
    shared: &'a Arc<SharedIndex>,
}

impl Watching<'_> {
    fn start<K>(&mut self, name: &'static str, observe: fn(&SharedIndex, Event<Decoded<K>>))
    where
        K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let api = Api::all(self.client.clone());
        let all = Config::default();
        self.program
            .watch(name, api, all, move |event| observe(&shared, event));
    }
}
