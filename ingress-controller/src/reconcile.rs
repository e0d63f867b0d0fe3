//! Brings the finalizer and the status of one `MultiClusterIngress` up to date.

use std::sync::Arc;

use karmada_api::{Key, MultiClusterIngress};
use karmada_rules::ingress::{Decision, FieldPlan, Serve, Settings};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use tokio::time::Instant;

use crate::events::IngressEvents;
use crate::ingresses::{Ingresses, WriteOutcome};
use crate::rivals::{Reaction, Rivals};
use crate::turns::{Turn, Turns};
use crate::watch::SharedIndex;

/// The fields of a status that no other controller writes.
const STATUS_FIELDS: [&str; 2] = ["serviceLocations", "trafficBlockClusters"];

/// Reconciles the status of ingresses. The release of those that are not ours begins in the load
/// balancer and is done by [`crate::gateway`].
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) settings: Settings,
    pub(crate) ingresses: Ingresses,
    pub(crate) events: Arc<IngressEvents>,
    pub(crate) turns: Turns,
    pub(crate) rivals: Arc<Rivals>,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.keys()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(_turn) = self.turns.take(key, Turn::Status, &self.queue) else {
            return Ok(());
        };
        if let (Some(ingress), Decision::Serve(serve)) = self.index.decide(key, &self.settings) {
            return self.serve(key, &ingress, &serve).await;
        }
        self.rivals.forget(key);
        Ok(())
    }
}

impl Reconciler {
    async fn serve(
        &self,
        key: &Key,
        ingress: &MultiClusterIngress,
        serve: &Serve,
    ) -> Result<(), BoxError> {
        if let FieldPlan::Write(finalizers) = &serve.finalizers {
            let version = ingress.metadata.resource_version.as_deref();
            let outcome = self
                .ingresses
                .write_finalizers(key, version, finalizers)
                .await?;
            if outcome == WriteOutcome::Gone {
                return Ok(());
            }
        }
        if let FieldPlan::Write(patch) = &serve.status {
            let patch = serde_json::to_value(patch)?;
            let seen = ingress.metadata.resource_version.as_deref();
            let undone = match self.rivals.react(key, &patch, seen, Instant::now()) {
                Reaction::Write { undone } => undone,
                Reaction::Wait { is_news } => {
                    if is_news {
                        let manager = self.ingresses.rival(key, &STATUS_FIELDS).await;
                        self.events.contested(ingress, manager.as_deref());
                    }
                    return Ok(());
                }
            };
            let outcome = self
                .ingresses
                .write_status(key, "status", patch.clone())
                .await?;
            if let WriteOutcome::Stored { version } = outcome {
                let now = Instant::now();
                self.rivals.written(key, patch, version, undone, now);
                self.events.traffic_changed(ingress, &serve.change);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
