//! The writes to the parts of ingresses, with growing pauses where another client undoes each of them, and an Event where
//! the API refuses them.

use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use karmada_runtime::contention::{Attempt, Contention};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{Refusals, WriteError};
use objects::Key;
use serde_json::{Value, json};
use tokio::time::Instant;
use traffic::ingress::http_route::RouteReport;

use crate::events::IngressEvents;
use crate::ingresses::{Ingresses, Part, WriteOutcome};

/// A part of one ingress.
pub(crate) type PartOf = (Key, Part);

/// Writes to the parts of ingresses. Clones share who undoes and what refuses them.
#[derive(Clone)]
pub(crate) struct BackoffWriter {
    pub(crate) ingresses: Ingresses,
    pub(crate) events: Arc<IngressEvents>,
    pub(crate) contention: Arc<Contention<PartOf>>,
    pub(crate) refusals: Arc<Refusals<PartOf>>,
}

impl BackoffWriter {
    /// Writes `value` to a part of `ingress`. During a pause, returns `None` and adds the ingress to
    /// `queue` at its end.
    pub(crate) async fn write(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        value: Value,
        queue: &Queue<Key>,
    ) -> Result<Option<WriteOutcome>, WriteError> {
        let Some(attempt) = self.begin(ingress, part, &value, queue).await else {
            return Ok(None);
        };
        let (key, ingresses) = (Key::of(ingress), &self.ingresses);
        let version = ingress.metadata.resource_version.as_deref();
        let result = match part {
            Part::Finalizers | Part::Release => {
                ingresses.write_finalizers(&key, version, &value).await
            }
            Part::Status => ingresses.write_status(&key, "status", None, value).await,
            Part::LoadBalancer => {
                let target = "load_balancer";
                ingresses.write_status(&key, target, None, value).await
            }
        };
        let outcome = self.told(ingress, part, result)?;
        self.end(attempt, &outcome);
        Ok(Some(outcome))
    }

    /// Makes our entries in the status of the `HTTPRoute` that is read as `ingress` say what `report` says. During a pause,
    /// returns `None` and adds it to `queue` at its end.
    pub(crate) async fn report(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        report: &RouteReport,
        queue: &Queue<Key>,
    ) -> Result<Option<WriteOutcome>, WriteError> {
        let Some(attempt) = self.begin(ingress, part, &json!(report), queue).await else {
            return Ok(None);
        };
        let (key, target) = (Key::of(ingress), "route_parents");
        let write = self.ingresses.write_report(&key, target, None, report);
        let outcome = self.told(ingress, part, write.await)?;
        self.end(attempt, &outcome);
        Ok(Some(outcome))
    }

    /// Records that a write to a part of `ingress` was refused, if that is news, and returns its result.
    pub(crate) fn told(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        result: Result<WriteOutcome, WriteError>,
    ) -> Result<WriteOutcome, WriteError> {
        if let Some(reason) = self.refusals.note((Key::of(ingress), part), &result) {
            self.events.refused(ingress, part, &reason);
        }
        result
    }

    /// Begins a write of `value` to a part of `ingress`. During a pause, returns `None` and adds the
    /// ingress to `queue` at its end.
    pub(crate) async fn begin(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        value: &Value,
        queue: &Queue<Key>,
    ) -> Option<Attempt<PartOf>> {
        let key = Key::of(ingress);
        let seen = ingress.metadata.resource_version.as_deref();
        let begun = (self.contention).begin((key.clone(), part), value, seen, Instant::now());
        match begun {
            Ok(attempt) => Some(attempt),
            Err(backoff) => {
                if backoff.is_news {
                    let manager = self.ingresses.last_other_writer(&key, part).await;
                    self.events.contested(ingress, part, manager.as_deref());
                }
                queue.add_at(key, backoff.until);
                None
            }
        }
    }

    /// Records the outcome of a write that has begun.
    pub(crate) fn end(&self, attempt: Attempt<PartOf>, outcome: &WriteOutcome) {
        if let WriteOutcome::Stored { version } = outcome {
            self.contention
                .stored(attempt, version.clone(), Instant::now());
        }
    }

    /// Forgets these parts of the ingress `key`.
    pub(crate) fn forget(&self, key: &Key, parts: &[Part]) {
        for part in parts {
            self.contention.forget(&(key.clone(), *part));
            self.refusals.forget(&(key.clone(), *part));
        }
    }
}
