//! The keys by which policies and bindings are found.

use std::collections::BTreeSet;

use karmada_api::{ClusterPropagationPolicy, PropagationPolicy, ResourceSelector, names};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::dependencies;

use super::stored::{TemplateKey, template_of};

/// Returns the templates that a policy names, whatever else it asks of them; without a name for all of its namespace.
pub(super) fn selected(policy: &PropagationPolicy) -> BTreeSet<TemplateKey> {
    let namespace = policy.metadata.namespace.as_deref();
    named(
        namespace.unwrap_or_default(),
        &policy.spec.resource_selectors,
    )
}

/// Returns the templates that a policy names in every namespace.
pub(super) fn selected_everywhere(policy: &ClusterPropagationPolicy) -> BTreeSet<TemplateKey> {
    named("", &policy.spec.resource_selectors)
}

fn named(namespace: &str, selectors: &[ResourceSelector]) -> BTreeSet<TemplateKey> {
    let named = selectors.iter().map(|selector| TemplateKey {
        kind: GroupVersionKind::new(&selector.api_version, &selector.kind),
        key: Key::new(namespace, selector.name.clone().unwrap_or_default()),
    });
    named.collect()
}

/// Returns a template, of this namespace, as selectors name it: by its name, and with all others.
pub(super) fn as_named(template: &TemplateKey, namespace: &str) -> [TemplateKey; 2] {
    let names = [&*template.key.name, ""];
    names.map(|name| TemplateKey::new(&template.kind, &Key::new(namespace, name)))
}

/// A key by which a binding is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    /// Its template, in whichever version, if it is not named as Karmada names it. Such are few: whoever looks for another looks
    /// under its name, and at its template.
    Renamed(TemplateKey),
    /// An object that follows it, without a name where labels select among those of a namespace.
    Listed(TemplateKey),
    /// A binding that requires it.
    RequiredBy(Key),
}

impl Link {
    /// Returns the link of the bindings of a template that have other names.
    pub(super) fn renamed(template: &TemplateKey) -> Self {
        let mut in_any_version = template.clone();
        in_any_version.kind.version = String::new();
        Self::Renamed(in_any_version)
    }

    /// Returns the links of the bindings that list a template, or select among those of its namespace.
    pub(super) fn listed(template: &TemplateKey) -> [Self; 2] {
        let any = Key::new(&template.key.namespace, "");
        let any = TemplateKey::new(&template.kind, &any);
        [template.clone(), any].map(Self::Listed)
    }
}

/// Returns the keys by which a binding is found.
pub(super) fn links(binding: BindingRef<'_>) -> BTreeSet<Link> {
    let template = template_of(binding.spec);
    let is_renamed = karmadas_key(&template) != binding.key();
    let renamed = is_renamed.then(|| Link::renamed(&template));
    let listed = listed(binding).into_iter().map(Link::Listed);
    let referrers = referrer_keys(binding).into_iter();
    let links = renamed.into_iter().chain(listed);
    links.chain(referrers.map(Link::RequiredBy)).collect()
}

/// Returns the key of a template's binding by Karmada's rule.
pub(super) fn karmadas_key(template: &TemplateKey) -> Key {
    let TemplateKey { kind, key } = template;
    Key::new(&key.namespace, names::binding(&kind.kind, &key.name))
}

/// Returns `true` if the binding's dependencies follow it, or may have done so.
pub(crate) fn is_referring(binding: BindingRef<'_>) -> bool {
    let is_followed = binding.spec.propagate_deps == Some(true);
    is_followed || (binding.metadata).has_finalizer(names::DEPENDENCIES_FINALIZER)
}

/// Returns the kinds of a binding's template, and of the dependencies that follow it.
pub(crate) fn kinds_of_binding(binding: BindingRef<'_>) -> Vec<GroupVersionKind> {
    let templates = [template_of(binding.spec)].into_iter();
    let templates = templates.chain(listed(binding));
    templates.map(|template| template.kind).collect()
}

/// Returns the keys of the bindings that require one.
pub(super) fn referrer_keys(binding: BindingRef<'_>) -> BTreeSet<Key> {
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
