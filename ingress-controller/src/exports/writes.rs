//! The writes to exports and policies, with growing pauses where another client undoes each of them.

use std::fmt::Debug;
use std::sync::Arc;

use karmada_api::{PropagationPolicy, PropagationSpec, ServiceExport};
use karmada_runtime::contention::{Attempt, Contention};
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use objects::Key;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use traffic::ingress::{ExportChange, Exporter, PolicyChange, Settings};

use crate::events::IngressEvents;
use crate::identity::NAME;
use crate::watch::SharedIndex;

/// An object of a kind.
type Object = (&'static str, Key);

/// A kind that is written here.
trait Exported:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
    const KIND: &'static str;
    /// The label of its writes in the metrics.
    const TARGET: &'static str;
}

impl Exported for ServiceExport {
    const KIND: &'static str = Self::KIND;
    const TARGET: &'static str = "service_export";
}

impl Exported for PropagationPolicy {
    const KIND: &'static str = Self::KIND;
    const TARGET: &'static str = "propagation_policy";
}

/// Writes the exports of Services.
pub(crate) struct ExportWriter {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) settings: Settings,
    pub(crate) exporter: Exporter,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) events: Arc<IngressEvents>,
    /// The objects that others change or delete as often as we write them.
    pub(crate) contention: Contention<(&'static str, Key)>,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

/// Errors of the export of a Service.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
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

impl ExportWriter {
    /// Carries out the changes to the export of `service`.
    pub(super) async fn apply(&self, service: &Key, change: ExportChange) -> Result<(), BoxError> {
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

    /// Begins a write of `value` to the object `key`, which has another one in its version `seen`, for
    /// the export of `service`. During a pause, returns `None` and queues the Service at its end.
    fn begin<K: Exported>(
        &self,
        service: &Key,
        key: &Key,
        value: &Value,
        seen: Option<&str>,
    ) -> Option<Attempt<Object>> {
        let object = (K::KIND, key.clone());
        match self.contention.begin(object, value, seen, Instant::now()) {
            Ok(attempt) => Some(attempt),
            Err(backoff) => {
                if backoff.is_news {
                    let ingresses = self.index.routing_to(service, &self.settings.controller);
                    self.events.export_contested(K::KIND, key, &ingresses);
                }
                self.queue.add_at(service.clone(), backoff.until);
                None
            }
        }
    }

    /// Records a write that was stored as `version`.
    fn end(&self, attempt: Attempt<Object>, version: Option<String>) {
        self.contention.stored(attempt, version, Instant::now());
    }

    async fn create_export(&self, key: &Key, export: &ServiceExport) -> Result<(), BoxError> {
        let value = serde_json::to_value(export)?;
        let Some(attempt) = self.begin::<ServiceExport>(key, key, &value, None) else {
            return Ok(());
        };
        let api = self.api::<ServiceExport>(key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, export);
        match self.writer.write(ServiceExport::TARGET, call).await {
            Ok(stored) => {
                self.end(attempt, stored.metadata.resource_version);
                tracing::info!(service = %key, "Service exported");
            }
            // Of a user, or ours already: the watch shows which.
            Err(error) if error.kind() == WriteErrorKind::Conflict => {}
            Err(error) => return Err(failed::<ServiceExport>(key, error).into()),
        }
        Ok(())
    }

    async fn update_policy(
        &self,
        service: &Key,
        key: &Key,
        version: Option<&str>,
        spec: &PropagationSpec,
    ) -> Result<(), BoxError> {
        let value = serde_json::to_value(spec)?;
        let Some(attempt) = self.begin::<PropagationPolicy>(service, key, &value, version) else {
            return Ok(());
        };
        let metadata = json!({ "resourceVersion": version });
        let patch = Patch::Merge(json!({ "metadata": metadata, "spec": spec }));
        let api = self.api::<PropagationPolicy>(key);
        let parameters = PatchParams::apply(NAME);
        let call = api.patch(&key.name, &parameters, &patch);
        let write = self.writer.write(PropagationPolicy::TARGET, call);
        let stored = write
            .await
            .map_err(|error| failed::<PropagationPolicy>(key, error))?;
        self.end(attempt, stored.metadata.resource_version);
        Ok(())
    }

    /// Creates a policy. Returns `false` during a pause.
    async fn create_policy(
        &self,
        service: &Key,
        key: &Key,
        policy: &PropagationPolicy,
    ) -> Result<bool, BoxError> {
        let value = serde_json::to_value(policy)?;
        let Some(attempt) = self.begin::<PropagationPolicy>(service, key, &value, None) else {
            return Ok(false);
        };
        let api = self.api::<PropagationPolicy>(key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, policy);
        let error = match self.writer.write(PropagationPolicy::TARGET, call).await {
            Ok(stored) => {
                self.end(attempt, stored.metadata.resource_version);
                return Ok(true);
            }
            Err(error) => error,
        };
        if error.kind() != WriteErrorKind::Conflict {
            return Err(failed::<PropagationPolicy>(key, error).into());
        }
        // The watch shows ours only, and may lag behind.
        match api.get_metadata_opt(&key.name).await? {
            Some(found) if !self.exporter.owns(&found.metadata) => {
                Err(ExportError::Clash(key.clone()).into())
            }
            _ => Ok(true),
        }
    }

    async fn delete<K: Exported>(
        &self,
        service: &Key,
        key: &Key,
        uid: Option<String>,
    ) -> Result<(), BoxError> {
        let Some(attempt) = self.begin::<K>(service, key, &Value::Null, None) else {
            return Ok(());
        };
        let parameters = DeleteParams::default().preconditions(Preconditions {
            resource_version: None,
            uid,
        });
        let api = self.api::<K>(key);
        let call = api.delete(&key.name, &parameters);
        match self.writer.write(K::TARGET, call).await {
            Ok(_) => self.end(attempt, None),
            // Another object of that name is not ours to delete.
            Err(error)
                if matches!(
                    error.kind(),
                    WriteErrorKind::Missing | WriteErrorKind::Conflict
                ) => {}
            Err(error) => return Err(failed::<K>(key, error).into()),
        }
        Ok(())
    }

    fn api<K: Exported>(&self, key: &Key) -> Api<K> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

fn failed<K: Exported>(key: &Key, source: WriteError) -> ExportError {
    ExportError::Write {
        kind: K::KIND,
        key: key.clone(),
        source,
    }
}
