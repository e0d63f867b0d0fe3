//! Marks the reporter of a cluster, or that of the gateways, as silent once nobody renews its lease any more.
//!
//! It takes away nothing else: the verdict keeps its last value, and a reporter that returns writes the
//! condition itself.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::Cluster;
use karmada_api::condition::{REACHABLE, REPORTER_LEASE, REPORTER_SILENT_REASON};
use karmada_runtime::commit::Committer;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::lease::DURATION;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::{Decoded, events};
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt};
use objects::Key;
use objects::condition::upsert_patch;
use objects::lease::Renewal;
use objects::write::{Guard, Write};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use traffic::ClusterKind;
use traffic::remedy::{ReporterOf, Reporters, reporter_silent};

use crate::clusters::Clusters;
use crate::index::Index;

/// The number of conflicts in a row after which a write backs off.
const MOST_CONFLICTS: u32 = 5;

/// The reporters' leases behind a lock.
#[derive(Debug)]
pub(crate) struct SharedReporters {
    kind: ClusterKind,
    known: Mutex<Reporters>,
}

impl SharedReporters {
    pub(crate) fn new(kind: ClusterKind, grace: Duration) -> Self {
        Self {
            kind,
            known: Mutex::new(Reporters::new(grace)),
        }
    }

    /// Watches the leases of all reporters, and adds those that are silent to `queue`.
    ///
    /// Trouble with the leases holds up nothing else: unlike [`Program::watch`], this has no gate.
    pub(crate) fn watch(
        self: &Arc<Self>,
        program: &mut Program,
        client: &Client,
        queue: Queue<ReporterOf>,
    ) {
        // The API server sends no other lease, of which each node of a cluster has one.
        let ours = Config::default().fields(&format!("metadata.name={REPORTER_LEASE}"));
        let leases = events(Api::all(client.clone()), ours);
        let reporters = Arc::clone(self);
        program.run_until_stopped("reporters", async move {
            let mut leases = std::pin::pin!(leases);
            while let Some(event) = leases.next().await {
                reporters.observe(&event);
            }
        });
        let reporters = Arc::clone(self);
        program.run_until_stopped("silence", async move {
            loop {
                let (silent, next_look) = reporters.look();
                queue.add_all(silent);
                sleep_until(next_look).await;
            }
        });
    }

    fn observe(&self, event: &Event<Decoded<Lease>>) {
        let mut reporters = self.known.lock();
        match event {
            Event::Init => reporters.list(),
            Event::InitDone => reporters.listed(),
            Event::InitApply(lease) | Event::Apply(lease) => {
                if let Some(reporter) = self.reporter_of(lease) {
                    observe(&mut reporters, &reporter, lease);
                }
            }
            Event::Delete(lease) => {
                if let Some(reporter) = self.reporter_of(lease) {
                    reporters.remove(&reporter);
                }
            }
        }
    }

    fn reporter_of(&self, lease: &Decoded<Lease>) -> Option<ReporterOf> {
        ReporterOf::of_namespace(self.kind, lease.metadata().namespace.as_deref()?)
    }

    /// Returns the silent reporters, and the moment of the next look.
    fn look(&self) -> (Vec<ReporterOf>, Instant) {
        let now = Instant::now().into_std();
        let reporters = self.known.lock();
        let silent = reporters.all_silent(now).cloned().collect();
        // A grace period that no `Instant` holds leaves nothing to look for.
        let next = reporters
            .next_look(now)
            .unwrap_or(now + Duration::from_hours(1));
        (silent, Instant::from_std(next))
    }

    /// Returns the silent reporters.
    pub(crate) fn silent(&self) -> Vec<ReporterOf> {
        let now = Instant::now().into_std();
        self.known.lock().all_silent(now).cloned().collect()
    }
}

fn observe(reporters: &mut Reporters, reporter: &ReporterOf, lease: &Decoded<Lease>) {
    let spec = match lease {
        Decoded::Valid(lease) => lease.spec.as_ref(),
        Decoded::Invalid { .. } => None,
    };
    let renewal = spec.map(Renewal::from).unwrap_or_default();
    reporters.observe(reporter, renewal, DURATION, Instant::now().into_std());
}

/// Reconciles the reporters.
pub(crate) struct SilenceReconciler {
    pub(crate) reporters: Arc<SharedReporters>,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) clusters: Clusters,
    pub(crate) committer: Committer,
    /// The clock of the conditions' transition times.
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for SilenceReconciler {
    type Key = ReporterOf;

    fn keys(&self) -> Vec<ReporterOf> {
        self.reporters.look().0
    }

    async fn reconcile(&self, reporter: &ReporterOf) -> Result<(), BoxError> {
        let unmarked = self.unmarked(reporter);
        if unmarked.is_empty() {
            return Ok(());
        }
        let Some(patience) = self.confirm(reporter).await? else {
            return Ok(());
        };
        for cluster in unmarked {
            self.mark_soon(reporter, &cluster, patience).await?;
        }
        Ok(())
    }
}

impl SilenceReconciler {
    /// Returns the clusters of which a silent reporter would report, and that do not show that it is silent.
    fn unmarked(&self, reporter: &ReporterOf) -> Vec<String> {
        let index = self.index.lock();
        let mut clusters: Vec<&Arc<Cluster>> = match reporter {
            ReporterOf::Member(member) => {
                let member = index.clusters.get(&Key::cluster_scoped(member));
                member.into_iter().collect()
            }
            // The gateway's agents have nothing to say of the others.
            ReporterOf::Gateway => {
                let all = index.clusters.iter().map(|(_, cluster)| cluster);
                all.filter(|cluster| cluster.condition(REACHABLE).is_some())
                    .collect()
            }
        };
        clusters.retain(|cluster| {
            let freshness = cluster.condition(reporter.freshness());
            cluster.metadata.deletion_timestamp.is_none()
                && freshness.is_none_or(|it| it.reason != REPORTER_SILENT_REASON)
        });
        clusters.iter().map(|cluster| cluster.name_any()).collect()
    }

    /// As [`Self::mark`], again at once where another writer has succeeded: the next attempt reads the other write.
    async fn mark_soon(
        &self,
        reporter: &ReporterOf,
        cluster: &str,
        patience: Duration,
    ) -> Result<(), WriteError> {
        let mut conflicts = 0;
        loop {
            match self.mark(reporter, cluster, patience).await {
                Err(error)
                    if error.kind() == WriteErrorKind::Conflict && conflicts < MOST_CONFLICTS =>
                {
                    conflicts += 1;
                }
                marked => return marked,
            }
        }
    }

    /// Writes to `cluster` that its reporter is silent, unless it is marked so.
    async fn mark(
        &self,
        reporter: &ReporterOf,
        cluster: &str,
        patience: Duration,
    ) -> Result<(), WriteError> {
        let Some((object, conditions)) = self.clusters.conditions(cluster).await? else {
            return Ok(());
        };
        let (namespace, time) = (reporter.namespace(self.clusters.kind), (self.clock)());
        let silent = reporter_silent(reporter, &namespace, &conditions, patience, time);
        let Some(silent) = silent else {
            return Ok(());
        };
        let body = upsert_patch(&conditions, silent, object.version.as_deref());
        let write = Write::merge("conditions", object, body);
        let write = write.of_status().guarded(Guard::Version);
        if self.committer.write(&write, None).await?.is_stored() {
            tracing::warn!(cluster, %reporter, ?patience, "Reporter is silent");
        }
        Ok(())
    }

    /// Returns the time for which `reporter` may be silent, if it has been for longer.
    ///
    /// Reads the lease, because while the API was away no renewal could be observed: a silence is real
    /// only if the version that was observed before it is still the newest after it.
    async fn confirm(&self, reporter: &ReporterOf) -> Result<Option<Duration>, BoxError> {
        let now = Instant::now().into_std();
        if self.reporters.known.lock().silent(reporter, now).is_none() {
            return Ok(None);
        }
        let namespace = reporter.namespace(self.clusters.kind);
        let client = self.clusters.client.clone();
        let leases: Api<Decoded<Lease>> = Api::namespaced(client, &namespace);
        let lease = leases.get_opt(REPORTER_LEASE).await?;
        let mut reporters = self.reporters.known.lock();
        match lease {
            Some(lease) => observe(&mut reporters, reporter, &lease),
            None => reporters.remove(reporter),
        }
        Ok(reporters.silent(reporter, Instant::now().into_std()))
    }
}
