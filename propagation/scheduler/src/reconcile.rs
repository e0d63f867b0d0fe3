//! Brings the clusters of one binding to those that its placement requires.

mod estimate;
mod quota;

use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::TargetCluster;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteError;
use kube::runtime::events::Event;
use objects::Key;
use objects::write::{ObjectRef, Write};
use parking_lot::Mutex;
use propagation_rules::schedule::{
    Estimates, Pass, SchedulePlan, SpecWrite, StatusWrite, next_due, plan,
};
use tokio::time::Instant;

use self::quota::quota_exceeded;
use crate::binding::AnyBinding;
use crate::estimators::Estimators;
use crate::events;
use crate::index::{BINDING, Index, Snapshot};

/// Reconciles bindings.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queue: Queue<Key>,
    /// `None` while none is asked.
    pub(crate) estimators: Option<Estimators>,
    pub(crate) committer: Committer,
    /// `None` while only observing.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let mut index = self.index.lock();
        index.begin_term();
        index.keys()
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.committer.held_until([Subject::new(BINDING, key)])
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        self.update(|index| index.end_assumptions(key));
        let asked = self.estimate(key).await;
        let estimates = asked.as_ref().map(|asked| &asked.estimates);
        let decided = self.decide(key, estimates);
        // The decision counts from now on: the next one may ask.
        drop(asked);
        let Some((snapshot, plan)) = decided else {
            self.index.lock().forget(key);
            for target in ["clusters", "evictions", "status", "trigger"] {
                self.committer.forget(target, key);
            }
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
        let binding = &snapshot.binding;
        match plan {
            SchedulePlan::Unchanged | SchedulePlan::LeftAlone { .. } => {}
            SchedulePlan::EndEvictions(write) => {
                self.write(key, &write).await?;
            }
            SchedulePlan::Write { spec, status } => {
                let applied = self.apply(key, binding, spec.as_ref(), status.as_ref());
                if !applied.await? {
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

    /// Returns a snapshot of the binding `key` with the decision on it, and `None` if it does not exist.
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
            affinity_groups: snapshot.affinity_groups.as_ref(),
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

    /// Writes the clusters, then the status with the generation that the first write made. Returns `false` during a pause.
    async fn apply(
        &self,
        key: &Key,
        binding: &AnyBinding,
        spec: Option<&SpecWrite>,
        status: Option<&StatusWrite>,
    ) -> Result<bool, BoxError> {
        let mut object = binding.object();
        if let Some(spec) = spec {
            let write = spec.write(object.clone(), binding.view());
            match self.write(key, &write).await {
                Ok(Outcome::Contended(until)) => {
                    self.update(|index| index.assume(key, None));
                    self.queue.add_at(key.clone(), until);
                    return Ok(false);
                }
                // The binding was deleted meanwhile.
                Ok(Outcome::Gone(_)) => {
                    self.update(|index| index.assume(key, None));
                    return Ok(true);
                }
                Ok(Outcome::Stored(stored)) => {
                    self.update(|index| index.written(&write, Some(&stored)));
                    object = stored;
                }
                Ok(_) => self.update(|index| index.written(&write, None)),
                Err(error) => {
                    // Without an answer it may have been written all the same.
                    if matches!(error, WriteError::Api(kube::Error::Api(_))) {
                        self.update(|index| index.assume(key, None));
                    }
                    if let Some(refused) = quota_exceeded(binding.view(), &error, (self.clock)()) {
                        self.write_status(key, binding, object, &refused).await?;
                    }
                    // No watch shows that a quota has grown: only a retry does.
                    return Err(error.into());
                }
            }
            // The status may be refused, and be written later without the clusters.
            if let Some(StatusWrite::Scheduled { .. }) = status {
                self.announce_clusters(key, binding, spec);
            }
        }
        if let Some(status) = status {
            self.write_status(key, binding, object, status).await?;
        }
        Ok(true)
    }

    /// Writes the status of a binding, which is `object` by now.
    async fn write_status(
        &self,
        key: &Key,
        binding: &AnyBinding,
        object: ObjectRef,
        status: &StatusWrite,
    ) -> Result<(), WriteError> {
        let write = status.write(object, binding.view().status);
        let outcome = self.write(key, &write).await?;
        if !matches!(outcome, Outcome::Gone(_)) {
            self.announce_failure(key, binding, status);
        }
        Ok(())
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Outcome, WriteError> {
        let subject = Subject::new(BINDING, key);
        self.committer.write(write, Some(&subject)).await
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
            events::record(events, binding, event);
        }
    }
}

fn name(target: &TargetCluster) -> &str {
    &target.name
}

#[cfg(test)]
mod tests;
