//! The condition `Accepted` of the classes of Gateways that are ours: whoever writes one sees that it has a controller.

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
use traffic::ingress::http_route::class_status;

use crate::watch::SharedIndex;

/// Reconciles the statuses of classes.
pub(crate) struct GatewayClasses {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) committer: Committer,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for GatewayClasses {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        (self.index).read(|index| index.routes.classes.keys().cloned().collect())
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let found = self.index.read(|index| {
            let routes = &index.routes;
            let class = Arc::clone(routes.classes.get(key)?);
            let steps = class_status(&class, routes.controller()?, Timestamp::now());
            Some((class, steps))
        });
        let Some((class, steps)) = found.filter(|(_, steps)| !steps.is_empty()) else {
            return Ok(());
        };
        let wanted = Wanted {
            // The moment changes with each attempt, and says nothing of the undone fields.
            value: json!(class.metadata.generation),
            paths: vec!["/status/conditions".to_owned()],
        };
        let write = Write::json("gateway_class", ObjectRef::of(&*class, &()), steps).of_status();
        let write = write.guarded(Guard::Version).bringing(wanted);
        if let Outcome::Contended(until) = self.committer.write(&write, None).await? {
            self.queue.add_at(key.clone(), until);
        }
        Ok(())
    }
}
