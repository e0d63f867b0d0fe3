//! The bindings that have not Karmada's name, by their templates.

use karmada_api::names;
use objects::Key;
use objects::reverse_index::ReverseIndex;

use super::stored::{StoredBinding, TemplateKey, template_of};

/// The bindings that are not named as Karmada names them. They are few: whoever looks for another looks under its
/// name, and at what it is of.
#[derive(Debug, Default)]
pub(crate) struct Renamed(ReverseIndex<Key, TemplateKey>);

impl Renamed {
    /// Returns the key of a template's binding by Karmada's rule.
    pub(super) fn karmadas(template: &TemplateKey) -> Key {
        let TemplateKey { kind, key } = template;
        Key::new(&key.namespace, names::binding(&kind.kind, &key.name))
    }

    /// Replaces the template of a binding by that of its new version, or removes it.
    pub(crate) fn replace(&mut self, key: &Key, binding: Option<&StoredBinding>) {
        let template = binding.map(|binding| template_of(binding.view().spec));
        let renamed = template.filter(|template| Self::karmadas(template) != *key);
        let renamed = renamed.map(in_any_version);
        self.0.replace(key, renamed.into_iter().collect());
    }

    /// Returns the keys of those of a template.
    pub(super) fn of(&self, template: &TemplateKey) -> impl Iterator<Item = &Key> {
        self.0.sources(&in_any_version(template.clone()))
    }
}

/// Returns the key of an object in whichever version it is read.
fn in_any_version(mut template: TemplateKey) -> TemplateKey {
    template.kind.version = String::new();
    template
}
