//! Exports the backend Services of our ingresses, so that Karmada collects their endpoints.

mod watch;
mod writes;

use karmada_api::{PropagationPolicy, ServiceExport};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::Key;

pub(crate) use self::watch::watch;
use self::writes::ExportError;
pub(crate) use self::writes::ExportWriter;

use crate::provider::{Obstacle, RelatedObject};
use crate::reason::Reason;

/// Reconciles the exports of Services.
pub(crate) struct ExportReconciler {
    pub(crate) writes: ExportWriter,
}

impl Controller for ExportReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.writes.index.exportable()
    }

    async fn reconcile(&self, service: &Key) -> Result<(), BoxError> {
        let Some(change) =
            self.writes
                .index
                .plan_export(service, &self.writes.settings, &self.writes.exporter)
        else {
            return Ok(());
        };
        let is_theirs = change.is_theirs;
        let obstacle = match self.writes.apply(service, change).await {
            Ok(()) => None,
            Err(error) => match met(&error) {
                Some(obstacle) => Some((obstacle, error)),
                None => return Err(error),
            },
        };
        let (met, error) = obstacle.unzip();
        let obstacle = met.or_else(|| is_theirs.then(|| left_to_its_owner(service)));
        let ingresses = match &obstacle {
            Some(_) => self
                .writes
                .index
                .routing_to(service, &self.writes.settings.controller),
            None => Vec::new(),
        };
        self.writes.events.export(service, obstacle, &ingresses);
        error.map_or(Ok(()), Err)
    }
}

/// Returns the obstacle that an error tells of: a policy of a user, or what the API refuses.
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
