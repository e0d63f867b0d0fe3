//! The bindings that depend on others, and those that are attached to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::{ResourceBinding, names};
use karmada_rules::binding_ref::BindingRef;
use karmada_rules::propagation::dependencies;
use objects::reverse_index::ReverseIndex;
use objects::{GroupVersionKind, Key};

use super::{Index, StoredBinding, TemplateKey};

/// The references between bindings.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    /// The objects that bindings list, without a name where labels select among those of a namespace.
    listed: ReverseIndex<Key, TemplateKey>,
    /// The bindings that other bindings are required by.
    referrers: ReverseIndex<Key, Key>,
}

impl Index {
    /// Replaces the references of a binding by those of its new version, or removes them.
    pub(crate) fn replace_dependencies(&mut self, key: &Key, binding: Option<&StoredBinding>) {
        let listed = binding.map(|binding| listed(binding.view()));
        let referrers = binding.map(|binding| referrer_keys(binding.view()));
        let Dependencies {
            listed: lists,
            referrers: required,
        } = &mut self.dependencies;
        lists.replace(key, listed.unwrap_or_default());
        required.replace(key, referrers.unwrap_or_default());
    }

    /// Returns the keys of the bindings that list the object, or select among those of its namespace.
    pub(crate) fn depending_on(&self, template: &TemplateKey) -> Vec<Key> {
        let any = Key::new(&template.key.namespace, "");
        let any = TemplateKey::new(&template.kind, &any);
        let listed = &self.dependencies.listed;
        let bindings = listed.sources(template).chain(listed.sources(&any));
        bindings.cloned().collect()
    }

    /// Returns the keys of the bindings that the binding `referrer` requires.
    pub(crate) fn required_by(&self, referrer: &Key) -> Vec<Key> {
        let bindings = self.dependencies.referrers.sources(referrer);
        bindings.cloned().collect()
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
}

/// Returns `true` if the binding's dependencies follow it, or may have done so.
pub(crate) fn is_referring(binding: BindingRef<'_>) -> bool {
    let mut finalizers = binding.metadata.finalizers.iter().flatten();
    binding.spec.propagate_deps == Some(true)
        || finalizers.any(|finalizer| finalizer == names::DEPENDENCIES_FINALIZER)
}

/// Returns the kinds of the objects that follow a binding.
pub(crate) fn listed_kinds(binding: BindingRef<'_>) -> impl Iterator<Item = GroupVersionKind> {
    listed(binding).into_iter().map(|listed| listed.kind)
}

/// Returns the keys of the bindings that require one.
pub(crate) fn referrer_keys(binding: BindingRef<'_>) -> BTreeSet<Key> {
    let snapshots = binding.spec.required_by.iter().flatten();
    let keys = snapshots.filter_map(|by| Some(Key::new(by.namespace.clone()?, by.name.clone()?)));
    keys.collect()
}

/// Returns the objects that follow a binding, as it lists them.
fn listed(binding: BindingRef<'_>) -> BTreeSet<TemplateKey> {
    if !dependencies::follow(binding) {
        return BTreeSet::new();
    }
    let listed = dependencies::listed(binding.metadata).into_iter();
    listed.map(|object| TemplateKey::from(&object)).collect()
}
