//! Writes what one cluster still needs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::condition::TRUE;
use karmada_api::{ClusterView, execution_namespace};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{
    Stored, WriteError, WriteErrorKind, WriteMode, patch_status, replace_status,
};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use objects::condition_taint::ConditionTaint;
use objects::{Key, Metadata};
use parking_lot::Mutex;
use propagation_rules::cluster::{
    ClusterWrite, READY, Situation, condition, patience, status, steps,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::events::taken;
use crate::heartbeat::Heartbeat;
use crate::identity::NAME;
use crate::index::{Index, Known};

/// The time after which a write is tried again that another one has overtaken.
const SOON: Duration = Duration::from_millis(100);

/// The place where the program runs, and what it decides there.
pub(crate) enum Role {
    /// In the control plane: everything about every cluster.
    ControlPlane {
        /// The time after which workloads are to leave a cluster that is not ready.
        evict_after: Option<Duration>,
        condition_taints: Vec<ConditionTaint>,
    },
    /// In a member: the status of its cluster.
    Member(Box<Heartbeat>),
}

/// Reconciles clusters. It sends nothing to a member.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) client: Client,
    pub(crate) writes: WriteMode,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) queue: Queue<Key>,
    pub(crate) role: Role,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let mut index = self.index.lock();
        // Nobody may have listened before.
        index.heard.begin();
        index.clusters.keys().cloned().collect()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let name = &key.name;
        let known = self.index.lock().known(name);
        let Some(known) = known else {
            return Ok(());
        };
        // Nothing that is refused may look like the silence of the member.
        let mut failed = self.beat(key, &known).await.err();
        let steps = self.steps(&known);
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
        for remains in self.ends(&known).into_iter().flatten() {
            self.queue.add_at(key.clone(), Instant::now() + remains);
        }
        Ok(())
    }
}

impl Reconciler {
    /// Returns what has to be written, first things first.
    fn steps(&self, known: &Known) -> Vec<ClusterWrite> {
        let now = (self.clock)();
        match &self.role {
            Role::ControlPlane {
                evict_after,
                condition_taints,
            } => steps(&Situation {
                cluster: &known.cluster,
                namespace: known.namespace,
                is_targeted: known.is_targeted,
                observed: known.observed.as_ref(),
                silent_for: known.silent_for,
                unready_for: known.unready_for.unwrap_or_default(),
                evict_after: *evict_after,
                condition_taints,
                now,
            }),
            Role::Member(_) => {
                let observed = known.observed.iter().filter(|_| known.reports());
                observed
                    .flat_map(|observed| status(&known.cluster, observed, now))
                    .collect()
            }
        }
    }

    /// Returns the times until something follows from the passing of time alone.
    fn ends(&self, known: &Known) -> [Option<Duration>; 2] {
        let Role::ControlPlane { evict_after, .. } = &self.role else {
            return [None, None];
        };
        let evicts = evict_after.zip(known.unready_for);
        let is_silent = known.reports().then(|| {
            let patience = patience(condition(&known.cluster, READY));
            patience.checked_sub(known.silent_for)
        });
        [
            evicts.and_then(|(after, lasts)| after.checked_sub(lasts)),
            is_silent.flatten(),
        ]
    }

    /// Renews the heartbeat of the member in which the program runs, once that was found ready.
    async fn beat(&self, key: &Key, known: &Known) -> Result<(), WriteError> {
        let Role::Member(heartbeat) = &self.role else {
            return Ok(());
        };
        let ready = known.observed.iter().flat_map(|observed| &observed.ready);
        let is_ready = ready.into_iter().any(|ready| ready.status == TRUE);
        if !known.reports() || !(is_ready || heartbeat.due().is_some()) {
            return Ok(());
        }
        let now = (self.clock)();
        let renewed = heartbeat.renew(&self.writes, &*known.stored, now).await;
        if let Some(due) = heartbeat.due() {
            self.queue.add_at(key.clone(), due);
        }
        renewed
    }

    /// Performs a step, and returns `false` if nothing is to be written.
    async fn take(
        &self,
        name: &str,
        known: &Known,
        step: &ClusterWrite,
    ) -> Result<bool, WriteError> {
        let clusters: Api<ClusterView> = Api::all(self.client.clone());
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let (parameters, namespace) = (PatchParams::apply(NAME), execution_namespace(name));
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
                let call = self.write_status(&clusters, known, patch);
                self.writes.write("conditions", call).await?.is_some()
            }
            ClusterWrite::Status(patch) => {
                let call = self.write_status(&clusters, known, patch);
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

    /// Applies a merge patch to the status of a cluster.
    async fn write_status(
        &self,
        clusters: &Api<ClusterView>,
        known: &Known,
        patch: &Value,
    ) -> kube::Result<Stored> {
        let name = known.cluster.name();
        if let Role::ControlPlane { .. } = self.role {
            let patch = Patch::Merge(patch);
            return patch_status(clusters, name, &PatchParams::apply(NAME), &patch).await;
        }
        // Karmada grants its agents no patch. The object is as the server stores it, of the version that it names.
        let mut cluster = known.cluster.clone();
        json_patch::merge(&mut cluster, patch);
        replace_status(clusters, name, &cluster).await
    }
}
