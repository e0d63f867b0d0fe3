//! Writes what one cluster still needs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::{ClusterView, execution_namespace};
use karmada_rules::cluster::{ClusterWrite, ConditionTaint, Situation, steps};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind, WriteMode, patch_status};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use objects::Key;
use serde_json::Value;
use tokio::time::Instant;

use crate::events::taken;
use crate::watch::{Known, SharedIndex};

/// The time after which a write is tried again that another one has overtaken.
const SOON: Duration = Duration::from_millis(100);

/// Reconciles clusters. It sends nothing to a member.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) client: Client,
    pub(crate) writes: WriteMode,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) queue: Queue<Key>,
    /// The time after which workloads are to leave a cluster that is not ready.
    pub(crate) evict_after: Option<Duration>,
    pub(crate) condition_taints: Vec<ConditionTaint>,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let names = self.index.names().into_iter();
        names.map(Key::cluster_scoped).collect()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let name = &key.name;
        let Some(known) = self.index.known(name) else {
            return Ok(());
        };
        let steps = steps(&Situation {
            cluster: &known.cluster,
            namespace: known.namespace,
            is_targeted: known.is_targeted,
            observed: known.observed.as_ref(),
            unready_for: known.unready_for.unwrap_or_default(),
            evict_after: self.evict_after,
            condition_taints: &self.condition_taints,
            now: (self.clock)(),
        });
        let mut failed = None;
        for step in &steps {
            match self.take(name, &known, step).await {
                Ok(false) => {}
                // The rest follows once the watch shows this one.
                Ok(true) => {
                    if let Some(events) = &self.events
                        && let Some(event) = taken(name, step)
                    {
                        events.record(known.stored.object_ref(&()), event);
                    }
                    return Ok(());
                }
                // The watch shows the newer version in a moment, if it is not there yet.
                Err(error) if error.kind() == WriteErrorKind::Conflict => {
                    self.queue.add_at(key.clone(), Instant::now() + SOON);
                    return Ok(());
                }
                // It was deleted meanwhile.
                Err(error) if error.kind() == WriteErrorKind::Missing => return Ok(()),
                // No step waits for another: what cannot be done must not hide the health.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        if let (Some(after), Some(lasts)) = (self.evict_after, known.unready_for)
            && let Some(remains) = after.checked_sub(lasts)
        {
            self.queue.add_at(key.clone(), Instant::now() + remains);
        }
        Ok(())
    }
}

impl Reconciler {
    /// Performs a step, and returns `false` if nothing is to be written.
    async fn take(
        &self,
        name: &str,
        known: &Known,
        step: &ClusterWrite,
    ) -> Result<bool, WriteError> {
        let clusters: Api<ClusterView> = Api::all(self.client.clone());
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let (parameters, namespace) = (PatchParams::default(), execution_namespace(name));
        let written = match step {
            ClusterWrite::Finalizers(patch) => {
                let patch = Patch::Merge(patch);
                let call = clusters.patch_metadata(name, &parameters, &patch);
                self.writes
                    .write("cluster_finalizer", call)
                    .await?
                    .is_some()
            }
            ClusterWrite::Taints { patch, .. } => {
                let patch = Patch::Merge(patch);
                let call = clusters.patch_metadata(name, &parameters, &patch);
                self.writes.write("taints", call).await?.is_some()
            }
            ClusterWrite::Condition { patch, .. } => {
                let patch: Patch<Value> = patch.clone().into();
                let call = patch_status(&clusters, name, &parameters, &patch);
                self.writes.write("conditions", call).await?.is_some()
            }
            ClusterWrite::Status(patch) => {
                let patch = Patch::Merge(patch);
                let call = patch_status(&clusters, name, &parameters, &patch);
                self.writes.write("cluster_status", call).await?.is_some()
            }
            ClusterWrite::CreateNamespace(object) => {
                let parameters = PostParams::default();
                let call = namespaces.create(&parameters, object);
                self.writes.write("namespace", call).await?.is_some()
            }
            ClusterWrite::LabelNamespace(patch) => {
                let patch = Patch::Merge(patch);
                let call = namespaces.patch_metadata(&namespace, &parameters, &patch);
                self.writes.write("namespace", call).await?.is_some()
            }
            ClusterWrite::DeleteNamespace => {
                // One that was made again meanwhile is another cluster's.
                let parameters = DeleteParams::default().preconditions(Preconditions {
                    uid: known.namespace_uid.clone(),
                    resource_version: None,
                });
                let call = namespaces.delete(&namespace, &parameters);
                self.writes
                    .write("namespace_deletion", call)
                    .await?
                    .is_some()
            }
        };
        Ok(written)
    }
}
