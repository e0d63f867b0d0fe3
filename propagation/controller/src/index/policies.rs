//! The policies, by the templates that they select; and the override policies.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::{ClusterOverridePolicy, OverridePolicy, OverrideSpec};
use karmada_runtime::cache::Transition;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::Claim;

use super::Index;
use super::links::as_named;
use super::stored::{Policy, TemplateKey, policy_key, suspension};

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

    /// Returns the policies that may select a template: every other selects another kind, namespace or name.
    pub(crate) fn policies_for(&self, template: &TemplateKey) -> Vec<Policy> {
        let here = as_named(template, &template.key.namespace);
        let own = here.iter().flat_map(|named| self.policies.keys_of(named));
        let anywhere = as_named(template, "");
        let cluster = anywhere.iter();
        let cluster = cluster.flat_map(|named| self.cluster_policies.keys_of(named));
        // One may do both.
        let keys: BTreeSet<_> = own.chain(cluster).collect();
        keys.into_iter()
            .filter_map(|key| self.policy(key))
            .collect()
    }

    /// Returns the keys of the policies that meet the condition.
    pub(crate) fn policies_where(&self, is_met: impl Fn(&Candidate<'_>) -> bool) -> Vec<Key> {
        let own = self.policies.iter();
        let own = own.map(|(_, policy)| Candidate::from(&**policy));
        let cluster = self.cluster_policies.iter();
        let cluster = cluster.map(|(_, policy)| Candidate::from(&**policy));
        let policies = own.chain(cluster).filter(is_met);
        policies.map(|policy| policy_key(&policy)).collect()
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

    /// Returns the bindings that a policy has or had, if its new version pauses them otherwise.
    pub(crate) fn paused_otherwise(&self, versions: [Option<Candidate<'_>>; 2]) -> Vec<Key> {
        let [was, is] = versions.map(|policy| suspension(&policy?));
        if was == is {
            return Vec::new();
        }
        let policies = versions.into_iter().flatten();
        let bindings = policies.flat_map(|policy| self.bindings_of(&policy));
        bindings.collect()
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

    /// Returns the bindings of templates of a namespace, or of all, that an override policy may select. Their labels decide,
    /// too: the binding's own loop looks at them.
    pub(crate) fn may_be_overridden(&self, namespace: &str, policy: &OverrideSpec) -> Vec<Key> {
        self.bindings_where(|binding| {
            let resource = &binding.spec.resource;
            let of = resource.namespace.as_deref().unwrap_or_default();
            let mut selectors = policy.resource_selectors.iter();
            let is_selected = policy.resource_selectors.is_empty()
                || selectors.any(|selector| {
                    let name = selector.name.as_deref().unwrap_or_default();
                    selector.kind == resource.kind && (name.is_empty() || name == resource.name)
                });
            (namespace.is_empty() || namespace == of) && is_selected
        })
    }

    /// Returns the policies that wait for an override policy which appears, or for one which leaves.
    pub(crate) fn waiting_for<K>(&self, change: &Transition<K>) -> Vec<Key> {
        let Transition { key, old, new } = change;
        if old.is_some() == new.is_some() {
            return Vec::new();
        }
        self.policies_where(|policy| {
            policy.namespace().unwrap_or_default() == key.namespace
                && policy.spec.dependent_overrides.contains(&key.name)
        })
    }
}
