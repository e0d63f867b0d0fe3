//! What the users of a Karmada say about the interpretation of kinds: scripts, by operation, and webhooks.

mod operation;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use objects::{GroupVersionKind, Metadata};
use serde_json::Value;

pub use operation::Operation;
pub use script::Script;

/// The group and version of the objects that customize interpretation.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The kind of the objects that have scripts.
pub const SCRIPTS: &str = "ResourceInterpreterCustomization";
/// The kinds of those objects.
pub const KINDS: [&str; 2] = [SCRIPTS, "ResourceInterpreterWebhookConfiguration"];

/// Who interprets which kinds besides what is known of them here.
///
/// For each operation by itself, a script comes first, then a webhook, then what is known of other projects' kinds,
/// then the rules of Kubernetes' own ([`interpret`](super::interpret)). The first has the last word: where it fails,
/// no other is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customized {
    /// The kinds that webhooks interpret, as patterns.
    webhooks: BTreeSet<[String; 3]>,
    /// The scripts of each operation, by the names of their customizations.
    scripts: BTreeMap<(GroupVersionKind, Operation), BTreeMap<String, Arc<Script>>>,
}

impl Customized {
    /// Adds the scripts of one customization, or the kinds of one webhook configuration.
    pub fn add(&mut self, object: &Value) {
        let webhooks = list(object, "webhooks");
        for rule in webhooks.flat_map(|webhook| list(webhook, "rules")) {
            for group in texts(rule, "apiGroups") {
                for version in texts(rule, "apiVersions") {
                    for kind in texts(rule, "kinds") {
                        let pattern = [group, version, kind].map(str::to_owned);
                        self.webhooks.insert(pattern);
                    }
                }
            }
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

    /// Returns `true` if a webhook interprets the kind.
    pub fn has_webhook(&self, kind: &GroupVersionKind) -> bool {
        let of_kind = [&kind.group, &kind.version, &kind.kind];
        self.webhooks.iter().any(|patterns| {
            let mut pairs = patterns.iter().zip(of_kind);
            pairs.all(|(pattern, text)| pattern == "*" || pattern == text)
        })
    }

    /// Returns the script that decides an operation of a kind: of several customizations, that of the first by name.
    pub fn script(&self, kind: &GroupVersionKind, operation: Operation) -> Option<&Arc<Script>> {
        self.scripts_of(kind, operation).next()
    }

    /// Returns the scripts of all customizations for an operation of a kind, by their names. What they find is put
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

    /// Returns the kinds that scripts interpret otherwise than in `other`. A customization that is the same but for
    /// its version is no other.
    pub fn changed_scripts(&self, other: &Self) -> BTreeSet<GroupVersionKind> {
        let keys = self.scripts.keys().chain(other.scripts.keys());
        let changed = keys.filter(|key| {
            let sources = |of: &Self| -> Vec<(String, Arc<str>)> {
                let scripts = of.scripts.get(key).into_iter().flatten();
                scripts
                    .map(|(name, script)| (name.clone(), Arc::clone(&script.source)))
                    .collect()
            };
            sources(self) != sources(other)
        });
        changed.map(|(kind, _)| kind.clone()).collect()
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

    /// Returns `true` if webhooks interpret the same kinds as in `other`.
    pub fn has_same_webhooks(&self, other: &Self) -> bool {
        self.webhooks == other.webhooks
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    list(object, field).filter_map(Value::as_str)
}

fn list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests;
