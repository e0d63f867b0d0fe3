//! The scripts that interpret kinds, and the Works that a change of them wakes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apply::Synced;
use karmada_rules::execution::Scripted;
use karmada_rules::propagation::customization::{API_VERSION, Customized, SCRIPTS};
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches};
use karmada_runtime::program::Program;
use kube::Client;
use kube::runtime::watcher::Config;
use lua::Interpreters;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::Value;

use crate::index::SharedIndex;

/// The scripts of all customizations.
#[derive(Debug)]
pub(crate) struct SharedScripts {
    pub(crate) interpreters: Arc<Interpreters>,
    customizations: Mutex<Customizations>,
    pub(crate) index: Arc<SharedIndex>,
}

#[derive(Debug, Default)]
struct Customizations {
    objects: BTreeMap<Key, Value>,
    /// True once all have been listed, or the API has no such kind.
    are_known: bool,
}

impl SharedScripts {
    /// Watches the customizations.
    pub(crate) fn watch(
        program: &mut Program,
        client: &Client,
        index: &Arc<SharedIndex>,
    ) -> Arc<Self> {
        let shared = Arc::new(Self {
            interpreters: Arc::default(),
            customizations: Mutex::default(),
            index: Arc::clone(index),
        });
        let observing = Arc::clone(&shared);
        let observe = move |_: &GroupVersionKind, event| observing.observe(event);
        let (watches, watching) =
            DynamicWatches::new(client.clone(), |_| Config::default(), observe);
        let kind = GroupVersionKind::new(API_VERSION, SCRIPTS);
        watches.want(BTreeSet::from([kind]));
        program.run_until_stopped("customizations", watching);
        let runs = shared.interpreters.runs();
        let help = "Runs of the scripts that interpret kinds, by operation and outcome";
        program.registry.register("script_runs", help, runs);
        shared
    }

    /// Returns `true` once it is known which kinds scripts interpret: before, nothing is.
    pub(crate) fn are_known(&self) -> bool {
        self.customizations.lock().are_known
    }

    /// Returns what scripts say of the objects of a sync.
    pub(crate) async fn interpret(&self, synced: &[Synced]) -> Vec<Scripted> {
        let mut scripted = Vec::new();
        for one in synced {
            scripted.push(match one.object.seen() {
                Some(object) => self.interpret_one(object).await,
                None => Scripted::default(),
            });
        }
        scripted
    }

    async fn interpret_one(&self, object: &Value) -> Scripted {
        let status = self.interpreters.reflect(object).await;
        let is_healthy = self.interpreters.is_healthy(object).await;
        Scripted {
            status: status.map(|status| status.map_err(|failure| failure.to_string())),
            is_healthy: is_healthy.map(|health| health.map_err(|failure| failure.to_string())),
        }
    }

    /// Notes what the customizations say, and wakes the Works with objects of the kinds that they interpret otherwise
    /// than before.
    fn observe(&self, event: DynamicEvent) {
        let mut customizations = self.customizations.lock();
        let mut are_news = false;
        match event {
            DynamicEvent::Changed(transitions) => {
                for Transition { key, new, .. } in transitions {
                    let objects = &mut customizations.objects;
                    match new {
                        Some(object) => objects.insert(key, object.value()),
                        None => objects.remove(&key),
                    };
                }
            }
            DynamicEvent::Listed | DynamicEvent::NotServed => {
                are_news = !customizations.are_known;
                customizations.are_known = true;
            }
            DynamicEvent::Unkept(..) | DynamicEvent::Forbidden => {}
        }
        let mut customized = Customized::default();
        let objects = customizations.objects.values();
        objects.for_each(|object| customized.add(object));
        // They are known once they are asked, and no earlier.
        let changed = self.interpreters.replace(customized);
        drop(customizations);
        if are_news || !changed.is_empty() {
            let is_concerned = |kinds: &BTreeSet<_>| are_news || !kinds.is_disjoint(&changed);
            self.index.wake_where(is_concerned);
        }
    }
}
