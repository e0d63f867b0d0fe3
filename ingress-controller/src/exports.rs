//! Exports the backend Services of our ingresses, so that Karmada collects their endpoints.

mod watch;
mod writes;

use std::sync::Arc;

use karmada_api::{PropagationPolicy, ServiceExport};
use karmada_rules::ingress::{ControllerName, ExportChange, Exporter, PolicyChange};
use karmada_runtime::contention::Contention;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, Writer};
use kube::Client;
use objects::Key;

pub(crate) use self::watch::watch;

use self::writes::Object;
use crate::events::IngressEvents;
use crate::provider::{Obstacle, RelatedObject};
use crate::reason::Reason;
use crate::watch::SharedIndex;

/// Reconciles the exports of Services.
pub(crate) struct ExportReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) controller: ControllerName,
    pub(crate) exporter: Exporter,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) events: Arc<IngressEvents>,
    /// The objects that others change or delete as often as we write them.
    pub(crate) contention: Contention<Object>,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

/// Errors of the export of a Service.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("could not write {kind} {key}")]
    Write {
        kind: &'static str,
        key: Key,
        source: WriteError,
    },
    #[error(
        "PropagationPolicy {0} exists and was not made by this controller; delete or rename it, or propagate the ServiceExport with it"
    )]
    Clash(Key),
}

impl Controller for ExportReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.exportable()
    }

    async fn reconcile(&self, service: &Key) -> Result<(), BoxError> {
        let Some(change) = self
            .index
            .plan_export(service, &self.controller, &self.exporter)
        else {
            return Ok(());
        };
        let is_theirs = change.is_theirs;
        let obstacle = match self.apply(service, change).await {
            Ok(()) => None,
            Err(error) => match error.downcast_ref() {
                Some(ExportError::Clash(policy)) => Some((clash(policy, &error), error)),
                _ => return Err(error),
            },
        };
        let (clash, error) = obstacle.unzip();
        let obstacle = clash.or_else(|| is_theirs.then(|| left_to_its_owner(service)));
        let ingresses = match &obstacle {
            Some(_) => self.index.routing_to(service, &self.controller),
            None => Vec::new(),
        };
        self.events.export(service, obstacle, &ingresses);
        error.map_or(Ok(()), Err)
    }
}

/// Returns the obstacle that a policy of a user is.
fn clash(policy: &Key, error: &BoxError) -> Obstacle {
    Obstacle {
        reason: Reason::ExportClash,
        object: RelatedObject {
            api_version: Some(PropagationPolicy::API_VERSION),
            kind: PropagationPolicy::KIND,
            key: policy.clone(),
        },
        message: error.to_string(),
    }
}

/// Returns the obstacle that an export of a user is: it is none if it is propagated.
fn left_to_its_owner(service: &Key) -> Obstacle {
    Obstacle {
        reason: Reason::ExportNotOurs,
        object: RelatedObject {
            api_version: Some(ServiceExport::API_VERSION),
            kind: ServiceExport::KIND,
            key: service.clone(),
        },
        message: format!(
            "ServiceExport {service} was not made by this controller, which leaves it alone: whoever made it propagates it to the clusters of the Service"
        ),
    }
}

impl ExportReconciler {
    async fn apply(&self, service: &Key, change: ExportChange) -> Result<(), BoxError> {
        let name = Exporter::policy_name(&service.name);
        let policy = Key::new(&service.namespace, name);
        // A wider policy of a user claims an export that has none of ours yet, and keeps it.
        match &change.policy {
            Some(PolicyChange::Create(object)) => {
                if !self.create_policy(service, &policy, object).await? {
                    return Ok(());
                }
            }
            Some(PolicyChange::Update { version, spec }) => {
                self.update_policy(service, &policy, version.as_deref(), spec)
                    .await?;
            }
            Some(PolicyChange::Delete { .. }) | None => {}
        }
        if let Some(export) = &change.create {
            self.create_export(service, export).await?;
        }
        if let Some(uid) = change.delete {
            self.delete::<ServiceExport>(service, service, uid).await?;
        }
        if let Some(PolicyChange::Delete { uid }) = change.policy {
            self.delete::<PropagationPolicy>(service, &policy, uid)
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
