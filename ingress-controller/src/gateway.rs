//! Brings a load balancer to its desired state for one `MultiClusterIngress`, and releases those that
//! are not ours. Of several, each has a loop of its own. A load balancer that does not answer holds up nothing but this loop.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::MultiClusterIngress;
use karmada_runtime::commit::Outcome;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteErrorKind;
use objects::Key;
use objects::write::Write;
use serde_json::{Value, json};
use tokio::time::Instant;
use traffic::ingress::http_route::{RouteReport, as_shown, route_of};
use traffic::ingress::{
    Decision, Desired, Problem, Release, Settings, StatusPatch, cut_of_left, excluded,
    load_balancer,
};

use crate::events::{IngressEvents, Place, failure, obstacle};
use crate::grace::{GRACE, Grace};
use crate::ingresses::{Ingresses, Part, finalizers, status};
use crate::metrics::Readmissions;
use crate::outage::Outage;
use crate::provider::{Ensured, LoadBalancer, Obstacle};
use crate::reason::Reason;
use crate::reports::Reports;
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
    pub(crate) ingresses: Ingresses,
    pub(crate) events: Arc<IngressEvents>,
    pub(crate) grace: Arc<Grace>,
    pub(crate) outage: Arc<Outage>,
    pub(crate) readmissions: Readmissions,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
}

impl Controller for GatewayReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.outage.clear();
        self.index
            .enforcement
            .clear(Place::LoadBalancer(self.place));
        self.reports.clear(self.place);
        self.readmissions.clear();
        self.grace.clear();
        let mut keys = self.index.keys();
        // Ingresses deleted while nobody led exist only there.
        keys.extend(self.balancer.keys());
        keys
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        // Before the decision, which may miss changes from now on.
        let arrived = self
            .index
            .enforcement
            .take(Place::LoadBalancer(self.place), key);
        match self.index.decide(key, &self.settings) {
            (None, Decision::Serve(_)) => Ok(()),
            (_, Decision::Leave) => self.leave(key).await,
            (_, Decision::Serve(_)) if !self.balancer.serves() => Ok(()),
            (Some(ingress), Decision::Serve(serve)) => {
                // Without our finalizer the ingress could be deleted with its objects left behind, so
                // it must be stored before the first of them. Those that exist are kept up to date.
                if serve.finalizers.is_some() && !self.balancer.holds(key) {
                    return Ok(());
                }
                self.serve(key, &ingress, arrived).await
            }
            (_, Decision::Release(_)) => self.release(key).await,
        }
    }
}

impl GatewayReconciler {
    /// Brings the load balancer to the desired state, after a change of admissions that had `arrived`.
    async fn serve(
        &self,
        key: &Key,
        ingress: &MultiClusterIngress,
        arrived: Option<Instant>,
    ) -> Result<(), BoxError> {
        let desired = self
            .index
            .desired(key, ingress, self.clusters(key), &self.settings);
        self.record_problems(ingress, &desired);
        let call = self.balancer.ensure(&desired);
        let ensured = match self.unless_down(key, call).await {
            Some(Ok(ensured)) => ensured,
            Some(Err(error)) => {
                self.record_failure(ingress, arrived, &error);
                return Err(error);
            }
            None => {
                self.record_silence(ingress, arrived);
                return Ok(());
            }
        };
        self.follow(key, arrived, &ensured.obstacles);
        self.record_obstacles(ingress, ensured.obstacles.clone());
        let status = ingress.status.as_ref();
        if let Some(reported) = ensured.load_balancer {
            let shown = status.and_then(|status| status.load_balancer.as_ref());
            let all = self.reports.serves(key, self.place, reported, shown);
            self.show_addresses(key, ingress, all).await?;
        }
        // No event shows that an obstacle is gone, so it is an error that is retried.
        match ensured.obstacles.into_iter().next() {
            Some(obstacle) => Err(obstacle.into()),
            None => Ok(()),
        }
    }

    /// Writes the addresses of all load balancers to the status.
    async fn show_addresses(
        &self,
        key: &Key,
        ingress: &MultiClusterIngress,
        all: IngressLoadBalancerStatus,
    ) -> Result<(), BoxError> {
        let (shown, part) = (ingress.status.as_ref(), Part::LoadBalancer);
        let shown = shown.and_then(|status| status.load_balancer.as_ref());
        if route_of(key).is_none() {
            let wanted = load_balancer(all);
            if wanted.as_ref() != shown {
                let write = status(ingress, part, &json!({ "loadBalancer": wanted }));
                let write = self.ingresses.write(ingress, &write, &self.queue);
                write.await?;
            }
            return Ok(());
        }
        let wanted = load_balancer(as_shown(&all));
        if wanted.as_ref() != shown
            && let Some(report) = self.index.read(|index| {
                let route = index.route(key)?;
                route.addresses(&index.routes, wanted.as_ref())
            })
        {
            let write = (self.ingresses).write_report(ingress, part, &report, &self.queue);
            write.await?;
        }
        Ok(())
    }

    /// Removes endpoints of clusters that must get no request, and leaves everything else as it is.
    async fn leave(&self, key: &Key) -> Result<(), BoxError> {
        let held = self.balancer.endpoints(key);
        let cut = self.index.read(|index| {
            let ingress = index.get(key).map(AsRef::as_ref);
            cut_of_left(ingress, held, index, &self.settings)
        });
        if cut.is_empty() {
            return Ok(());
        }
        let call = self.balancer.cut(key, &cut);
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
        let held = self.clusters(key);
        let excluded = self.index.read(|index| excluded(held, &[], index));
        let deletion = self.balancer.delete(key, &excluded);
        let Some(ensured) = self.unless_down(key, deletion).await else {
            return Ok(());
        };
        let ensured = ensured?;
        self.index.enforcement.forget(self.place, key);
        let is_gone = self.index.decide(key, &self.settings).0.is_none();
        if !is_gone && !self.reports.holds_nothing(key, self.place) {
            // The last load balancer releases it.
            return Ok(());
        }
        // Decided again: the load balancer has taken its time.
        let (ingress, Decision::Release(release)) = self.index.decide(key, &self.settings) else {
            self.queue.add(key.clone());
            return Ok(());
        };
        self.events.forget(key);
        self.grace.forget(key);
        self.readmissions.set(key, 0);
        self.ingresses.forget(key, &[Part::LoadBalancer]);
        if let Some(ingress) = ingress {
            return self.clean(key, &ingress, &release, &ensured).await;
        }
        self.ingresses.forget(key, &[Part::Release]);
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
        let wanted = release.finalizers.as_ref();
        let finalizers = wanted.map(|wanted| finalizers(ingress, Part::Release, wanted));
        let committer = &self.ingresses.committer;
        if let Some(write) = &finalizers
            && let Some(until) = committer.paused_until(write).await
        {
            self.queue.add_at(key.clone(), until);
            return Ok(());
        }
        let mut version = ingress.metadata.resource_version.clone();
        if release.clears_status
            && let Some(write) = self.clearing(key, ingress, ensured).await?
        {
            match committer.write(&write, None).await? {
                Outcome::Stored(stored) => version = stored.version,
                Outcome::Gone(_) => return Ok(()),
                _ => {}
            }
        }
        // The finalizer goes last: the API server may delete the ingress in the same moment.
        if let Some(mut write) = finalizers {
            write.object.version = version;
            let write = self.ingresses.write(ingress, &write, &self.queue);
            if write.await?.is_stored() {
                tracing::info!(ingress = %key, "Ingress let go");
            }
        }
        Ok(())
    }

    /// Returns the write that clears our part of the status, if there is one. Of this version, because the finalizers that
    /// follow were decided on it: another that was added since must stay. They pause for both where another client undoes them.
    async fn clearing(
        &self,
        key: &Key,
        ingress: &MultiClusterIngress,
        ensured: &Ensured,
    ) -> Result<Option<Write>, BoxError> {
        let write = if route_of(key).is_some() {
            let nothing = RouteReport::default();
            match (self.ingresses)
                .report(ingress, Part::Status, &nothing)
                .await
            {
                Err(error) if error.kind() == WriteErrorKind::Missing => None,
                write => write?,
            }
        } else {
            Some(status(ingress, Part::Status, &cleared(ensured)?))
        };
        Ok(write.map(|mut write| {
            write
                .object
                .version
                .clone_from(&ingress.metadata.resource_version);
            write.wanted = None;
            write
        }))
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

    /// Records readmissions, and the obstacles in the ingress itself: they are known whatever the load balancer answers.
    fn record_problems(&self, ingress: &MultiClusterIngress, desired: &Desired) {
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
        self.events
            .obstacles(ingress, Place::Ingress, &problems.collect());
    }

    /// Records the obstacles in the load balancer.
    fn record_obstacles(&self, ingress: &MultiClusterIngress, met: BTreeSet<Obstacle>) {
        let met = met.into_iter().map(|mut obstacle| {
            if !self.name.is_empty() {
                obstacle.message = format!("gateway {}: {}", self.name, obstacle.message);
            }
            obstacle
        });
        let place = Place::LoadBalancer(self.place);
        self.events.obstacles(ingress, place, &met.collect());
    }

    /// Records that the load balancer does not answer.
    fn record_silence(&self, ingress: &MultiClusterIngress, arrived: Option<Instant>) {
        let key = Key::of(ingress);
        let note =
            "the load balancer does not answer; until it does, what it serves stays as it was";
        let met = BTreeSet::from([failure(Reason::LoadBalancerSilent, &key, note.to_owned())]);
        self.follow(&key, arrived, &met);
        self.record_obstacles(ingress, met);
    }

    /// Records that calls of the load balancer fail, once that has lasted: most errors are gone with the next try.
    fn record_failure(
        &self,
        ingress: &MultiClusterIngress,
        arrived: Option<Instant>,
        error: &BoxError,
    ) {
        let key = Key::of(ingress);
        let error = Chain(&**error);
        let note = format!("the load balancer is not up to date, and is tried again: {error}");
        let met = BTreeSet::from([failure(Reason::LoadBalancerFailing, &key, note)]);
        if self.follow(&key, arrived, &met) >= GRACE {
            self.record_obstacles(ingress, met);
        }
    }

    /// Takes in whether the load balancer has followed a change of admissions that had `arrived`. Returns how long it has
    /// not.
    fn follow(&self, key: &Key, arrived: Option<Instant>, met: &BTreeSet<Obstacle>) -> Duration {
        let reasons = met.iter().map(|obstacle| obstacle.reason);
        let reasons = reasons.filter(|reason| reason.delays_enforcement());
        let enforcement = &self.index.enforcement;
        enforcement.followed(self.place, key, arrived, reasons.collect())
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
