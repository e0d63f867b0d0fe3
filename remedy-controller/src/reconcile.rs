//! Brings `status.remedyActions` of one cluster to what the remedies require.

use std::sync::Arc;

use karmada_api::{Cluster, TRAFFIC_CONTROL};
use karmada_runtime::contention::{Contention, find_rival};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::{Refusals, WriteErrorKind, Writer, patch_status};
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::events::Event;
use kube::{Api, Resource};
use objects::Key;
use prometheus_client::metrics::histogram::Histogram;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use traffic::remedy::{ActionChange, Allowance, Cause, RemedyPlan, observed, plan};

use crate::events::{
    action_changed, condition_changed, contested, kept_unblocked, refused, would_act,
};
use crate::index::Snapshot;
use crate::reason::Reason;
use crate::watch::SharedIndex;

/// The number of clusters in a page of a list. A cluster may have 100 kB.
const PAGE: u32 = 100;

/// Reconciles clusters.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) clusters: Api<Cluster>,
    /// The same, for a list in which an object may not decode.
    pub(crate) listed: Api<Decoded<Cluster>>,
    /// Held by the one reconcile that lists them.
    pub(crate) surveying: Mutex<()>,
    pub(crate) writer: Writer,
    pub(crate) events: EventRecorder,
    /// The clusters.
    pub(crate) queue: Queue<Key>,
    /// Who undoes our actions, by cluster.
    pub(crate) contention: Contention<Key>,
    /// What refuses our actions, by cluster.
    pub(crate) refusals: Refusals<Key>,
    /// The time from a change of conditions to the actions that follow.
    pub(crate) following: Histogram,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.begin_term()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        if self.index.needs_survey(key) {
            self.survey(key).await?;
        }
        let Some(snapshot) = self.index.snapshot(key) else {
            return Ok(());
        };
        self.explain(key, &snapshot);
        let remedies = snapshot.remedies.iter().map(|remedy| &**remedy);
        let allowance = Allowance {
            complete: snapshot.complete,
            may_block: snapshot.over_bound.is_none(),
        };
        let plan = plan(&snapshot.cluster, remedies, snapshot.now, allowance);
        // Before the write: its echo may arrive before its response.
        self.index.set_unsettled(key, plan != RemedyPlan::Unchanged);
        match plan {
            RemedyPlan::Unchanged => Ok(()),
            RemedyPlan::Write { actions, changes } => {
                self.apply(key, &snapshot, &actions, &changes).await
            }
        }
    }
}

impl Reconciler {
    /// Records what has changed about the cluster other than its actions.
    fn explain(&self, key: &Key, snapshot: &Snapshot) {
        let cluster = &snapshot.cluster;
        for condition in &snapshot.changed {
            self.record(cluster, condition_changed(condition));
        }
        let over_bound = &snapshot.over_bound;
        if self.index.note_over_bound(key, over_bound.is_some())
            && let Some(over_bound) = over_bound
        {
            tracing::warn!(cluster = key.name, reason = %over_bound, "Cluster kept unblocked");
            self.record(cluster, kept_unblocked(over_bound));
        }
        let remedies = snapshot.remedies.iter().map(|remedy| &**remedy);
        let observed = observed(cluster, remedies, snapshot.now);
        let names = observed.iter().map(|one| one.remedy.clone()).collect();
        let new = self.index.note_observing(key, names);
        for observed in observed.iter().filter(|one| new.contains(&one.remedy)) {
            tracing::info!(cluster = key.name, %observed, "Remedy would act");
            self.record(cluster, would_act(observed));
        }
    }

    /// Finds out which clusters are blocked, once in a term: what the former leader wrote last may not
    /// have reached the watch, and would not count in the bound.
    async fn survey(&self, key: &Key) -> Result<(), BoxError> {
        let _turn = self.surveying.lock().await;
        if !self.index.needs_survey(key) {
            return Ok(());
        }
        let mut blocked = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = self.listed.list(&page).await?;
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
        self.index.surveyed(blocked);
        Ok(())
    }

    async fn apply(
        &self,
        key: &Key,
        snapshot: &Snapshot,
        actions: &[String],
        changes: &[ActionChange],
    ) -> Result<(), BoxError> {
        // Absent rather than empty: a merge patch removes a field that is null (RFC 7396).
        let actions = json!((!actions.is_empty()).then_some(actions));
        let seen = snapshot.cluster.metadata.resource_version.as_deref();
        let begun = (self.contention).begin(key.clone(), &actions, seen, Instant::now());
        let attempt = match begun {
            Ok(attempt) => attempt,
            Err(backoff) => {
                if backoff.is_news {
                    self.report_contention(key, &snapshot.cluster).await;
                }
                self.queue.add_at(key.clone(), backoff.until);
                return Ok(());
            }
        };
        // No other writer has a right to this field, so a merge patch overwrites nobody's change. It carries no
        // resourceVersion: clusters change every few seconds and would make it a conflict each time,
        // while a decision on an older version is made again when the watch shows this write.
        let patch = Patch::Merge(json!({ "status": { "remedyActions": &actions } }));
        let parameters = PatchParams::default();
        let call = patch_status(&self.clusters, &key.name, &parameters, &patch);
        let written = self.writer.write("remedy_actions", call).await;
        if let Some(message) = self.refusals.note(key.clone(), &written) {
            let (reason, field) = (Reason::RemedyActionsRefused, "status.remedyActions");
            self.record(&snapshot.cluster, refused(reason, field, &message));
        }
        match written {
            Ok(stored) => self
                .contention
                .stored(attempt, stored.version(), Instant::now()),
            // The cluster was deleted meanwhile.
            Err(error) if error.kind() == WriteErrorKind::Missing => {
                self.refusals.forget(key);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        for change in changes {
            tracing::info!(cluster = key.name, %change, "Remedy actions changed");
            self.record(&snapshot.cluster, action_changed(change));
        }
        let by_condition = |change: &ActionChange| {
            matches!(
                change,
                ActionChange::Set {
                    cause: Cause::Conditions(_),
                    ..
                }
            )
        };
        if let Some(arrived) = snapshot.arrived
            && changes.iter().any(by_condition)
        {
            self.following.observe(arrived.elapsed().as_secs_f64());
        }
        self.index.followed(key);
        Ok(())
    }

    /// Records who undoes every write of the cluster's actions, if that can be found out.
    async fn report_contention(&self, key: &Key, cluster: &Cluster) {
        let actions = ["/status/remedyActions".to_owned()];
        let manager = find_rival(&self.clusters, &key.name, crate::identity::NAME, &actions).await;
        let manager = manager.as_deref().unwrap_or("another client");
        tracing::warn!(
            cluster = key.name,
            manager,
            "Another writer undoes every write of the actions, will write again after growing pauses"
        );
        self.record(cluster, contested(manager));
    }

    fn record(&self, cluster: &Cluster, event: Event) {
        self.events.record(cluster.object_ref(&()), event);
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
