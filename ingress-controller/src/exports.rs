//! Exports the backend Services of our ingresses, so that Karmada collects their endpoints.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use karmada_api::{PropagationPolicy, PropagationSpec, ServiceExport};
use karmada_rules::ingress::{ControllerName, ExportChange, Exporter, PolicyChange};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::{Decoded, events};
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::events::IngressEvents;
use crate::index::Index;
use crate::provider::{Obstacle, RelatedObject};
use crate::reason::Reason;
use crate::watch::SharedIndex;
use karmada_runtime::rivals::{Reaction, Rivals};

/// The pause between two looks for the kinds in an API that lacks them.
const PAUSE: Duration = Duration::from_mins(1);

/// Reconciles the exports of Services.
pub(crate) struct ExportReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) controller: ControllerName,
    pub(crate) exporter: Exporter,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) events: Arc<IngressEvents>,
    /// The objects of each kind that others change or delete as often as we write them.
    pub(crate) rivals: Rivals<(&'static str, Key)>,
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
            self.delete::<ServiceExport>("service_export", service, service, uid)
                .await?;
        }
        if let Some(PolicyChange::Delete { uid }) = change.policy {
            self.delete::<PropagationPolicy>("propagation_policy", service, &policy, uid)
                .await?;
        }
        Ok(())
    }

    /// Begins a write of `value` to the object `key`, which is another one in its version `seen`, for
    /// the export of `service`. During a pause, because another writer undoes every write, returns `None`
    /// and queues the Service at its end.
    fn begin<K: Known>(
        &self,
        service: &Key,
        key: &Key,
        value: Value,
        seen: Option<&str>,
    ) -> Option<Begun> {
        let part = (K::NAME, key.clone());
        match self.rivals.react(&part, &value, seen, Instant::now()) {
            Reaction::Write { undone } => Some(Begun {
                part,
                value,
                undone,
            }),
            Reaction::Wait { until, is_news } => {
                if is_news {
                    let ingresses = self.index.routing_to(service, &self.controller);
                    self.events.export_contested(K::NAME, key, &ingresses);
                }
                self.queue.add_at(service.clone(), until);
                None
            }
        }
    }

    /// Remembers a write that was stored as `version`.
    fn end(&self, begun: Begun, version: Option<String>) {
        let (part, value, undone) = (begun.part, begun.value, begun.undone);
        self.rivals
            .written(&part, &value, version, undone, Instant::now());
    }

    async fn create_export(&self, key: &Key, export: &ServiceExport) -> Result<(), BoxError> {
        let value = serde_json::to_value(export)?;
        let Some(begun) = self.begin::<ServiceExport>(key, key, value, None) else {
            return Ok(());
        };
        let api = self.api::<ServiceExport>(key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, export);
        match self.writer.write("service_export", call).await {
            Ok(stored) => {
                self.end(begun, stored.metadata.resource_version);
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
        let Some(begun) = self.begin::<PropagationPolicy>(service, key, value, version) else {
            return Ok(());
        };
        let metadata = json!({ "resourceVersion": version });
        let patch = Patch::Merge(json!({ "metadata": metadata, "spec": spec }));
        let api = self.api::<PropagationPolicy>(key);
        let parameters = PatchParams::default();
        let call = api.patch(&key.name, &parameters, &patch);
        match self.writer.write("propagation_policy", call).await {
            Ok(stored) => {
                self.end(begun, stored.metadata.resource_version);
                Ok(())
            }
            Err(error) => Err(failed::<PropagationPolicy>(key, error).into()),
        }
    }

    /// Creates a policy. Returns `false` during a pause.
    async fn create_policy(
        &self,
        service: &Key,
        key: &Key,
        policy: &PropagationPolicy,
    ) -> Result<bool, BoxError> {
        let value = serde_json::to_value(policy)?;
        let Some(begun) = self.begin::<PropagationPolicy>(service, key, value, None) else {
            return Ok(false);
        };
        let api = self.api::<PropagationPolicy>(key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, policy);
        let error = match self.writer.write("propagation_policy", call).await {
            Ok(stored) => {
                self.end(begun, stored.metadata.resource_version);
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

    async fn delete<K>(
        &self,
        target: &'static str,
        service: &Key,
        key: &Key,
        uid: Option<String>,
    ) -> Result<(), BoxError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Known,
    {
        let Some(begun) = self.begin::<K>(service, key, Value::Null, None) else {
            return Ok(());
        };
        let parameters = DeleteParams::default().preconditions(Preconditions {
            resource_version: None,
            uid,
        });
        let api = self.api::<K>(key);
        let call = api.delete(&key.name, &parameters);
        match self.writer.write(target, call).await {
            Ok(_) => {
                self.end(begun, None);
                Ok(())
            }
            // Another object of that name is not ours to delete.
            Err(error)
                if matches!(
                    error.kind(),
                    WriteErrorKind::Missing | WriteErrorKind::Conflict
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(failed::<K>(key, error).into()),
        }
    }

    fn api<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// A write that has begun.
struct Begun {
    part: (&'static str, Key),
    value: Value,
    /// The number of times that it was undone before.
    undone: u32,
}

/// A kind with a name for messages.
trait Known {
    const NAME: &'static str;
}

impl Known for ServiceExport {
    const NAME: &'static str = Self::KIND;
}

impl Known for PropagationPolicy {
    const NAME: &'static str = Self::KIND;
}

fn failed<K: Known>(key: &Key, source: WriteError) -> ExportError {
    ExportError::Write {
        kind: K::NAME,
        key: key.clone(),
        source,
    }
}

/// Watches exports and our policies, as soon as the API has these kinds. Readiness does not depend on
/// it: without them, endpoints are served where others export Services.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    index: &Arc<SharedIndex>,
    exporter: &Exporter,
) {
    let stopping = program.stopping.clone().cancelled_owned();
    let (client, index) = (client.clone(), Arc::clone(index));
    let ours = Config::default().labels(&exporter.selector());
    let watching = async move {
        until_served(&client).await;
        let exports = follow(&client, Config::default(), &index, Index::observe_export);
        let policies = follow(&client, ours, &index, Index::observe_policy);
        futures::join!(exports, policies);
    };
    program.tasks.spawn("exports", async move {
        tokio::select! {
            biased;
            () = stopping => Ok(()),
            () = watching => Ok(()),
        }
    });
}

/// Waits until the API serves both kinds.
async fn until_served(client: &Client) {
    let mut logged = false;
    loop {
        match is_served(client).await {
            Ok(true) => return,
            Ok(false) | Err(_) if logged => {}
            Ok(false) => tracing::warn!(
                "The API has no ServiceExport or no PropagationPolicy: only Services that others export have endpoints"
            ),
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "Could not find out whether the API has ServiceExports, will retry");
            }
        }
        logged = true;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn is_served(client: &Client) -> kube::Result<bool> {
    for (version, plural) in [
        (ServiceExport::API_VERSION, ServiceExport::plural(&())),
        (
            PropagationPolicy::API_VERSION,
            PropagationPolicy::plural(&()),
        ),
    ] {
        let resources = match client.list_api_group_resources(version).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(error) => return Err(error),
        };
        if !resources.iter().any(|resource| resource.name == plural) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn follow<K>(
    client: &Client,
    config: Config,
    index: &SharedIndex,
    observe: fn(&mut Index, Event<Decoded<K>>) -> Vec<Key>,
) where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut events = std::pin::pin!(events(Api::all(client.clone()), config));
    while let Some(event) = events.next().await {
        index.observe(|index| observe(index, event));
    }
}

#[cfg(test)]
mod tests;
