//! The writes to the parts of ingresses, with pauses where another writer undoes each of them.

use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use objects::Key;
use serde_json::Value;
use tokio::time::Instant;

use crate::events::IngressEvents;
use crate::ingresses::{Ingresses, Part, WriteOutcome};
use karmada_runtime::rivals::{Reaction, Rivals};

/// The parts of ingresses, and who contests them. Clones share it.
#[derive(Clone)]
pub(crate) struct Contest {
    pub(crate) ingresses: Ingresses,
    pub(crate) events: Arc<IngressEvents>,
    pub(crate) rivals: Arc<Rivals<(Key, Part)>>,
}

impl Contest {
    /// Writes `value` to a part of `ingress`. During a pause, returns `None` and adds the ingress to
    /// `queue` at its end.
    pub(crate) async fn write(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        value: Value,
        queue: &Queue<Key>,
    ) -> Result<Option<WriteOutcome>, BoxError> {
        let Some(undone) = self.begin(ingress, part, &value, queue).await else {
            return Ok(None);
        };
        let (key, ingresses) = (Key::of(ingress), &self.ingresses);
        let version = ingress.metadata.resource_version.as_deref();
        let outcome = match part {
            Part::Finalizers | Part::Release => {
                ingresses.write_finalizers(&key, version, &value).await?
            }
            Part::Status => {
                ingresses
                    .write_status(&key, "status", None, value.clone())
                    .await?
            }
            Part::LoadBalancer => {
                let (target, value) = ("load_balancer", value.clone());
                ingresses.write_status(&key, target, None, value).await?
            }
        };
        self.end(&key, part, &value, &outcome, undone);
        Ok(Some(outcome))
    }

    /// Returns the number of times that our writes of `value` were undone, if it may be written now.
    pub(crate) async fn begin(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        value: &Value,
        queue: &Queue<Key>,
    ) -> Option<u32> {
        let key = Key::of(ingress);
        let seen = ingress.metadata.resource_version.as_deref();
        let place = (key.clone(), part);
        match self.rivals.react(&place, value, seen, Instant::now()) {
            Reaction::Write { undone } => Some(undone),
            Reaction::Wait { until, is_news } => {
                if is_news {
                    let manager = self.ingresses.rival(&key, part).await;
                    self.events.contested(ingress, part, manager.as_deref());
                }
                queue.add_at(key, until);
                None
            }
        }
    }

    /// Remembers a write that has begun.
    pub(crate) fn end(
        &self,
        key: &Key,
        part: Part,
        value: &Value,
        outcome: &WriteOutcome,
        undone: u32,
    ) {
        if let WriteOutcome::Stored { version } = outcome {
            let place = (key.clone(), part);
            let now = Instant::now();
            self.rivals
                .written(&place, value, version.clone(), undone, now);
        }
    }

    /// Forgets these parts of the ingress `key`.
    pub(crate) fn forget(&self, key: &Key, parts: &[Part]) {
        for part in parts {
            self.rivals.forget(&(key.clone(), *part));
        }
    }
}
