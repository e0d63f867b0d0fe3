//! Brings a load balancer to its desired state for one `MultiClusterIngress`, and releases those that
//! are not ours. Of several, each has a loop of its own. A load balancer that does not answer holds up nothing but this loop.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use objects::Key;
use serde_json::{Value, json};
use tokio::time::Instant;
use traffic::ingress::{
    Decision, Desired, FieldPlan, Problem, Release, Settings, StatusPatch, load_balancer,
};

use crate::backoff_writer::BackoffWriter;
use crate::events::{IngressEvents, obstacle};
use crate::grace::Grace;
use crate::ingresses::{Part, WriteOutcome};
use crate::metrics::Readmissions;
use crate::outage::Outage;
use crate::provider::{Ensured, LoadBalancer};
use crate::reports::Reports;
use crate::turns::{Turn, Turns};
use crate::watch::SharedIndex;

/// Reconciles one load balancer.
pub(crate) struct GatewayReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) settings: Settings,
    pub(crate) balancer: Arc<dyn LoadBalancer>,
    /// Its name, empty if it is the only one.
    pub(crate) name: &'static str,
    /// Its place among all.
    pub(crate) place: usize,
    pub(crate) reports: Arc<Reports>,
    pub(crate) parts: BackoffWriter,
    pub(crate) events: Arc<IngressEvents>,
    pub(crate) grace: Arc<Grace>,
    pub(crate) turns: Turns,
    pub(crate) outage: Arc<Outage>,
    pub(crate) readmissions: Readmissions,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for GatewayReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.outage.clear();
        self.reports.clear(self.place);
        self.readmissions.clear();
        self.grace.clear();
        let mut keys = self.index.keys();
        // Ingresses deleted while nobody led exist only there.
        keys.extend(self.balancer.keys());
        keys
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        match self.index.decide(key, &self.settings) {
            (None, Decision::Serve(_)) => Ok(()),
            (_, Decision::Leave) => self.leave(key).await,
            (_, Decision::Serve(_)) if !self.balancer.serves() => Ok(()),
            (Some(ingress), Decision::Serve(serve)) => {
                // Without our finalizer the ingress could be deleted with its objects left behind, so
                // it must be stored before the first of them. Those that exist are kept up to date.
                if serve.finalizers != FieldPlan::Unchanged && !self.balancer.holds(key) {
                    return Ok(());
                }
                self.serve(key, &ingress).await
            }
            (_, Decision::Release(_)) => self.release(key).await,
        }
    }
}

impl GatewayReconciler {
    async fn serve(&self, key: &Key, ingress: &MultiClusterIngress) -> Result<(), BoxError> {
        let desired = self
            .index
            .desired(key, ingress, self.clusters(key), &self.settings);
        let call = self.balancer.ensure(&self.parts.ingresses.writer, &desired);
        let Some(ensured) = self.unless_down(key, call).await else {
            return Ok(());
        };
        let ensured = ensured?;
        self.record(ingress, &desired, &ensured);
        let status = ingress.status.as_ref();
        let all = ensured.load_balancer.map(|reported| {
            let shown = status.and_then(|status| status.load_balancer.as_ref());
            self.reports.serves(key, self.place, reported, shown)
        });
        if let Some(all) = all
            && let FieldPlan::Write(wanted) = load_balancer(status, all)
        {
            let (part, status) = (Part::LoadBalancer, json!({ "loadBalancer": wanted }));
            let write = self.parts.write(ingress, part, status, &self.queue);
            write.await?;
        }
        // No event shows that an obstacle is gone, so it is an error that is retried.
        match ensured.obstacles.into_iter().next() {
            Some(obstacle) => Err(obstacle.into()),
            None => Ok(()),
        }
    }

    /// Removes endpoints of clusters that must get no request, and leaves everything else as it is.
    async fn leave(&self, key: &Key) -> Result<(), BoxError> {
        let held = self.balancer.endpoints(key);
        let cut = self.index.cut(key, held, &self.settings);
        if cut.is_empty() {
            return Ok(());
        }
        let call = self.balancer.cut(&self.parts.ingresses.writer, key, &cut);
        self.unless_down(key, call).await.unwrap_or(Ok(()))
    }

    /// Returns the member clusters that the load balancer holds endpoints of.
    fn clusters(&self, key: &Key) -> BTreeSet<String> {
        self.balancer
            .endpoints(key)
            .into_values()
            .flatten()
            .collect()
    }

    async fn release(&self, key: &Key) -> Result<(), BoxError> {
        let excluded = self.index.excluded(self.clusters(key));
        let deletion = self
            .balancer
            .delete(&self.parts.ingresses.writer, key, &excluded);
        let Some(ensured) = self.unless_down(key, deletion).await else {
            return Ok(());
        };
        let ensured = ensured?;
        let is_gone = self.index.decide(key, &self.settings).0.is_none();
        if !is_gone && !self.reports.holds_nothing(key, self.place) {
            // The last load balancer releases it.
            return Ok(());
        }
        let Some(_turn) = self.turns.take(key, Turn::Release(self.place), &self.queue) else {
            return Ok(());
        };
        // Decided again: the status loop may have held the turn meanwhile.
        let (ingress, Decision::Release(release)) = self.index.decide(key, &self.settings) else {
            self.queue.add(key.clone());
            return Ok(());
        };
        self.events.forget(key);
        self.grace.forget(key);
        self.readmissions.set(key, 0);
        self.parts.forget(key, &[Part::LoadBalancer]);
        if let Some(ingress) = ingress {
            return self.clean(key, &ingress, &release, &ensured).await;
        }
        self.parts.forget(key, &[Part::Release]);
        self.reports.forget(key);
        Ok(())
    }

    async fn clean(
        &self,
        key: &Key,
        ingress: &MultiClusterIngress,
        release: &Release,
        ensured: &Ensured,
    ) -> Result<(), BoxError> {
        // The finalizer goes last: the API server may delete the ingress in the same moment.
        let finalizers = match &release.finalizers {
            FieldPlan::Write(finalizers) => Some(json!(finalizers)),
            FieldPlan::Unchanged => None,
        };
        let mut finalizers_write = None;
        if let Some(finalizers) = finalizers {
            let begun = (self.parts).begin(ingress, Part::Release, &finalizers, &self.queue);
            match begun.await {
                Some(attempt) => finalizers_write = Some((attempt, finalizers)),
                None => return Ok(()),
            }
        }
        let mut version = ingress.metadata.resource_version.clone();
        if release.clears_status {
            let status = cleared(ensured)?;
            // Of this version, because the finalizers that follow were decided on it: another that was
            // added since must stay.
            let ingresses = &self.parts.ingresses;
            let written = ingresses.write_status(key, "status", version.as_deref(), status);
            match self.parts.told(ingress, Part::Status, written.await)? {
                WriteOutcome::Stored { version: stored } => version = stored,
                WriteOutcome::Gone => return Ok(()),
            }
        }
        if let Some((attempt, finalizers)) = finalizers_write {
            let ingresses = &self.parts.ingresses;
            let write = ingresses.write_finalizers(key, version.as_deref(), &finalizers);
            let outcome = self.parts.told(ingress, Part::Release, write.await)?;
            self.parts.end(attempt, &outcome);
            tracing::info!(ingress = %key, "Ingress let go");
        }
        Ok(())
    }

    /// Runs a call of the load balancer. Returns `None` while that is down.
    async fn unless_down<T>(
        &self,
        key: &Key,
        call: impl Future<Output = Result<T, BoxError>>,
    ) -> Option<Result<T, BoxError>> {
        let result = self.outage.unless_down(key, call).await?;
        if let Err(error) = &result
            && self.balancer.is_outage(error)
        {
            self.outage.suspect(key);
        }
        Some(result)
    }

    /// Records readmissions, and the obstacles in the ingress itself and in the load balancer.
    fn record(&self, ingress: &MultiClusterIngress, desired: &Desired, ensured: &Ensured) {
        let problems = desired.problems();
        let readmitted = problems
            .iter()
            .filter(|problem| matches!(problem, Problem::Readmitted { .. }));
        self.readmissions.set(&desired.key, readmitted.count());
        let (problems, due) = self.grace.lasting(&desired.key, problems, Instant::now());
        if let Some(due) = due {
            self.queue.add_at(desired.key.clone(), due);
        }
        let problems = problems
            .iter()
            .map(|problem| obstacle(problem, &desired.key));
        self.events.obstacles(ingress, None, &problems.collect());
        let met = ensured.obstacles.iter().cloned().map(|mut obstacle| {
            if !self.name.is_empty() {
                obstacle.message = format!("gateway {}: {}", self.name, obstacle.message);
            }
            obstacle
        });
        self.events
            .obstacles(ingress, Some(self.place), &met.collect());
    }
}

/// Returns the merge patch that clears our part of a status. The addresses are ours only if the load
/// balancer is.
fn cleared(ensured: &Ensured) -> serde_json::Result<Value> {
    let mut status = serde_json::to_value(StatusPatch::default())?;
    if ensured.load_balancer.is_some() {
        status["loadBalancer"] = Value::Null;
    }
    Ok(status)
}
