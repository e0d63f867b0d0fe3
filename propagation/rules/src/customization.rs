//! The users' rules for the interpretation of kinds: scripts and webhooks, by operation.
//!
//! An [`Interpreter`] answers an `operation`: a `script`, or a `webhook`. `results` reads the answers of either.

mod changes;
mod fields;
mod operation;
pub mod results;
mod script;
pub mod webhook;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use objects::{GroupVersionKind, Metadata};
use serde_json::Value;

pub use changes::Changes;
pub use operation::Operation;
pub use script::Script;

use self::fields::text;
use self::webhook::Webhook;

/// The group and version of the objects that customize interpretation.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The kind of the objects that have scripts.
pub const SCRIPTS: &str = "ResourceInterpreterCustomization";
/// The kind of the objects that have webhooks.
pub const WEBHOOKS: &str = "ResourceInterpreterWebhookConfiguration";

/// Returns both kinds.
pub fn kinds() -> [GroupVersionKind; 2] {
    [SCRIPTS, WEBHOOKS].map(|kind| GroupVersionKind::new(API_VERSION, kind))
}

/// Who interprets which kinds besides the rules here.
///
/// For each operation by itself, a script comes first, then a webhook, then the rules of other projects' kinds,
/// then the rules of Kubernetes' own ([`interpret`](super::interpret)). The first has the last word: where it fails,
/// no other is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customized {
    /// The webhooks, by name.
    webhooks: BTreeMap<String, Arc<Webhook>>,
    /// The scripts of each operation, by the names of their customizations.
    scripts: BTreeMap<(GroupVersionKind, Operation), BTreeMap<String, Arc<Script>>>,
}

/// Who has the last word about an operation of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// A script.
    Script(Arc<Script>),
    /// A webhook.
    Webhook(Arc<Webhook>),
}

impl Interpreter {
    /// Returns a number that is the same if it answers as another does.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Script(script) => script.source.hash(&mut hasher),
            Self::Webhook(webhook) => webhook.hash(&mut hasher),
        }
        hasher.finish()
    }
}

impl<'a> FromIterator<&'a Value> for Customized {
    fn from_iter<I: IntoIterator<Item = &'a Value>>(objects: I) -> Self {
        let mut customized = Self::default();
        objects
            .into_iter()
            .for_each(|object| customized.add(object));
        customized
    }
}

impl Customized {
    /// Adds the scripts of one customization, or the webhooks of one configuration.
    pub fn add(&mut self, object: &Value) {
        for webhook in Webhook::all_of(object) {
            let webhook = Arc::new(webhook);
            self.webhooks.entry(webhook.name.clone()).or_insert(webhook);
        }
        let Some(target) = object.pointer("/spec/target") else {
            return;
        };
        let kind = GroupVersionKind::new(text(target, "apiVersion"), text(target, "kind"));
        for operation in Operation::ALL {
            let pointer = format!("/spec/customizations/{}/luaScript", operation.field());
            let source = object.pointer(&pointer).and_then(Value::as_str);
            if let Some(source) = source.filter(|source| !source.is_empty()) {
                let script = Script {
                    customization: object.name().to_owned(),
                    version: format!("{}/{}", object.uid(), object.resource_version()),
                    operation,
                    source: source.into(),
                };
                let of_kind = self.scripts.entry((kind.clone(), operation)).or_default();
                of_kind.insert(object.name().to_owned(), Arc::new(script));
            }
        }
    }

    /// Returns who decides an operation of a kind: of several customizations, the script of the first by name; of
    /// several webhooks, the first by name.
    pub fn interpreter(
        &self,
        kind: &GroupVersionKind,
        operation: Operation,
    ) -> Option<Interpreter> {
        if let Some(script) = self.scripts_of(kind, operation).next() {
            return Some(Interpreter::Script(Arc::clone(script)));
        }
        let mut webhooks = self.webhooks.values();
        let webhook = webhooks.find(|webhook| webhook.answers(kind, operation))?;
        Some(Interpreter::Webhook(Arc::clone(webhook)))
    }

    /// Returns the scripts of all customizations for an operation of a kind, by their names. Their answers are put
    /// together where an operation lists something.
    pub fn scripts_of(
        &self,
        kind: &GroupVersionKind,
        operation: Operation,
    ) -> impl Iterator<Item = &Arc<Script>> {
        let scripts = self.scripts.get(&(kind.clone(), operation));
        scripts.into_iter().flat_map(BTreeMap::values)
    }

    /// Returns every script.
    pub fn scripts(&self) -> impl Iterator<Item = (&GroupVersionKind, &Arc<Script>)> {
        let all = self.scripts.iter();
        all.flat_map(|((kind, _), scripts)| scripts.values().map(move |script| (kind, script)))
    }

    /// Returns every webhook.
    pub fn webhooks(&self) -> impl Iterator<Item = &Arc<Webhook>> {
        self.webhooks.values()
    }

    /// Returns the kinds that are interpreted otherwise than in `other`. A customization that is the same but for its
    /// version is no other.
    pub fn changes(&self, other: &Self) -> Changes {
        let keys = self.scripts.keys().chain(other.scripts.keys());
        let changed = keys.filter(|key| !self.sources(key).eq(other.sources(key)));
        let scripted = changed.map(|(kind, _)| kind.clone()).collect();
        let webhooks = self
            .webhooks_beside(other)
            .chain(other.webhooks_beside(self));
        Changes::new(scripted, webhooks.collect())
    }

    /// Iterates over the scripts for an operation of a kind, with their names.
    fn sources(&self, key: &(GroupVersionKind, Operation)) -> impl Iterator<Item = (&str, &str)> {
        let scripts = self.scripts.get(key).into_iter().flatten();
        scripts.map(|(name, script)| (&**name, &*script.source))
    }

    /// Iterates over the webhooks that `other` has not, or has otherwise.
    fn webhooks_beside(&self, other: &Self) -> impl Iterator<Item = Arc<Webhook>> {
        let webhooks = self.webhooks.iter();
        let webhooks = webhooks.filter(move |(name, own)| other.webhooks.get(*name) != Some(*own));
        webhooks.map(|(_, webhook)| Arc::clone(webhook))
    }

    /// Returns why scripts of a customization are not asked: another has one for the same operation of the kind.
    pub fn conflicts(&self, customization: &str) -> Vec<String> {
        let united = Operation::InterpretDependency;
        let contested = self
            .scripts
            .iter()
            .filter(|((_, of), scripts)| *of != united && scripts.contains_key(customization));
        let conflicts = contested.filter_map(|((_, operation), scripts)| {
            let (first, _) = scripts.first_key_value()?;
            (first != customization).then(|| {
                format!("conflicting with InterpreterOperation({operation}) of existing {SCRIPTS}({first})")
            })
        });
        conflicts.collect()
    }
}

#[cfg(test)]
mod tests;
