//! Brings the finalizer and the status of one `MultiClusterIngress` up to date.

use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteError;
use objects::Key;
use serde_json::json;
use tokio::time::Instant;
use traffic::ingress::{BlockChange, Decision, FieldPlan, Serve, Settings};

use crate::backoff_writer::BackoffWriter;
use crate::events::IngressEvents;
use crate::ingresses::{Part, WriteOutcome};
use crate::turns::{Turn, Turns};
use crate::watch::SharedIndex;

/// Reconciles the status of ingresses. The release of those that are not ours begins in the load
/// balancer and is done by [`crate::gateway`].
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) settings: Settings,
    pub(crate) parts: BackoffWriter,
    pub(crate) events: Arc<IngressEvents>,
    pub(crate) turns: Turns,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.enforcement.clear(None);
        self.index.keys()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(_turn) = self.turns.take(key, Turn::Status, &self.queue) else {
            return Ok(());
        };
        // Before the decision, which may miss what arrives from now on.
        let arrived = self.index.enforcement.take(None, key);
        if let (Some(ingress), Decision::Serve(serve)) = self.index.decide(key, &self.settings) {
            let served = self.serve(&ingress, &serve, arrived).await;
            if let Err(error) = &served {
                self.index.enforcement.restore(None, key, arrived);
                if error.refusal().is_some() {
                    self.events.traffic_changed_unshown(&ingress, &serve.change);
                }
            }
            return served.map_err(Into::into);
        }
        self.parts.forget(key, &[Part::Finalizers, Part::Status]);
        Ok(())
    }
}

impl Reconciler {
    /// Writes what differs, after a change of admissions that had `arrived`.
    async fn serve(
        &self,
        ingress: &MultiClusterIngress,
        serve: &Serve,
        arrived: Option<Instant>,
    ) -> Result<(), WriteError> {
        if let FieldPlan::Write(finalizers) = &serve.finalizers {
            let (part, finalizers) = (Part::Finalizers, json!(finalizers));
            let write = self.parts.write(ingress, part, finalizers, &self.queue);
            if write.await? == Some(WriteOutcome::Gone) {
                return Ok(());
            }
        }
        let FieldPlan::Write(patch) = &serve.status else {
            self.events.traffic_changed(ingress, &serve.change);
            return Ok(());
        };
        let (part, patch) = (Part::Status, json!(patch));
        let write = self.parts.write(ingress, part, patch, &self.queue);
        let enforcement = &self.index.enforcement;
        match write.await? {
            Some(WriteOutcome::Stored { .. }) => {
                if serve.change != BlockChange::default() {
                    enforcement.shown(arrived);
                }
                self.events.traffic_changed(ingress, &serve.change);
            }
            Some(WriteOutcome::Gone) => {}
            None => enforcement.restore(None, &Key::of(ingress), arrived),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
