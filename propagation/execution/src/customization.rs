//! The scripts and webhooks that interpret kinds, and the Works that a change of them wakes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apply::Synced;
use interpreters::Interpreters;
use karmada_rules::execution::Interpreted;
use karmada_rules::propagation::customization::{self, Customized};
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches};
use karmada_runtime::program::Program;
use kube::Client;
use kube::runtime::watcher::Config;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::Value;

use crate::index::SharedIndex;

/// The scripts and webhooks of all customizations.
#[derive(Debug)]
pub(crate) struct SharedCustomizations {
    pub(crate) interpreters: Arc<Interpreters>,
    customizations: Mutex<Customizations>,
    pub(crate) index: Arc<SharedIndex>,
}

#[derive(Debug, Default)]
struct Customizations {
    objects: BTreeMap<(GroupVersionKind, Key), Value>,
    /// Their kinds that have been listed, or that the API does not serve.
    listed: BTreeSet<GroupVersionKind>,
}

impl Customizations {
    fn are_known(&self) -> bool {
        self.listed.len() == customization::kinds().len()
    }
}

impl SharedCustomizations {
    /// Watches the customizations.
    pub(crate) fn watch(
        program: &mut Program,
        client: &Client,
        index: &Arc<SharedIndex>,
    ) -> Arc<Self> {
        let shared = Arc::new(Self {
            interpreters: Arc::new(Interpreters::of_program(program, client)),
            customizations: Mutex::default(),
            index: Arc::clone(index),
        });
        let observing = Arc::clone(&shared);
        let observe = move |kind: &GroupVersionKind, event| observing.observe(kind, event);
        let (watches, watching) =
            DynamicWatches::new(client.clone(), |_| Config::default(), observe);
        watches.want(customization::kinds().into());
        program.run_until_stopped("customizations", watching);
        shared
    }

    /// Returns `true` once it is known which kinds scripts and webhooks interpret: before, nothing is.
    pub(crate) fn are_known(&self) -> bool {
        self.customizations.lock().are_known()
    }

    /// Returns what scripts and webhooks say of the objects of a sync.
    pub(crate) async fn interpret(&self, synced: &[Synced]) -> Vec<Interpreted> {
        let mut interpreted = Vec::new();
        for one in synced {
            interpreted.push(match one.object.seen() {
                Some(object) => self.interpret_one(object).await,
                None => Interpreted::default(),
            });
        }
        interpreted
    }

    async fn interpret_one(&self, object: &Value) -> Interpreted {
        let status = self.interpreters.reflect(object).await;
        let is_healthy = self.interpreters.is_healthy(object).await;
        Interpreted {
            status: status.map(|status| status.map_err(|failure| failure.to_string())),
            is_healthy: is_healthy.map(|health| health.map_err(|failure| failure.to_string())),
        }
    }

    /// Notes what the customizations say, and wakes the Works with objects of the kinds that they interpret otherwise
    /// than before.
    fn observe(&self, kind: &GroupVersionKind, event: DynamicEvent) {
        let mut customizations = self.customizations.lock();
        let were_known = customizations.are_known();
        match event {
            DynamicEvent::Changed(transitions) => {
                for Transition { key, new, .. } in transitions {
                    let (objects, id) = (&mut customizations.objects, (kind.clone(), key));
                    match new {
                        Some(object) => objects.insert(id, object.value()),
                        None => objects.remove(&id),
                    };
                }
            }
            DynamicEvent::Listed | DynamicEvent::NotServed => {
                customizations.listed.insert(kind.clone());
            }
            DynamicEvent::Unkept(..) | DynamicEvent::Forbidden => {}
        }
        let mut customized = Customized::default();
        let objects = customizations.objects.values();
        objects.for_each(|object| customized.add(object));
        // They are known once they are asked, and no earlier.
        let changes = self.interpreters.replace(customized);
        let are_news = customizations.are_known() && !were_known;
        drop(customizations);
        if are_news || !changes.is_empty() {
            let concern = |kind: &GroupVersionKind| are_news || changes.concern(kind);
            self.index.wake_where(|kinds| kinds.iter().any(concern));
        }
    }
}
