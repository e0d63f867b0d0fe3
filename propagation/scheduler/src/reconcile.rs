//! Brings the clusters of one binding to what its placement requires.

mod estimate;
mod quota;
mod rival;

use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::{ClusterResourceBinding, ResourceBinding, TargetCluster};
use karmada_runtime::contention::Contention;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind, WriteMode};
use kube::api::{Patch, PatchParams};
use kube::runtime::events::Event;
use kube::{Api, Client, Resource};
use objects::Key;
use objects::patch::JsonPatch;
use parking_lot::Mutex;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::{
    Estimates, Pass, SchedulePlan, SpecWrite, StatusWrite, next_due, plan,
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use self::quota::quota_exceeded;
use crate::binding::AnyBinding;
use crate::estimators::Estimators;
use crate::events;
use crate::identity::NAME;
use crate::index::{Index, Snapshot};

/// Reconciles bindings.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queue: Queue<Key>,
    /// `None` while none is asked.
    pub(crate) estimators: Option<Estimators>,
    pub(crate) client: Client,
    pub(crate) writes: WriteMode,
    /// `None` while only observing.
    pub(crate) events: Option<EventRecorder>,
    /// Who undoes our clusters, by binding.
    pub(crate) contention: Contention<Key>,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let mut index = self.index.lock();
        index.begin_term();
        index.keys()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        self.update(|index| index.end_assumptions(key));
        let asked = self.estimate(key).await;
        let estimates = asked.as_ref().map(|asked| &asked.estimates);
        let decided = self.decide(key, estimates);
        // What was decided counts from now on: the next one may ask.
        drop(asked);
        let Some((snapshot, plan)) = decided else {
            self.index.lock().forget(key);
            self.contention.forget(key);
            return Ok(());
        };
        let message = match &plan {
            SchedulePlan::LeftAlone { message } => Some(message.as_str()),
            SchedulePlan::Unchanged
            | SchedulePlan::EndEvictions(_)
            | SchedulePlan::Write { .. } => None,
        };
        let is_news = self.index.lock().note_left_alone(key, message);
        if let Some(message) = message.filter(|_| is_news) {
            tracing::warn!(binding = %key, message, "Binding left alone");
            self.record(&snapshot.binding, || events::failed(message));
        }
        match plan {
            SchedulePlan::Unchanged | SchedulePlan::LeftAlone { .. } => {}
            SchedulePlan::EndEvictions(patch) => self.end_evictions(key, patch).await?,
            SchedulePlan::Write { spec, status } => {
                let binding = &snapshot.binding;
                if !self.apply(key, binding, spec, status).await? {
                    return Ok(());
                }
            }
        }
        self.index.lock().settle(key, &snapshot);
        self.wake_when_due(key, &snapshot);
        Ok(())
    }
}

impl Reconciler {
    /// Changes the index, and wakes the bindings that `change` returns.
    fn update(&self, change: impl FnOnce(&mut Index) -> Vec<Key>) {
        let woken = change(&mut self.index.lock());
        self.queue.add_all(woken);
    }

    /// Returns a snapshot of the binding `key` with what is decided on it, and `None` if it does not exist.
    fn decide(&self, key: &Key, estimates: Option<&Estimates>) -> Option<(Snapshot, SchedulePlan)> {
        let mut index = self.index.lock();
        let snapshot = index.snapshot(key)?;
        if !snapshot.depends_on_others() {
            drop(index);
            let plan = self.plan(&snapshot, estimates);
            return Some((snapshot, plan));
        }
        // The next one decides once this decision counts: both would find the same cluster free.
        let plan = self.plan(&snapshot, estimates);
        let woken = index.decide(&snapshot.binding, &plan);
        drop(index);
        self.queue.add_all(woken);
        Some((snapshot, plan))
    }

    fn plan(&self, snapshot: &Snapshot, estimates: Option<&Estimates>) -> SchedulePlan {
        let clusters = snapshot.clusters();
        let (fleet, pass) = (snapshot.fleet(&clusters), self.pass(snapshot, estimates));
        plan(&snapshot.scheduler, snapshot.binding.view(), fleet, pass)
    }

    fn pass<'a>(&self, snapshot: &'a Snapshot, estimates: Option<&'a Estimates>) -> Pass<'a> {
        Pass {
            now: (self.clock)(),
            cluster_changed: snapshot.cluster_changed,
            neighbours: snapshot.neighbours.as_ref(),
            assumed: snapshot.assumed.as_ref(),
            estimates,
        }
    }

    /// Wakes the binding `key` when it is due by itself, or something that is assumed of it ends.
    fn wake_when_due(&self, key: &Key, snapshot: &Snapshot) {
        let clusters = snapshot.clusters();
        let now = (self.clock)();
        let scheduler = &snapshot.scheduler;
        let next = next_due(scheduler, snapshot.binding.view(), &clusters, now);
        let next_end = self.index.lock().next_end(key);
        if let Some(at) = next.into_iter().chain(next_end).min() {
            self.queue.add_at_time(key.clone(), at, now);
        }
    }

    async fn end_evictions(&self, key: &Key, patch: JsonPatch) -> Result<(), BoxError> {
        let (client, patch) = (self.client.clone(), Patch::<()>::from(patch));
        let parameters = PatchParams::apply(NAME);
        let ended = if key.namespace.is_empty() {
            let api: Api<ClusterResourceBinding> = Api::all(client);
            let call = api.patch_metadata(&key.name, &parameters, &patch);
            self.writes.write("evictions", call).await.map(drop)
        } else {
            let api: Api<ResourceBinding> = Api::namespaced(client, &key.namespace);
            let call = api.patch_metadata(&key.name, &parameters, &patch);
            self.writes.write("evictions", call).await.map(drop)
        };
        match ended {
            Err(error) if error.kind() != WriteErrorKind::Missing => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Carries out a decision. Returns `false` during a pause.
    async fn apply(
        &self,
        key: &Key,
        binding: &AnyBinding,
        spec: Option<SpecWrite>,
        status: Option<StatusWrite>,
    ) -> Result<bool, BoxError> {
        let client = self.client.clone();
        let applied = match binding {
            AnyBinding::Namespaced(_) => {
                let api: Api<ResourceBinding> = Api::namespaced(client, &key.namespace);
                self.apply_with(&api, key, binding, spec.as_ref(), status.as_ref())
                    .await
            }
            AnyBinding::ClusterScoped(_) => {
                let api: Api<ClusterResourceBinding> = Api::all(client);
                self.apply_with(&api, key, binding, spec.as_ref(), status.as_ref())
                    .await
            }
        };
        match applied {
            // The binding was deleted meanwhile.
            Err(error) if is_missing(&error) => Ok(true),
            applied => applied,
        }
    }

    /// Writes the clusters, then the status with the generation that the first write made. Returns `false` during a pause.
    async fn apply_with<K>(
        &self,
        api: &Api<K>,
        key: &Key,
        binding: &AnyBinding,
        spec: Option<&SpecWrite>,
        status: Option<&StatusWrite>,
    ) -> Result<bool, BoxError>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
        for<'a> &'a K: Into<BindingRef<'a>>,
    {
        let mut written: Option<K> = None;
        if let Some(spec) = spec {
            let Some(attempt) = self.begin(api, key, binding, spec).await else {
                return Ok(false);
            };
            let patch: Patch<()> = spec.patch(binding.view()).into();
            let parameters = PatchParams::apply(NAME);
            let call = api.patch(&key.name, &parameters, &patch);
            written = match self.writes.write("clusters", call).await {
                Ok(response) => {
                    let generation = response.as_ref().and_then(|new| new.meta().generation);
                    self.update(|index| index.written(key, generation));
                    if let Some(stored) = &response {
                        let version = stored.meta().resource_version.clone();
                        self.contention.stored(attempt, version, Instant::now());
                    }
                    response
                }
                Err(error) => {
                    // Without an answer it may have been written all the same.
                    if matches!(error, WriteError::Api(kube::Error::Api(_))) {
                        self.update(|index| index.assume(key, None));
                    }
                    if let Some(refused) = quota_exceeded(binding.view(), &error, (self.clock)()) {
                        self.write_status(api, key, binding.view(), &refused)
                            .await?;
                        self.announce_failure(key, binding, &refused);
                    }
                    // No watch shows that a quota has grown: only a retry does.
                    return Err(error.into());
                }
            };
        }
        // The status may be refused, and be written later without the clusters.
        if let (Some(spec), Some(StatusWrite::Scheduled { .. })) = (spec, status) {
            self.announce_clusters(key, binding, spec);
        }
        let Some(status) = status else {
            return Ok(true);
        };
        let current = written.as_ref().map_or_else(|| binding.view(), Into::into);
        self.write_status(api, key, current, status).await?;
        self.announce_failure(key, binding, status);
        Ok(true)
    }

    /// Writes the status of the binding `key`, whose newest known version is `current`.
    async fn write_status<K>(
        &self,
        api: &Api<K>,
        key: &Key,
        current: BindingRef<'_>,
        status: &StatusWrite,
    ) -> Result<(), BoxError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let metadata = current.metadata;
        let version = metadata.resource_version.as_deref();
        let patch = status.patch(current.status, metadata.generation, version);
        let patch: Patch<()> = patch.into();
        let parameters = PatchParams::apply(NAME);
        let call = api.patch_status(&key.name, &parameters, &patch);
        self.writes.write("status", call).await?;
        Ok(())
    }

    /// Records the clusters that a binding has got, and those that it leaves.
    fn announce_clusters(&self, key: &Key, binding: &AnyBinding, spec: &SpecWrite) {
        for task in &spec.evictions {
            tracing::info!(binding = %key, cluster = task.from_cluster, "Binding evicted");
            self.record(binding, || events::evicted(task));
        }
        if let Some(clusters) = &spec.clusters {
            let names: Vec<&str> = clusters.iter().map(name).collect();
            tracing::info!(binding = %key, clusters = ?names, "Binding scheduled");
            self.record(binding, || events::scheduled(clusters));
        }
    }

    /// Records that a binding could not be scheduled.
    fn announce_failure(&self, key: &Key, binding: &AnyBinding, status: &StatusWrite) {
        if let StatusWrite::Failed {
            reason, message, ..
        } = status
        {
            tracing::warn!(binding = %key, reason, message, "Binding not scheduled");
            self.record(binding, || events::failed(message));
        }
    }

    fn record(&self, binding: &AnyBinding, event: impl Fn() -> Event) {
        if let Some(events) = &self.events {
            events.record(binding.reference(), event());
            events.record(binding.template(), event());
        }
    }
}

fn name(target: &TargetCluster) -> &str {
    &target.name
}

fn is_missing(error: &BoxError) -> bool {
    let error = error.downcast_ref::<WriteError>();
    error.is_some_and(|error| error.kind() == WriteErrorKind::Missing)
}

#[cfg(test)]
mod tests;
