//! The objects by which users customize the interpretation of kinds, as the watches of a program show them.

use std::collections::{BTreeMap, BTreeSet};

use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::DynamicEvent;
use objects::{GroupVersionKind, Key};
use propagation_rules::customization::{self, Changes};
use serde_json::Value;

use crate::Interpreters;

/// The customizations of a fleet, and the configurations of webhooks.
#[derive(Debug, Default)]
pub struct Customizations {
    objects: BTreeMap<(GroupVersionKind, Key), Value>,
    /// Their kinds that have been listed, or that the API does not serve.
    listed: BTreeSet<GroupVersionKind>,
}

impl Customizations {
    /// Returns `true` once all are known. Before, nobody may be taken for whoever decides.
    pub fn are_known(&self) -> bool {
        self.listed.len() == customization::kinds().len()
    }

    /// Returns the object `key` of a kind.
    pub fn get(&self, kind: &GroupVersionKind, key: &Key) -> Option<&Value> {
        self.objects.get(&(kind.clone(), key.clone()))
    }

    /// Returns the kinds and keys of all.
    pub fn keys(&self) -> impl Iterator<Item = (&GroupVersionKind, &Key)> {
        self.objects.keys().map(|(kind, key)| (kind, key))
    }

    /// Takes in an event of the watch of `kind`, and has `interpreters` ask whom it names. Returns the kinds that are
    /// interpreted otherwise than before, which are all once everything is known.
    pub fn observe(
        &mut self,
        kind: &GroupVersionKind,
        event: DynamicEvent,
        interpreters: &Interpreters,
    ) -> Changes {
        let were_known = self.are_known();
        match event {
            DynamicEvent::Changed(transitions) => {
                for Transition { key, new, .. } in transitions {
                    let id = (kind.clone(), key);
                    match new {
                        Some(object) => self.objects.insert(id, object.value()),
                        None => self.objects.remove(&id),
                    };
                }
            }
            DynamicEvent::Listed | DynamicEvent::NotServed => {
                self.listed.insert(kind.clone());
            }
            DynamicEvent::Unkept(..) | DynamicEvent::Forbidden | DynamicEvent::Failing => {}
        }
        let changes = interpreters.replace(self.objects.values().collect());
        if self.are_known() && !were_known {
            Changes::everything()
        } else {
            changes
        }
    }
}
