//! The scripts and webhooks that interpret kinds, and the Works that a change of them wakes.

use std::sync::Arc;

use apply::Synced;
use interpreters::{Customizations, Interpreters};
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches};
use karmada_runtime::program::Program;
use kube::Client;
use kube::runtime::watcher::Config;
use objects::GroupVersionKind;
use parking_lot::Mutex;
use propagation_rules::customization;
use propagation_rules::execution::Interpreted;
use serde_json::Value;

use crate::index::Works;

/// The scripts and webhooks of all customizations.
#[derive(Debug)]
pub(crate) struct SharedCustomizations {
    pub(crate) interpreters: Arc<Interpreters>,
    customizations: Mutex<Customizations>,
    pub(crate) works: Arc<Works>,
}

impl SharedCustomizations {
    /// Watches the customizations.
    pub(crate) fn watch(program: &mut Program, client: &Client, works: &Arc<Works>) -> Arc<Self> {
        let shared = Arc::new(Self {
            interpreters: Arc::new(Interpreters::of_program(program, client)),
            customizations: Mutex::default(),
            works: Arc::clone(works),
        });
        let observing = Arc::clone(&shared);
        let (watches, watching) = DynamicWatches::new(
            client.clone(),
            |_| Config::default(),
            move |kind, event| observing.observe(kind, event),
        );
        watches.want(customization::kinds().into());
        program.run_until_stopped("customizations", watching);
        shared
    }

    /// Returns `true` once it is known which kinds scripts and webhooks interpret: before, nothing is.
    pub(crate) fn are_known(&self) -> bool {
        self.customizations.lock().are_known()
    }

    /// Returns the answers of scripts and webhooks about the objects of a sync.
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

    /// Notes a change of the customizations, and wakes the Works with objects of the kinds that they interpret otherwise
    /// than before.
    fn observe(&self, kind: &GroupVersionKind, event: DynamicEvent) {
        // They are known once they are asked, and no earlier.
        let changes = {
            let mut customizations = self.customizations.lock();
            customizations.observe(kind, event, &self.interpreters)
        };
        if !changes.is_empty() {
            self.works
                .wake_where(|kinds| kinds.iter().any(|kind| changes.concern(kind)));
        }
    }
}
