//! Exports the backend Services of our ingresses, so that Karmada collects their endpoints.

mod watch;

use std::sync::Arc;

use karmada_api::{MultiClusterIngress, PropagationPolicy, ServiceExport};
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::{Api, Client, Resource};
use objects::Key;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use serde::Serialize;
use serde_json::{Value, json};
use traffic::ingress::{ExportChange, Exporter, PolicyChange, Settings};

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
        let Some(change) = plan else {
            return Ok(());
        };
        let is_theirs = change.is_theirs;
        let obstacle = match self.apply(service, change).await {
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
    /// Carries out the changes to the export of `service`.
    async fn apply(&self, service: &Key, change: ExportChange) -> Result<(), BoxError> {
        let policy = Key::new(&service.namespace, Exporter::policy_name(&service.name));
        // A wider policy of a user claims an export that has none of ours yet, and keeps it.
        match &change.policy {
            Some(PolicyChange::Create(wanted)) => {
                match self.write(service, creation(POLICY, &**wanted)).await? {
                    Outcome::Contended(_) => return Ok(()),
                    Outcome::Exists(_) => self.examine_policy(&policy).await?,
                    _ => {}
                }
            }
            Some(PolicyChange::Update { version, spec }) => {
                let object = ObjectRef {
                    version: version.clone(),
                    ..ObjectRef::named::<PropagationPolicy>(policy.clone(), &())
                };
                let write = Write::merge(POLICY, object, json!({ "spec": spec }));
                let write = write.guarded(Guard::Version).owning("/spec");
                self.write(service, write).await?;
            }
            Some(PolicyChange::Delete { .. }) | None => {}
        }
        if let Some(export) = &change.create {
            // One that exists is of a user, or ours already: the watch shows which.
            let created = self.write(service, creation(EXPORT, export)).await?;
            if created.is_stored() {
                tracing::info!(%service, "Service exported");
            }
        }
        if let Some(uid) = change.delete {
            let export = ObjectRef::named::<ServiceExport>(service.clone(), &());
            self.delete(service, EXPORT, ObjectRef { uid, ..export })
                .await?;
        }
        if let Some(PolicyChange::Delete { uid }) = change.policy {
            let policy = ObjectRef::named::<PropagationPolicy>(policy, &());
            self.delete(service, POLICY, ObjectRef { uid, ..policy })
                .await?;
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

    /// Deletes an object; another one of its name is not ours to delete.
    async fn delete(
        &self,
        service: &Key,
        target: &'static str,
        object: ObjectRef,
    ) -> Result<(), ExportError> {
        let write = Write::delete(target, object).guarded(Guard::Uid);
        let write = write.bringing(Wanted::created(Value::Null));
        match self.write(service, write).await {
            Err(ExportError::Write { source, .. }) if source.kind() == WriteErrorKind::Conflict => {
                Ok(())
            }
            deleted => deleted.map(drop),
        }
    }

    /// Returns the ingresses of ours that route to `service`.
    fn routing_to(&self, service: &Key) -> Vec<Arc<MultiClusterIngress>> {
        let controller = &self.settings.controller;
        self.index
            .read(|index| index.routing_to(service, controller))
    }

    /// Sends a write for the export of `service`. During a pause, adds it to the queue at the end of that.
    async fn write(&self, service: &Key, write: Write) -> Result<Outcome, ExportError> {
        let concerned = self.routing_to(service);
        let about = concerned.iter().map(|ingress| object(ingress).reference());
        let write = write.about(about.collect());
        match self.committer.write(&write, None).await {
            Ok(outcome) => {
                if let Outcome::Contended(until) = outcome {
                    self.queue.add_at(service.clone(), until);
                }
                Ok(outcome)
            }
            Err(source) => Err(ExportError::Write {
                kind: kind(write.target),
                key: write.object.key,
                source: Box::new(source),
            }),
        }
    }
}

/// The label of writes to exports in the metrics.
const EXPORT: &str = "service_export";
/// The label of writes to policies in the metrics.
const POLICY: &str = "propagation_policy";

/// Returns the kind that is written as `target`.
fn kind(target: &'static str) -> &'static str {
    match target {
        EXPORT => ServiceExport::KIND,
        _ => PropagationPolicy::KIND,
    }
}

fn creation<K: Resource<DynamicType = ()> + Serialize>(target: &'static str, object: &K) -> Write {
    let write = Write::create(target, object, &());
    let wanted = Wanted::created(write.body().clone());
    write.bringing(wanted)
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
