//! Brings the collected slices of one Service from one cluster to those in the cluster.

use std::sync::Arc;

use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::{WriteError, WriteErrorKind};
use objects::Key;
use objects::write::{Action, Write};
use traffic::LeftToOthers;

use super::index::{Decision, SharedEndpoints};
use super::news::{News, Obstacle};
use super::origin::Origin;
use crate::reason::Reason;

/// Collects the endpoints of Services.
pub(super) struct Collector {
    pub(super) endpoints: Arc<SharedEndpoints>,
    pub(super) committer: Committer,
    pub(super) news: News,
}

/// Errors of the write of a collected slice.
#[derive(Debug, thiserror::Error)]
enum CollectError {
    #[error("could not {verb} EndpointSlice {key}")]
    Write {
        verb: &'static str,
        key: Key,
        source: Box<WriteError>,
    },
    #[error(
        "EndpointSlice {0} exists without the marks of those that this program collects: delete it"
    )]
    Taken(Key),
    #[error("could not get EndpointSlice {0}")]
    Unread(Key, #[source] Box<kube::Error>),
}

impl CollectError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Write { source, .. } => source.kind() != WriteErrorKind::Invalid,
            Self::Taken(_) => false,
            Self::Unread(..) => true,
        }
    }
}

impl Controller for Collector {
    type Key = Origin;

    fn keys(&self) -> Vec<Origin> {
        self.endpoints.origins()
    }

    async fn reconcile(&self, origin: &Origin) -> Result<(), BoxError> {
        let Some(decision) = self.endpoints.decide(origin) else {
            return Ok(());
        };
        // One that fails keeps no address of a gone pod served.
        let mut done = Ok(());
        for write in &decision.plan.writes {
            done = done.and(self.write(write).await);
        }
        // An error that a retry may mend is no news.
        if !done.as_ref().is_err_and(CollectError::is_transient) {
            let obstacle = obstacle(origin, &decision, done.as_ref().err());
            self.news.tell(origin, decision.export.as_deref(), obstacle);
        }
        Ok(done?)
    }
}

impl Collector {
    async fn write(&self, write: &Write) -> Result<(), CollectError> {
        let key = write.object.key.clone();
        let source = match self.committer.write(write, None).await {
            Ok(Outcome::Exists(_)) => return self.recognise(write).await,
            Ok(_) => return Ok(()),
            Err(source) => Box::new(source),
        };
        let verb = match write.action {
            // The namespace is gone, and with it the export.
            Action::Create(_) if source.kind() == WriteErrorKind::Missing => return Ok(()),
            Action::Create(_) => "create",
            Action::Delete => "delete",
            _ => "patch",
        };
        Err(CollectError::Write { verb, key, source })
    }

    /// Fails unless the slice that was to be created is ours: the watch may lag behind.
    async fn recognise(&self, write: &Write) -> Result<(), CollectError> {
        let key = write.object.key.clone();
        match self.committer.is_taken(write).await {
            Ok(true) => Err(CollectError::Taken(key)),
            Ok(false) => Ok(()),
            Err(error) => Err(CollectError::Unread(key, Box::new(error))),
        }
    }
}

/// Returns the obstacle that a user has to know, and mostly to correct.
fn obstacle(
    origin: &Origin,
    decision: &Decision,
    error: Option<&CollectError>,
) -> Option<Obstacle> {
    let Origin { cluster, service } = origin;
    let (reason, note) = match error {
        Some(error) => {
            let error = Chain(error);
            let note = format!(
                "the endpoints of {service} in cluster {cluster} cannot be collected: {error}"
            );
            (Reason::CollectEndpointsFailed, note)
        }
        None if decision.is_forbidden => {
            let note = format!(
                "the account in cluster {cluster} may not list EndpointSlices, and those collected last are kept: grant it list and watch of endpointslices.discovery.k8s.io there"
            );
            (Reason::CollectEndpointsFailed, note)
        }
        None if decision.plan.events.contains(&LeftToOthers) => {
            let note = format!(
                "another program collects the endpoints of {service} in cluster {cluster}, and they are left to it: if it is gone for good, delete its EndpointSlices for derived-{}, which have no label app.kubernetes.io/managed-by",
                service.name
            );
            (Reason::EndpointsNotOurs, note)
        }
        None => return None,
    };
    Some(Obstacle { reason, note })
}
