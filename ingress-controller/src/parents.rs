//! The statuses of the Gateways that are ours in the Karmada API, the parents of routes: whoever writes one sees that it has a
//! controller, and how many routes are attached to its listeners.

use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use objects::Key;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

use crate::watch::SharedIndex;

/// Reconciles the statuses of Gateways.
pub(crate) struct Parents {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) committer: Committer,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for Parents {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        (self.index).read(|index| index.routes.gateways.keys().cloned().collect())
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let found = self.index.read(|index| index.routes.gateway_report(key));
        let Some((gateway, report)) = found else {
            return Ok(());
        };
        let steps = report.patch(&gateway, Timestamp::now());
        if steps.is_empty() {
            return Ok(());
        }
        let wanted = Wanted {
            value: json!(report),
            paths: ["/status/conditions", "/status/listeners"]
                .map(ToOwned::to_owned)
                .into(),
        };
        let write = Write::json("gateway", ObjectRef::of(&*gateway, &()), steps).of_status();
        let write = write.guarded(Guard::Version).bringing(wanted);
        if let Outcome::Contended(until) = self.committer.write(&write, None).await? {
            self.queue.add_at(key.clone(), until);
        }
        Ok(())
    }
}
