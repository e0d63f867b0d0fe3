//! Brings the finalizer and the status of one `MultiClusterIngress`, or of one `HTTPRoute` that is read as such, up to date.

use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use karmada_runtime::commit::Outcome;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteError;
use objects::Key;
use serde_json::json;
use tokio::time::Instant;
use traffic::ingress::{BlockChange, Decision, Serve, Settings};

use crate::events::{IngressEvents, Place};
use crate::ingresses::{Ingresses, Part, finalizers, status};
use crate::routes::RouteStatus;
use crate::watch::SharedIndex;

/// Reconciles the status of ingresses. The release of those that are not ours begins in the load
/// balancer and is done by [`crate::gateway`].
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) settings: Settings,
    pub(crate) ingresses: Ingresses,
    pub(crate) events: Arc<IngressEvents>,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.enforcement.clear(Place::Ingress);
        self.index.keys()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        // Before the decision, which may miss changes from now on.
        let arrived = self.index.enforcement.take(Place::Ingress, key);
        match self.index.decide(key, &self.settings) {
            (Some(ingress), Decision::Serve(serve)) => {
                let served = self.serve(&ingress, &serve, arrived).await;
                if let Err(error) = &served {
                    self.index.enforcement.restore(Place::Ingress, key, arrived);
                    if error.refusal().is_some() {
                        self.events.traffic_changed_unshown(&ingress, &serve.change);
                    }
                }
                served.map_err(Into::into)
            }
            (_, Decision::Leave) => self.leave(key).await,
            _ => {
                self.ingresses
                    .forget(key, &[Part::Finalizers, Part::Status]);
                Ok(())
            }
        }
    }
}

impl Reconciler {
    /// Writes the differences, after a change of admissions that had `arrived`.
    async fn serve(
        &self,
        ingress: &MultiClusterIngress,
        serve: &Serve,
        arrived: Option<Instant>,
    ) -> Result<(), WriteError> {
        let mut version = ingress.metadata.resource_version.clone();
        if let Some(wanted) = &serve.finalizers {
            let write = finalizers(ingress, Part::Finalizers, wanted);
            let write = self.ingresses.write(ingress, &write, &self.queue);
            match write.await? {
                Outcome::Stored(stored) => version = stored.version,
                Outcome::Gone(_) => return Ok(()),
                _ => {}
            }
        }
        let key = Key::of(ingress);
        let route = (self.index).read(|index| index.route_status(&key, Some(serve)));
        let written = match (route, &serve.status) {
            (Some(route), _) => self.report(&route).await?,
            (None, None) => Outcome::Unchanged,
            (None, Some(patch)) => {
                let mut write = status(ingress, Part::Status, &json!(patch));
                write.object.version = version;
                let write = self.ingresses.write(ingress, &write, &self.queue);
                write.await?
            }
        };
        let enforcement = &self.index.enforcement;
        if let Outcome::Contended(_) = written {
            enforcement.restore(Place::Ingress, &key, arrived);
        } else if written.is_stored() {
            if serve.change != BlockChange::default() {
                enforcement.shown(arrived);
            }
            self.events.traffic_changed(ingress, &serve.change);
        }
        Ok(())
    }

    /// Leaves an ingress as it is. An `HTTPRoute` is told why.
    async fn leave(&self, key: &Key) -> Result<(), BoxError> {
        self.ingresses.forget(key, &[Part::Finalizers]);
        match self.index.read(|index| index.route_status(key, None)) {
            Some(status) => {
                self.report(&status).await?;
            }
            None => self.ingresses.forget(key, &[Part::Status]),
        }
        Ok(())
    }

    /// Brings our entries in the status of an `HTTPRoute` up to date.
    async fn report(&self, status: &RouteStatus) -> Result<Outcome, WriteError> {
        let ingress = &status.ingress;
        self.events.refusal(ingress, status.refusal.as_ref());
        let Some(report) = &status.report else {
            return Ok(Outcome::Unchanged);
        };
        let write = (self.ingresses).write_report(ingress, Part::Status, report, &self.queue);
        write.await
    }
}

#[cfg(test)]
mod tests;
