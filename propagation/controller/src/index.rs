//! The watched objects, looked up by the objects that refer to them.

mod bindings;
mod links;
mod owner;
mod policies;
mod stored;
mod works;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use interpreters::Customizations;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::{
    ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding, ClusterView,
    OverridePolicy, PropagationPolicy, ResourceBinding,
};
use karmada_runtime::store::Store;
use objects::GroupVersionKind;
use propagation_rules::template::priority;
use propagation_rules::works::keep_facts;
use serde_json::Value;

pub(crate) use self::links::{Link, is_referring, kinds_of_binding};
use self::links::{links, selected, selected_everywhere};
pub(crate) use self::owner::{Owner, StoredWork};
pub(crate) use self::stored::{Policy, StoredBinding, TemplateKey, policy_key, template_of};
pub(crate) use self::works::Urgency;

/// The objects of the Karmada API as the watches last showed them, besides the templates.
#[derive(Debug)]
pub(crate) struct Index {
    /// By the templates that they select, without a name where they select among those of a namespace.
    pub(crate) policies: Store<PropagationPolicy, TemplateKey>,
    /// By the templates that they select, without a namespace, and without a name where they select among all.
    pub(crate) cluster_policies: Store<ClusterPropagationPolicy, TemplateKey>,
    pub(crate) overrides: Store<OverridePolicy>,
    pub(crate) cluster_overrides: Store<ClusterOverridePolicy>,
    pub(crate) bindings: Store<ResourceBinding, Link>,
    pub(crate) cluster_bindings: Store<ClusterResourceBinding, Link>,
    pub(crate) works: Store<StoredWork, Owner>,
    pub(crate) clusters: Store<ClusterView>,
    pub(crate) namespaces: Store<Namespace>,
    /// The kinds in the versions that bindings are to follow of which nobody says otherwise. They stay until the end.
    pub(crate) preferred: BTreeSet<GroupVersionKind>,
    /// Those of the kinds that the API does not serve.
    pub(crate) not_served: BTreeSet<GroupVersionKind>,
    pub(crate) customizations: Customizations,
    /// The kinds that policies select and bindings are of or list, with the number of those that name them.
    kinds: BTreeMap<GroupVersionKind, usize>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            policies: Store::by(selected),
            cluster_policies: Store::by(selected_everywhere),
            overrides: Store::default(),
            cluster_overrides: Store::default(),
            bindings: Store::by(|binding: &ResourceBinding| links(binding.into())),
            cluster_bindings: Store::by(|binding: &ClusterResourceBinding| links(binding.into())),
            works: Store::by(Owner::of),
            clusters: Store::default().keeping(keep_facts),
            namespaces: Store::default(),
            preferred: BTreeSet::new(),
            not_served: BTreeSet::new(),
            customizations: Customizations::default(),
            kinds: BTreeMap::new(),
        }
    }
}

impl Index {
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
}
