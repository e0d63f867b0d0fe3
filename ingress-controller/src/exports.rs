//! Exports the backend Services of our ingresses, so that Karmada collects their endpoints.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use karmada_api::{Key, PropagationPolicy, PropagationSpec, ServiceExport};
use karmada_rules::ingress::{ControllerName, Exporter, PolicyChange};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::program::Program;
use karmada_runtime::watch::{Decoded, events};
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::index::Index;
use crate::watch::SharedIndex;

/// The pause between two looks for the kinds in an API that lacks them.
const PAUSE: Duration = Duration::from_mins(1);

/// Reconciles the exports of Services.
pub(crate) struct ExportReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) controller: ControllerName,
    pub(crate) exporter: Exporter,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
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
        let name = Exporter::policy_name(&service.name);
        let policy = Key::new(&service.namespace, name);
        // A wider policy of a user claims an export that has none of ours yet, and keeps it.
        match &change.policy {
            Some(PolicyChange::Create(object)) => self.create_policy(&policy, object).await?,
            Some(PolicyChange::Update { version, spec }) => {
                self.update_policy(&policy, version.as_deref(), spec)
                    .await?;
            }
            Some(PolicyChange::Delete { .. }) | None => {}
        }
        if let Some(export) = &change.create {
            self.create_export(service, export).await?;
        }
        if let Some(uid) = change.delete {
            self.delete::<ServiceExport>("service_export", service, uid)
                .await?;
        }
        if let Some(PolicyChange::Delete { uid }) = change.policy {
            self.delete::<PropagationPolicy>("propagation_policy", &policy, uid)
                .await?;
        }
        Ok(())
    }
}

impl ExportReconciler {
    async fn create_export(&self, key: &Key, export: &ServiceExport) -> Result<(), BoxError> {
        let api = self.api::<ServiceExport>(key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, export);
        match self.writer.write("service_export", call).await {
            Ok(_) => tracing::info!(service = %key, "Service exported"),
            // Of a user, or ours already: the watch shows which.
            Err(error) if error.kind() == WriteErrorKind::Conflict => {}
            Err(error) => return Err(failed::<ServiceExport>(key, error).into()),
        }
        Ok(())
    }

    async fn update_policy(
        &self,
        key: &Key,
        version: Option<&str>,
        spec: &PropagationSpec,
    ) -> Result<(), BoxError> {
        let metadata = json!({ "resourceVersion": version });
        let patch = Patch::Merge(json!({ "metadata": metadata, "spec": spec }));
        let api = self.api::<PropagationPolicy>(key);
        let parameters = PatchParams::default();
        let call = api.patch(&key.name, &parameters, &patch);
        match self.writer.write("propagation_policy", call).await {
            Ok(_) => Ok(()),
            Err(error) => Err(failed::<PropagationPolicy>(key, error).into()),
        }
    }

    async fn create_policy(&self, key: &Key, policy: &PropagationPolicy) -> Result<(), BoxError> {
        let api = self.api::<PropagationPolicy>(key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, policy);
        let Err(error) = self.writer.write("propagation_policy", call).await else {
            return Ok(());
        };
        if error.kind() != WriteErrorKind::Conflict {
            return Err(failed::<PropagationPolicy>(key, error).into());
        }
        // The watch shows ours only, and may lag behind.
        match api.get_metadata_opt(&key.name).await? {
            Some(found) if !self.exporter.owns(&found.metadata) => {
                Err(ExportError::Clash(key.clone()).into())
            }
            _ => Ok(()),
        }
    }

    async fn delete<K>(
        &self,
        target: &'static str,
        key: &Key,
        uid: Option<String>,
    ) -> Result<(), BoxError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Known,
    {
        let parameters = DeleteParams::default().preconditions(Preconditions {
            resource_version: None,
            uid,
        });
        let api = self.api::<K>(key);
        let call = api.delete(&key.name, &parameters);
        match self.writer.write(target, call).await {
            Ok(_) => Ok(()),
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
