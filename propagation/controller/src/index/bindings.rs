//! The bindings, by their templates, and by the dependencies that follow them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::ResourceBinding;
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::binding;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::claim::{self, Claim};

use super::Index;
use super::links::{Link, is_referring, karmadas_key, referrer_keys};
use super::stored::{StoredBinding, TemplateKey, template_of};

impl Index {
    /// Iterates over the bindings.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = BindingRef<'_>> {
        let own = self.bindings.iter();
        let own = own.map(|(_, binding)| BindingRef::from(&**binding));
        let cluster = self.cluster_bindings.iter();
        own.chain(cluster.map(|(_, binding)| BindingRef::from(&**binding)))
    }

    /// Returns the keys of the bindings that meet the condition.
    pub(crate) fn bindings_where(&self, is_met: impl Fn(&BindingRef<'_>) -> bool) -> Vec<Key> {
        let bindings = self.bindings().filter(is_met);
        bindings.map(|binding| binding.key()).collect()
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
        let renamed = Link::renamed(template);
        let keys = [karmadas_key(template)].into_iter();
        let keys = keys.chain(self.linked(&renamed).cloned());
        let TemplateKey { kind, key } = template;
        let mut bindings = keys.filter_map(|key| self.binding(&key));
        bindings.find(|binding| binding.view().is_of(&kind.group, &kind.kind, key))
    }

    /// Returns the key of the binding that a template is to get.
    pub(crate) fn new_binding_key(&self, template: &TemplateKey) -> Option<Key> {
        let TemplateKey { kind, key } = template;
        binding::new_key(&kind.group, &kind.kind, key, |key| {
            self.binding(key).is_none()
        })
    }

    /// Returns the keys of the bindings of this kind that are being deleted.
    pub(crate) fn deleted_bindings(&self, kind: &GroupVersionKind) -> Vec<Key> {
        self.bindings_where(|binding| {
            binding.metadata.is_deleting() && template_of(binding.spec).kind == *kind
        })
    }

    /// Returns the keys of the bindings that `policy` has.
    pub(super) fn bindings_of(&self, policy: &Candidate<'_>) -> Vec<Key> {
        self.bindings_where(|binding| claim::is_claimed_by(binding.metadata, policy))
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

    /// Returns the keys of the bindings that require those of templates of a kind.
    pub(crate) fn referrers_of_kind(&self, kind: &GroupVersionKind) -> Vec<Key> {
        let bindings = self.bindings();
        let of_kind = bindings.filter(|binding| template_of(binding.spec).kind == *kind);
        of_kind.flat_map(referrer_keys).collect()
    }

    /// Returns the keys of the bindings that list the object, or select among those of its namespace.
    pub(crate) fn depending_on(&self, template: &TemplateKey) -> Vec<Key> {
        let listed = Link::listed(template);
        let bindings = listed.iter().flat_map(|link| self.linked(link));
        bindings.cloned().collect()
    }

    /// Returns the keys of the bindings, with dependencies that follow them, that an edit of a binding concerns: itself,
    /// those that require it, and those that list its template.
    pub(crate) fn dependents(&self, versions: [Option<BindingRef<'_>>; 2]) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for binding in versions.into_iter().flatten() {
            keys.extend(is_referring(binding).then(|| binding.key()));
            keys.extend(referrer_keys(binding));
            keys.extend(self.depending_on(&template_of(binding.spec)));
        }
        keys
    }

    /// Returns the keys of the bindings that the binding `referrer` requires.
    pub(crate) fn required_by(&self, referrer: &Key) -> Vec<Key> {
        let link = Link::RequiredBy(referrer.clone());
        self.linked(&link).cloned().collect()
    }

    /// Returns a binding, and if its new version may pause them otherwise, by itself or by the policy that has it, those that
    /// it requires.
    pub(crate) fn paused_with(&self, key: &Key, versions: [Option<BindingRef<'_>>; 2]) -> Vec<Key> {
        let [was, is] = versions.map(|binding| {
            let BindingRef { metadata, spec, .. } = binding?;
            Some((spec.suspension.as_ref(), Claim::of(metadata)))
        });
        let mut keys = vec![key.clone()];
        if was != is {
            keys.extend(self.required_by(key));
        }
        keys
    }

    fn linked<'a>(&'a self, link: &'a Link) -> impl Iterator<Item = &'a Key> {
        let own = self.bindings.keys_of(link);
        own.chain(self.cluster_bindings.keys_of(link))
    }
}
