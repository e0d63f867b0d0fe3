//! The bindings that depend on others, and those that are attached to them.

use std::collections::BTreeSet;

use karmada_api::names;
use objects::reverse_index::ReverseIndex;
use objects::{GroupVersionKind, Key};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::dependencies;

use super::stored::{StoredBinding, TemplateKey};

/// The references between bindings.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// The objects that bindings list, without a name where labels select among those of a namespace.
    listed: ReverseIndex<Key, TemplateKey>,
    /// The bindings that other bindings are required by.
    referrers: ReverseIndex<Key, Key>,
}

impl Dependencies {
    /// Replaces the references of a binding by those of its new version, or removes them.
    pub(crate) fn replace(&mut self, key: &Key, binding: Option<&StoredBinding>) {
        let objects = binding.map(|binding| listed(binding.view()));
        let referrers = binding.map(|binding| referrer_keys(binding.view()));
        self.listed.replace(key, objects.unwrap_or_default());
        self.referrers.replace(key, referrers.unwrap_or_default());
    }

    /// Returns the keys of the bindings that list the object, or select among those of its namespace.
    pub(crate) fn depending_on(&self, template: &TemplateKey) -> Vec<Key> {
        let any = Key::new(&template.key.namespace, "");
        let any = TemplateKey::new(&template.kind, &any);
        let bindings = self.listed.sources(template);
        let bindings = bindings.chain(self.listed.sources(&any));
        bindings.cloned().collect()
    }

    /// Returns the keys of the bindings that the binding `referrer` requires.
    pub(crate) fn required_by(&self, referrer: &Key) -> Vec<Key> {
        let bindings = self.referrers.sources(referrer);
        bindings.cloned().collect()
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
