//! The questions to estimators before a decision.

use karmada_api::ClusterView;
use objects::{Key, Metadata};
use propagation_rules::schedule::{Estimates, clusters_to_ask};
use tokio::sync::MutexGuard;

use super::Reconciler;
use crate::index::Snapshot;

/// The answers of estimators, and the turn in which they were asked.
pub(super) struct Asked<'a> {
    pub(super) estimates: Estimates,
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Reconciler {
    /// Asks the estimators of the clusters whose room decides about the binding `key`; `None` if there are none to ask.
    pub(super) async fn estimate(&self, key: &Key) -> Option<Asked<'_>> {
        let estimators = self.estimators.as_ref()?;
        let mut snapshot = self.index.lock().snapshot(key)?;
        let mut turn = None;
        if snapshot.assumed.is_some() {
            if self.to_ask(&snapshot, &snapshot.clusters()).is_empty() {
                return None;
            }
            // An answer leaves out the assumptions of the moment of its question: nobody else asks before this one has decided.
            turn = Some(estimators.turn().await);
            snapshot = self.index.lock().snapshot(key)?;
        }
        let clusters = snapshot.clusters();
        let asked = self.to_ask(&snapshot, &clusters);
        if asked.is_empty() {
            return None;
        }
        estimators.retain(clusters.iter().map(|cluster| cluster.metadata.name()));
        let spec = snapshot.binding.view().spec;
        let estimates = estimators.ask(spec, &asked, snapshot.assumed.as_ref());
        Some(Asked {
            estimates: estimates.await,
            _turn: turn,
        })
    }

    fn to_ask<'a>(
        &self,
        snapshot: &Snapshot,
        clusters: &'a [&'a ClusterView],
    ) -> Vec<&'a ClusterView> {
        let (fleet, pass) = (snapshot.fleet(clusters), self.pass(snapshot, None));
        let binding = snapshot.binding.view();
        clusters_to_ask(&snapshot.scheduler, binding, fleet, pass)
    }
}
