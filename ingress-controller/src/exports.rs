//! Exports the backend Services of our ingresses, so that Karmada collects their endpoints.

mod watch;

use std::sync::Arc;

use karmada_api::{MultiClusterIngress, PropagationPolicy, ServiceExport};
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::{Api, Client};
use objects::Key;
use objects::write::{Action, ObjectRef, Write};
use traffic::LeftToOthers;
use traffic::ingress::{Exporter, Settings};

pub(crate) use self::watch::watch;

use crate::events::IngressEvents;
use crate::index::Index;
use crate::ingresses::object;
use crate::provider::{Obstacle, RelatedObject};
use crate::reason::Reason;
use crate::watch::SharedIndex;

/// Reconciles the exports of Services.
pub(crate) struct ExportReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) settings: Settings,
    pub(crate) exporter: Exporter,
    pub(crate) client: Client,
    pub(crate) committer: Committer,
    pub(crate) events: Arc<IngressEvents>,
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
        source: Box<WriteError>,
    },
    #[error(
        "PropagationPolicy {0} exists and was not made by this controller; delete or rename it, or propagate the ServiceExport with it"
    )]
    Clash(Key),
}

impl Controller for ExportReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let all = self.index.read(Index::exportable);
        all.into_iter().collect()
    }

    async fn reconcile(&self, service: &Key) -> Result<(), BoxError> {
        let (settings, exporter) = (&self.settings, &self.exporter);
        let plan = self
            .index
            .read(|index| index.plan_export(service, settings, exporter));
        let Some(plan) = plan else {
            return Ok(());
        };
        let is_theirs = plan.events.contains(&LeftToOthers);
        let obstacle = match self.apply(service, plan.writes).await {
            Ok(()) => None,
            Err(error) => match met(&error) {
                Some(obstacle) => Some((obstacle, error)),
                None => return Err(error),
            },
        };
        let (met, error) = obstacle.unzip();
        let obstacle = met.or_else(|| is_theirs.then(|| left_to_its_owner(service)));
        let ingresses = match &obstacle {
            Some(_) => self.routing_to(service),
            None => Vec::new(),
        };
        self.events.export(service, obstacle, &ingresses);
        error.map_or(Ok(()), Err)
    }
}

impl ExportReconciler {
    /// Sends the writes to the export of `service`. During a pause before one, adds it to the queue at the end of that.
    async fn apply(&self, service: &Key, writes: Vec<Write>) -> Result<(), BoxError> {
        for write in writes {
            let about = self.routing_to(service);
            let about = about.iter().map(|ingress| object(ingress).reference());
            let write = write.about(about.collect());
            let ObjectRef { key, .. } = &write.object;
            match self.committer.write(&write, None).await {
                Ok(Outcome::Contended(until)) => {
                    self.queue.add_at(service.clone(), until);
                    return Ok(());
                }
                // An export is of a user, or ours already: the watch shows which.
                Ok(Outcome::Exists(_)) if kind(&write) == PropagationPolicy::KIND => {
                    self.examine_policy(key).await?;
                }
                Ok(_) => tracing::debug!(object = %key, kind = kind(&write), "Export written"),
                // Another one of its name is not ours to delete.
                Err(error)
                    if write.action == Action::Delete
                        && error.kind() == WriteErrorKind::Conflict => {}
                Err(source) => {
                    return Err(ExportError::Write {
                        kind: kind(&write),
                        key: key.clone(),
                        source: Box::new(source),
                    }
                    .into());
                }
            }
        }
        Ok(())
    }

    /// Fails if the policy `key`, which exists, is not ours. The watch shows ours only, and may lag behind.
    async fn examine_policy(&self, key: &Key) -> Result<(), BoxError> {
        let api: Api<PropagationPolicy> = Api::namespaced(self.client.clone(), &key.namespace);
        match api.get_metadata_opt(&key.name).await? {
            Some(found) if !self.exporter.owns(&found.metadata) => {
                Err(ExportError::Clash(key.clone()).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the ingresses of ours that route to `service`.
    fn routing_to(&self, service: &Key) -> Vec<Arc<MultiClusterIngress>> {
        let controller = &self.settings.controller;
        self.index
            .read(|index| index.routing_to(service, controller))
    }
}

/// Returns the kind that is written.
fn kind(write: &Write) -> &'static str {
    if write.object.resource.kind == ServiceExport::KIND {
        ServiceExport::KIND
    } else {
        PropagationPolicy::KIND
    }
}

/// Returns the obstacle that an error tells of: a policy of a user, or a refusal of the API.
fn met(error: &BoxError) -> Option<Obstacle> {
    let (reason, api_version, kind, key, message) = match error.downcast_ref::<ExportError>()? {
        ExportError::Clash(policy) => (
            Reason::ExportClash,
            Some(PropagationPolicy::API_VERSION),
            PropagationPolicy::KIND,
            policy,
            error.to_string(),
        ),
        ExportError::Write { kind, key, source } => (
            Reason::ExportRefused,
            None,
            *kind,
            key,
            format!(
                "the API refuses {kind} {key}, without which no endpoints are collected: {}",
                source.refusal()?
            ),
        ),
    };
    Some(Obstacle {
        reason,
        object: RelatedObject {
            api_version,
            kind,
            key: key.clone(),
        },
        message,
    })
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

#[cfg(test)]
mod tests;
