//! Makes the writes that one cluster still needs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use karmada_api::condition::TRUE;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::Resource;
use objects::condition_taint::ConditionTaint;
use objects::write::{Guard, Write};
use objects::{Key, Metadata};
use parking_lot::Mutex;
use propagation_rules::cluster::{
    ClusterChange, READY, Situation, Step, condition, patience, status, steps,
};
use tokio::time::Instant;

use crate::events::changed;
use crate::heartbeat::Heartbeat;
use crate::index::{CLUSTER, Index, Known};

/// The place where the program runs, and its decisions there.
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
    pub(crate) committer: Committer,
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

    fn held_until(&self, key: &Key) -> Option<Instant> {
        match self.role {
            Role::ControlPlane { .. } => self.committer.held_until([Subject::new(CLUSTER, key)]),
            // A heartbeat waits for nothing, and each other write is of a version.
            Role::Member(_) => None,
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let known = self.index.lock().known(&key.name);
        let Some(known) = known else {
            return Ok(());
        };
        // Nothing that is refused may look like the silence of the member.
        let mut failed = self.beat(key, &known).await.err();
        let subject = Subject::new(CLUSTER, key);
        for step in self.steps(&known) {
            let Some(write) = step.writes.first() else {
                continue;
            };
            let write = self.granted(&known, write);
            match self.committer.write(&write, Some(&subject)).await {
                // The rest follows once the watch shows this one.
                Ok(Outcome::Stored(_)) => {
                    self.tell(&known, &step.events);
                    return Ok(());
                }
                // It was deleted meanwhile.
                Ok(Outcome::Gone(_)) => return Ok(()),
                Ok(_) => {}
                // The rest is of the same version.
                Err(error) if error.kind() == WriteErrorKind::Conflict => return Err(error.into()),
                // No step waits for another: one that fails must not hide the health.
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
    /// Returns the steps that are due, first things first.
    fn steps(&self, known: &Known) -> Vec<Step> {
        let now = (self.clock)();
        match &self.role {
            Role::ControlPlane {
                evict_after,
                condition_taints,
            } => steps(&Situation {
                cluster: &known.cluster,
                namespace: known.namespace.clone(),
                is_targeted: known.is_targeted,
                observed: known.observed.as_ref(),
                node_slices: known.node_slices.as_deref(),
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
        let renewed = heartbeat.renew(&self.committer, &*known.stored, now).await;
        if let Some(due) = heartbeat.due() {
            self.queue.add_at(key.clone(), due);
        }
        renewed
    }

    /// Tells the changes of a step.
    fn tell(&self, known: &Known, changes: &[ClusterChange]) {
        let Some(events) = &self.events else {
            return;
        };
        for change in changes {
            let event = changed(known.cluster.name(), change);
            events.record(known.stored.object_ref(&()), event);
        }
    }

    /// Returns a write as the program may send it.
    fn granted(&self, known: &Known, write: &Write) -> Write {
        if let Role::ControlPlane { .. } = self.role {
            return write.clone();
        }
        // Karmada grants its agents no patch. The object is as the server stores it, of the version that it names.
        let mut cluster = known.cluster.clone();
        json_patch::merge(&mut cluster, write.body());
        Write::replace(write.target, write.object.clone(), cluster)
            .of_status()
            .guarded(Guard::Version)
    }
}
