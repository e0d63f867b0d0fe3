//! Brings the collected slices of one Service from one cluster to those in the cluster.

use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::{self, WriteError, WriteErrorKind, WriteMode};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use objects::Key;
use objects::metadata::has_marks;
use traffic::endpoints::CollectionPlan;

use super::index::{Decision, SharedEndpoints};
use super::news::{News, Obstacle};
use super::origin::Origin;
use crate::identity::NAME;
use crate::reason::Reason;

/// The label of the writes in the metrics.
const TARGET: &str = "endpoint_slice";

/// Collects the endpoints of Services.
pub(super) struct Collector {
    pub(super) endpoints: Arc<SharedEndpoints>,
    pub(super) client: Client,
    pub(super) writes: WriteMode,
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
        let done = self
            .carry_out(&origin.service.namespace, &decision.plan)
            .await;
        // What a retry may mend is no news.
        if !done.as_ref().is_err_and(CollectError::is_transient) {
            let obstacle = obstacle(origin, &decision, done.as_ref().err());
            self.news.tell(origin, decision.export.as_deref(), obstacle);
        }
        Ok(done?)
    }
}

impl Collector {
    /// Does every write, and returns the first error: one that fails keeps no address of a gone pod served.
    async fn carry_out(&self, namespace: &str, plan: &CollectionPlan) -> Result<(), CollectError> {
        let mut done = Ok(());
        for slice in &plan.create {
            done = done.and(self.create(slice).await);
        }
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        for change in &plan.change {
            let (parameters, patch) = (PatchParams::apply(NAME), Patch::Merge(&change.body));
            let call = write::patch(&slices, &change.name, &parameters, &patch);
            let result = self.writes.write(TARGET, call).await;
            let key = Key::new(namespace, &change.name);
            let changed = unless_gone("patch", key, result);
            done = done.and(changed);
        }
        for slice in &plan.delete {
            let parameters = DeleteParams::default().preconditions(Preconditions {
                uid: slice.uid.clone(),
                resource_version: slice.version.clone(),
            });
            let call = slices.delete(&slice.name, &parameters);
            let result = self.writes.write(TARGET, call).await;
            let key = Key::new(namespace, &slice.name);
            let deleted = unless_gone("delete", key, result);
            done = done.and(deleted);
        }
        done
    }

    async fn create(&self, slice: &EndpointSlice) -> Result<(), CollectError> {
        let key = Key::of(slice);
        let failed = |source| CollectError::Write {
            verb: "create",
            key: key.clone(),
            source: Box::new(source),
        };
        let body = serde_json::to_value(slice)
            .map_err(|error| failed(WriteError::Api(kube::Error::SerdeError(error))))?;
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let call = write::create(&slices, &parameters, &body);
        let Err(error) = self.writes.write(TARGET, call).await else {
            return Ok(());
        };
        match error.kind() {
            // The namespace is gone, and with it what was exported.
            WriteErrorKind::Missing => Ok(()),
            // The watch may lag behind, or show it no more because somebody has taken its marks.
            WriteErrorKind::Conflict => match slices.get_metadata_opt(&key.name).await {
                Ok(Some(found)) if !has_marks(&found.metadata, &slice.metadata) => {
                    Err(CollectError::Taken(key))
                }
                Ok(_) => Ok(()),
                Err(error) => Err(CollectError::Unread(key, Box::new(error))),
            },
            WriteErrorKind::Invalid | WriteErrorKind::Transient => Err(failed(error)),
        }
    }
}

/// Returns the error of a write, unless the object is gone: that has been noticed, or will be.
fn unless_gone<T>(
    verb: &'static str,
    key: Key,
    result: Result<T, WriteError>,
) -> Result<(), CollectError> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == WriteErrorKind::Missing => Ok(()),
        Err(source) => Err(CollectError::Write {
            verb,
            key,
            source: Box::new(source),
        }),
    }
}

/// Returns what a user has to know, and mostly to correct.
fn obstacle(
    origin: &Origin,
    decision: &Decision,
    error: Option<&CollectError>,
) -> Option<Obstacle> {
    let Origin { cluster, service } = origin;
    let failed = |note| Obstacle {
        reason: Reason::CollectEndpointsFailed,
        note,
    };
    match error {
        Some(error) => Some(failed(format!(
            "the endpoints of {service} in cluster {cluster} cannot be collected: {}",
            Chain(error)
        ))),
        None if decision.is_forbidden => Some(failed(format!(
            "the account in cluster {cluster} may not list EndpointSlices, and those collected last are kept: grant it list and watch of endpointslices.discovery.k8s.io there"
        ))),
        None if decision.plan.is_theirs => Some(Obstacle {
            reason: Reason::EndpointsNotOurs,
            note: format!(
                "another program collects the endpoints of {service} in cluster {cluster}, and they are left to it: if it is gone for good, delete its EndpointSlices for derived-{}, which have no label app.kubernetes.io/managed-by",
                service.name
            ),
        }),
        None => None,
    }
}
