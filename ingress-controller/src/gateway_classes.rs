//! The condition `Accepted` of the classes of Gateways that are ours: whoever writes one sees that it has a controller.

use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::gateway_api::GatewayClass;
use karmada_runtime::contention::Contention;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{Stored, WriteErrorKind, Writer, patch_status};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use objects::Key;
use serde_json::json;
use tokio::time::Instant;
use traffic::ingress::http_route::class_status;

use crate::identity::NAME;
use crate::watch::SharedIndex;

/// Reconciles the statuses of classes.
pub(crate) struct GatewayClasses {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) contention: Contention<Key>,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for GatewayClasses {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let all = self
            .index
            .with_routes(|routes| Some(routes.classes().collect()));
        all.unwrap_or_default()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let found = self.index.with_routes(|routes| {
            let class = Arc::clone(routes.class(key)?);
            let steps = class_status(&class, routes.controller(), Timestamp::now());
            Some((class, steps))
        });
        let Some((class, steps)) = found.filter(|(_, steps)| !steps.is_empty()) else {
            return Ok(());
        };
        let version = class.metadata.resource_version.as_deref();
        // The moment changes with each attempt, and says nothing of what is undone.
        let value = json!(class.metadata.generation);
        let begun = self
            .contention
            .begin(key.clone(), &value, version, Instant::now());
        let attempt = match begun {
            Ok(attempt) => attempt,
            Err(backoff) => {
                self.queue.add_at(key.clone(), backoff.until);
                return Ok(());
            }
        };
        let api: Api<GatewayClass> = Api::all(self.client.clone());
        let steps: Patch<()> = steps.guarded(version).into();
        let parameters = PatchParams::apply(NAME);
        let call = patch_status(&api, &key.name, &parameters, &steps);
        match self.writer.write("gateway_class", call).await {
            Ok(stored) => self
                .contention
                .stored(attempt, Stored::version(stored), Instant::now()),
            // The watch shows the newer one, or that it is gone.
            Err(error)
                if matches!(
                    error.kind(),
                    WriteErrorKind::Conflict | WriteErrorKind::Missing
                ) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
