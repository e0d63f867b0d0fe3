//! Warns of remedies that can never act, which Karmada's own definition of the kind accepts.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmada_api::Key;
use karmada_rules::remedy::{Inert, inert};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use kube::Resource;
use parking_lot::Mutex;

use crate::events::never_acts;
use crate::watch::SharedIndex;

/// Records an Event on a Remedy when a reason arises why it never acts.
pub(crate) struct InertRemedies {
    index: Arc<SharedIndex>,
    events: EventRecorder,
    /// The reasons of each Remedy that were last recorded.
    recorded: Mutex<BTreeMap<Key, Vec<Inert>>>,
}

impl InertRemedies {
    pub(crate) fn new(index: Arc<SharedIndex>, events: EventRecorder) -> Self {
        Self {
            index,
            events,
            recorded: Mutex::default(),
        }
    }

    /// Replaces the recorded reasons of the Remedy `key`, and returns those that are new.
    fn arisen(&self, key: &Key, reasons: Vec<Inert>) -> Vec<Inert> {
        let mut recorded = self.recorded.lock();
        let before = if reasons.is_empty() {
            recorded.remove(key)
        } else {
            recorded.insert(key.clone(), reasons.clone())
        };
        let before = before.unwrap_or_default();
        let new = reasons
            .into_iter()
            .filter(|reason| !before.contains(reason));
        new.collect()
    }
}

impl Controller for InertRemedies {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.remedies()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let remedy = self.index.remedy(key);
        let reasons = remedy.as_deref().map(inert).unwrap_or_default();
        let arisen = self.arisen(key, reasons);
        for (reason, remedy) in arisen.into_iter().zip(std::iter::repeat(remedy).flatten()) {
            tracing::warn!(remedy = key.name, %reason, "Remedy never acts");
            self.events
                .record(remedy.object_ref(&()), never_acts(reason));
        }
        Ok(())
    }
}
