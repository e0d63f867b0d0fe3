//! Brings the actions of one cluster to those that the remedies require.

use std::sync::Arc;

use karmada_api::{Cluster, TRAFFIC_CONTROL};
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use karmada_runtime::watch::Decoded;
use kube::api::ListParams;
use kube::runtime::events::Event;
use objects::Key;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;
use traffic::remedy::{ActionChange, Allowance, Cause, observed, plan};

use crate::clusters::Clusters;
use crate::events::{action_changed, condition_changed, kept_unblocked, would_act};
use crate::index::{CLUSTER, Index, Snapshot};
use crate::watch::Queues;

/// The number of clusters in a page of a list. A cluster may have 100 kB.
const PAGE: u32 = 100;

/// Reconciles clusters.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) clusters: Clusters,
    /// Held by the one reconcile that lists them.
    pub(crate) surveying: tokio::sync::Mutex<()>,
    pub(crate) committer: Committer,
    pub(crate) events: EventRecorder,
    pub(crate) queues: Queues,
    /// The time from a change of conditions to the actions that follow.
    pub(crate) following: Histogram,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let mut index = self.index.lock();
        index.begin_term();
        self.queues.remedies.add_all(index.take_concerned());
        index.keys()
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.committer.held_until([Subject::new(CLUSTER, key)])
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let needs_survey = self.index.lock().needs_survey(key);
        if needs_survey {
            self.survey(key).await?;
        }
        let snapshot = self.index.lock().snapshot(key);
        let Some(snapshot) = snapshot else {
            return Ok(());
        };
        self.explain(key, &snapshot);
        let remedies = snapshot.remedies.iter().map(|remedy| &**remedy);
        let allowance = Allowance {
            complete: snapshot.complete,
            may_block: snapshot.over_bound.is_none(),
        };
        let plan = plan(&snapshot.cluster, remedies, snapshot.now, allowance);
        let written = self.clusters.write(&key.name, plan, snapshot.now).await?;
        let Some((write, changes)) = written else {
            self.index.lock().followed(key);
            return Ok(());
        };
        let subject = Subject::new(CLUSTER, key);
        match self.committer.write(&write, Some(&subject)).await? {
            Outcome::Contended(until) => self.queues.clusters.add_at(key.clone(), until),
            outcome if outcome.is_stored() => {
                self.follow(key, &snapshot, &changes);
                // Once the watch shows the write, or that it was undone: which may look as it did before (karmada#7776).
                self.queues.clusters.add(key.clone());
            }
            _ => {}
        }
        Ok(())
    }
}

impl Reconciler {
    /// Records the changes of the cluster other than those of its actions.
    fn explain(&self, key: &Key, snapshot: &Snapshot) {
        let cluster = &snapshot.cluster;
        for condition in &snapshot.changed {
            self.record(cluster, condition_changed(condition));
        }
        let over_bound = &snapshot.over_bound;
        let is_new = (self.index.lock()).note_over_bound(key, over_bound.is_some());
        if is_new && let Some(over_bound) = over_bound {
            tracing::warn!(cluster = key.name, reason = %over_bound, "Cluster kept unblocked");
            self.record(cluster, kept_unblocked(over_bound));
        }
        let remedies = snapshot.remedies.iter().map(|remedy| &**remedy);
        let observed = observed(cluster, remedies, snapshot.now);
        let names = observed.iter().map(|one| one.remedy.clone()).collect();
        let new = self.index.lock().note_observing(key, names);
        for observed in observed.iter().filter(|one| new.contains(&one.remedy)) {
            tracing::info!(cluster = key.name, %observed, "Remedy would act");
            self.record(cluster, would_act(observed));
        }
    }

    /// Finds out which clusters are blocked, once in a term: the last writes of the former leader may not
    /// have reached the watch, and would not count in the bound.
    async fn survey(&self, key: &Key) -> Result<(), BoxError> {
        let _turn = self.surveying.lock().await;
        let needs_survey = self.index.lock().needs_survey(key);
        if !needs_survey {
            return Ok(());
        }
        let mut blocked = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = self.clusters.list(&page).await?;
            blocked.extend(list.items.into_iter().filter_map(|cluster| match cluster {
                Decoded::Valid(cluster) => Some(cluster).filter(is_blocked),
                // Its last good version counts.
                Decoded::Invalid { .. } => None,
            }));
            match list.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => page = page.continue_token(&next),
                None => break,
            }
        }
        let mut index = self.index.lock();
        self.queues.clusters.add_all(index.surveyed(blocked));
        self.queues.remedies.add_all(index.take_concerned());
        Ok(())
    }

    /// Records that the actions of a cluster have changed.
    fn follow(&self, key: &Key, snapshot: &Snapshot, changes: &[ActionChange]) {
        for change in changes {
            tracing::info!(cluster = key.name, %change, "Remedy actions changed");
            self.record(&snapshot.cluster, action_changed(change));
        }
        let is_by_condition = changes.iter().any(|change| {
            matches!(
                change,
                ActionChange::Set {
                    cause: Cause::Conditions(_),
                    ..
                }
            )
        });
        if let Some(arrived) = snapshot.arrived
            && is_by_condition
        {
            self.following.observe(arrived.elapsed().as_secs_f64());
        }
        self.index.lock().followed(key);
    }

    fn record(&self, cluster: &Cluster, event: Event) {
        self.events.record(self.clusters.reference(cluster), event);
    }
}

fn is_blocked(cluster: &Cluster) -> bool {
    cluster
        .remedy_actions()
        .iter()
        .any(|action| action == TRAFFIC_CONTROL)
}

#[cfg(test)]
mod tests;
