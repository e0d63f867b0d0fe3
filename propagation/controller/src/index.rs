//! The watched objects, looked up by what refers to them.

mod bound;
mod candidates;
mod dependencies;
mod stored;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interpreters::Customizations;
use karmada_api::{
    ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding, OverridePolicy,
    PropagationPolicy, ResourceBinding, ResourceBindingSpec,
};
use karmada_runtime::cache::{Cache, Undecoded};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::binding;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;
use propagation_rules::template::priority;
use serde_json::Value;

use self::bound::Renamed;
use self::candidates::Candidates;
use self::dependencies::Dependencies;
pub(crate) use self::dependencies::{is_referring, listed_kinds, referrer_keys};
pub(crate) use self::stored::{Policy, StoredBinding, TemplateKey, policy_key, template_of};

/// The objects of the Karmada API as the watches last showed them, besides the templates.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) policies: Cache<PropagationPolicy>,
    pub(crate) cluster_policies: Cache<ClusterPropagationPolicy>,
    pub(crate) overrides: Cache<OverridePolicy>,
    pub(crate) cluster_overrides: Cache<ClusterOverridePolicy>,
    pub(crate) bindings: Cache<ResourceBinding>,
    pub(crate) cluster_bindings: Cache<ClusterResourceBinding>,
    /// The kinds in the versions that bindings are to follow of which nobody says otherwise. They stay until the end.
    pub(crate) preferred: BTreeSet<GroupVersionKind>,
    /// Those of the kinds that the API does not serve.
    pub(crate) not_served: BTreeSet<GroupVersionKind>,
    pub(crate) customizations: Customizations,
    candidates: Candidates,
    pub(crate) renamed: Renamed,
    pub(crate) dependencies: Dependencies,
    /// The kinds that policies select and bindings are of or list, with the number of those that name them.
    kinds: BTreeMap<GroupVersionKind, usize>,
}

impl Index {
    /// Returns the policy `key`; one without a namespace is a `ClusterPropagationPolicy`.
    pub(crate) fn policy(&self, key: &Key) -> Option<Policy> {
        if key.namespace.is_empty() {
            let policy = self.cluster_policies.get(key)?;
            Some(Policy::Cluster(Arc::clone(policy)))
        } else {
            let policy = self.policies.get(key)?;
            Some(Policy::Namespaced(Arc::clone(policy)))
        }
    }

    /// Returns the policies that may select a template.
    pub(crate) fn policies_for(&self, template: &TemplateKey) -> Vec<Policy> {
        let candidates = self.candidates.of(template).into_iter();
        candidates.filter_map(|key| self.policy(key)).collect()
    }

    /// Replaces the selectors of a policy by those of its new version, or removes them.
    pub(crate) fn replace_candidate(&mut self, key: &Key, policy: Option<&Candidate<'_>>) {
        self.candidates.replace(key, policy);
    }

    /// Returns the keys of all policies.
    pub(crate) fn policy_keys(&self) -> Vec<Key> {
        let own = self.policies.iter().map(|(key, _)| key.clone());
        let cluster = self.cluster_policies.iter().map(|(key, _)| key.clone());
        own.chain(cluster).collect()
    }

    /// Returns the keys of the policies that meet the condition.
    pub(crate) fn policies_where(&self, is_met: impl Fn(&Candidate<'_>) -> bool) -> Vec<Key> {
        let mut keys = self.policy_keys();
        keys.retain(|key| {
            let policy = self.policy(key);
            policy.is_some_and(|policy| is_met(&policy.candidate()))
        });
        keys
    }

    /// Returns `true` if the override policy of that namespace, or of none, and name exists.
    pub(crate) fn has_override(&self, namespace: Option<&str>, name: &str) -> bool {
        if let Some(namespace) = namespace {
            let key = Key::new(namespace, name);
            self.overrides.get(&key).is_some()
        } else {
            let key = Key::cluster_scoped(name);
            self.cluster_overrides.get(&key).is_some()
        }
    }

    /// Returns the binding `key`; one without a namespace is a `ClusterResourceBinding`.
    pub(crate) fn binding(&self, key: &Key) -> Option<StoredBinding> {
        if key.namespace.is_empty() {
            let binding = self.cluster_bindings.get(key)?;
            Some(StoredBinding::Cluster(Arc::clone(binding)))
        } else {
            let binding = self.bindings.get(key)?;
            Some(StoredBinding::Namespaced(Arc::clone(binding)))
        }
    }

    /// Returns the binding of a template, whatever its name.
    pub(crate) fn binding_of(&self, template: &TemplateKey) -> Option<StoredBinding> {
        let keys = [Renamed::karmadas(template)].into_iter();
        let keys = keys.chain(self.renamed.of(template).cloned());
        let TemplateKey { kind, key } = template;
        let mut bindings = keys.filter_map(|key| self.binding(&key));
        bindings.find(|binding| binding.view().is_of(&kind.group, &kind.kind, key))
    }

    /// Returns the key of the binding that a template is to get.
    pub(crate) fn new_binding_key(&self, template: &TemplateKey) -> Option<Key> {
        let TemplateKey { kind, key } = template;
        let is_free = |key: &Key| self.binding(key).is_none();
        binding::new_key(&kind.group, &kind.kind, key, is_free)
    }

    /// Returns the keys of the bindings whose spec meets the condition.
    pub(crate) fn bindings_where(&self, is_met: impl Fn(&ResourceBindingSpec) -> bool) -> Vec<Key> {
        let own = self.bindings.iter().map(|(key, b)| (key, &b.spec));
        let cluster = self.cluster_bindings.iter().map(|(key, b)| (key, &b.spec));
        own.chain(cluster)
            .filter(|(_, spec)| is_met(spec))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Returns the keys of the bindings of this kind that are being deleted.
    pub(crate) fn deleted_bindings(&self, kind: &GroupVersionKind) -> Vec<Key> {
        let own = self.bindings.iter();
        let own = own.map(|(key, b)| (key, &b.metadata, &b.spec));
        let cluster = self.cluster_bindings.iter();
        let cluster = cluster.map(|(key, b)| (key, &b.metadata, &b.spec));
        own.chain(cluster)
            .filter(|(_, metadata, _)| metadata.is_deleting())
            .filter(|(_, _, spec)| template_of(spec).kind == *kind)
            .map(|(key, _, _)| key.clone())
            .collect()
    }

    /// Returns the keys of the bindings that `policy` has.
    pub(crate) fn bindings_of(&self, policy: &Candidate<'_>) -> Vec<Key> {
        let own = self.bindings.iter().map(|(key, b)| (key, &b.metadata));
        let cluster = self.cluster_bindings.iter();
        let cluster = cluster.map(|(key, b)| (key, &b.metadata));
        own.chain(cluster)
            .filter(|(_, metadata)| Claim::of(*metadata).is_some_and(|claim| claim.is_of(policy)))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Returns `true` if the newest version of a policy cannot be read, and an earlier one is in effect.
    pub(crate) fn is_stale(&self, policy: &Key) -> bool {
        self.policies.is_stale(policy) || self.cluster_policies.is_stale(policy)
    }

    /// Returns the policy that has the binding.
    pub(crate) fn policy_of(&self, binding: BindingRef<'_>) -> Option<Policy> {
        let claim = Claim::of(binding.metadata)?;
        let policy = self.policy(&claim.policy())?;
        claim.is_of(&policy.candidate()).then_some(policy)
    }

    /// Returns the override policies that may select a template of `namespace`, which is empty for a
    /// cluster-scoped one.
    pub(crate) fn overrides_for(
        &self,
        namespace: &str,
    ) -> (Vec<Arc<ClusterOverridePolicy>>, Vec<Arc<OverridePolicy>>) {
        let cluster = self.cluster_overrides.iter();
        let own = self.overrides.iter();
        (
            cluster.map(|(_, policy)| Arc::clone(policy)).collect(),
            own.filter(|(key, _)| key.namespace == namespace)
                .map(|(_, policy)| Arc::clone(policy))
                .collect(),
        )
    }

    /// Returns the bindings that require this one, as far as they exist.
    pub(crate) fn referrers(&self, binding: BindingRef<'_>) -> BTreeMap<Key, Arc<ResourceBinding>> {
        let keys = referrer_keys(binding).into_iter();
        keys.filter_map(|key| {
            let referrer = self.bindings.get(&key).map(Arc::clone)?;
            Some((key, referrer))
        })
        .collect()
    }

    /// Returns the keys of the bindings whose dependencies follow them, or did so.
    pub(crate) fn referring(&self) -> Vec<Key> {
        let mut keys = BTreeSet::new();
        for (key, binding) in self.bindings.iter() {
            let binding = BindingRef::from(&**binding);
            if is_referring(binding) {
                keys.insert(key.clone());
            }
            keys.extend(referrer_keys(binding));
        }
        keys.into_iter().collect()
    }

    /// Returns every kind whose objects may be templates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.kinds.keys()
    }

    /// Returns the versions of a kind that policies or bindings name, and that are served, those first that Kubernetes
    /// prefers.
    pub(crate) fn versions(&self, kind: &GroupVersionKind) -> Vec<GroupVersionKind> {
        let mut versions: Vec<_> = self
            .kinds()
            .filter(|other| other.group == kind.group && other.kind == kind.kind)
            .filter(|other| !self.not_served.contains(*other))
            .cloned()
            .collect();
        versions.sort_by_cached_key(|kind| Reverse(priority(&kind.version)));
        versions
    }

    /// Replaces the kinds that one object names. Returns `true` if the set of all kinds has changed.
    pub(crate) fn replace_kinds(
        &mut self,
        old: impl IntoIterator<Item = GroupVersionKind>,
        new: impl IntoIterator<Item = GroupVersionKind>,
    ) -> bool {
        let mut changed = false;
        for kind in new {
            let count = self.kinds.entry(kind).or_default();
            *count += 1;
            changed |= *count == 1;
        }
        for kind in old {
            if let Some(count) = self.kinds.get_mut(&kind) {
                *count -= 1;
                if *count == 0 {
                    self.kinds.remove(&kind);
                    // It is looked up anew if it is named again.
                    self.not_served.remove(&kind);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Returns a customization.
    pub(crate) fn customization(&self, key: &TemplateKey) -> Option<&Value> {
        self.customizations.get(&key.kind, &key.key)
    }

    /// Returns the keys of all customizations.
    pub(crate) fn customization_keys(&self) -> Vec<TemplateKey> {
        let keys = self.customizations.keys();
        keys.map(|(kind, key)| TemplateKey::new(kind, key))
            .collect()
    }

    /// Returns `true` once every customization is known.
    pub(crate) fn is_interpretation_known(&self) -> bool {
        self.customizations.are_known()
    }

    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        vec![
            ("PropagationPolicy", self.policies.undecoded()),
            (
                "ClusterPropagationPolicy",
                self.cluster_policies.undecoded(),
            ),
            ("OverridePolicy", self.overrides.undecoded()),
            ("ClusterOverridePolicy", self.cluster_overrides.undecoded()),
            ("ResourceBinding", self.bindings.undecoded()),
            ("ClusterResourceBinding", self.cluster_bindings.undecoded()),
        ]
    }
}
