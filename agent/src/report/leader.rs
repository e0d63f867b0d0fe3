//! One term of leadership: watches the objects of the clusters, and wakes the report on each.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use health::campaign::Tenure;
use health::quorum::Tally;
use health::report::{Participation, Terms};
use health::signal::PerTarget;
use karmada_runtime::panics::caught;
use karmada_runtime::watch::{Decoded, events_of};
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::cluster::RawCluster;
use super::cluster_report::ClusterReport;
use super::parts::{Report, Subject};

/// The state of one term of leadership.
pub(super) struct Leader<'a> {
    report: &'a Report,
    /// `None` until every agent has had a request.
    tallies: watch::Receiver<Option<PerTarget<Tally>>>,
    declared: watch::Receiver<Option<PerTarget<Terms>>>,
    tenure: &'a mut Tenure,
    /// By the names of the objects. The agents' own cluster is there even without one.
    clusters: BTreeMap<String, ClusterReport<'a>>,
}

impl<'a> Leader<'a> {
    pub(super) fn new(
        report: &'a Report,
        tallies: watch::Receiver<Option<PerTarget<Tally>>>,
        tenure: &'a mut Tenure,
    ) -> Self {
        let mut leader = Self {
            report,
            tallies,
            declared: report.declared.clone(),
            tenure,
            clusters: BTreeMap::new(),
        };
        if let Subject::Own(name) = &report.subject {
            leader.cluster(name);
        }
        leader
    }

    /// Watches, decides and writes, until the leader has to give the lease back.
    pub(super) async fn lead(mut self) {
        let config = match &self.report.subject {
            // Watching the one object costs the API server nothing while other clusters change.
            Subject::Own(name) => Config::default().fields(&format!("metadata.name={name}")),
            Subject::Members => Config::default(),
        };
        let kind = self.report.kind.resource();
        let watched = Api::<Decoded<_>>::all_with(self.report.client.clone(), &kind);
        let mut events = pin!(events_of::<RawCluster>(watched, config, &kind));
        loop {
            let wake = self.act().await;
            let ends = self.ends_at();
            if ends.is_some_and(|at| at <= Instant::now()) {
                return;
            }
            let wake = wake.into_iter().chain(ends).min();
            tokio::select! {
                // The newest state of the object before anything is decided on it.
                biased;
                Some(event) = events.next() => self.observe(event),
                Ok(()) = self.tallies.changed() => self.wake(),
                Ok(()) = self.declared.changed() => self.wake(),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    /// Lets each cluster be planned at once.
    fn wake(&mut self) {
        for cluster in self.clusters.values_mut() {
            cluster.wake_at(Some(Instant::now()));
        }
    }

    /// Writes the due conditions of each cluster, and returns the moment of the next plan, should nothing happen before.
    async fn act(&mut self) -> Option<Instant> {
        // Not marked as seen: it wakes the other clusters, too.
        let tallies = self.tallies.borrow().clone();
        for cluster in self.clusters.values_mut() {
            if cluster.wakes().is_some_and(|at| at <= Instant::now()) {
                let acted = cluster.act(tallies.as_ref());
                let next = match self.report.subject {
                    Subject::Own(_) => acted.await,
                    // A fault at one of them ends the report on no other.
                    Subject::Members => match caught(acted).await {
                        Ok(next) => next,
                        Err(panicked) => Some(cluster.failed(panicked)),
                    },
                };
                cluster.wake_at(next);
            }
        }
        self.clusters
            .values()
            .filter_map(ClusterReport::wakes)
            .min()
    }

    /// Returns the moment at which the leader gives the lease back should no more nodes vote: too few vote only where that
    /// holds for every cluster.
    fn ends_at(&mut self) -> Option<Instant> {
        let mut latest = None;
        for cluster in self.clusters.values() {
            match cluster.participation() {
                Participation::Unknown => {}
                Participation::Enough => {
                    self.tenure.heard_enough();
                    return None;
                }
                Participation::TooFew { since } => latest = latest.max(Some(since)),
            }
        }
        let tallies = self.tallies.borrow();
        // The same on each signal of which all nodes are asked.
        let known = tallies.as_ref()?.values().map(Tally::known).max()?;
        self.tenure.ends_at(known, latest?).map(Instant::from_std)
    }

    fn observe(&mut self, event: Event<Decoded<RawCluster>>) {
        match event {
            Event::Init => {
                for cluster in self.clusters.values_mut() {
                    cluster.is_listed = false;
                }
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let name = object.metadata().name.clone().unwrap_or_default();
                let cluster = self.cluster(&name);
                cluster.is_listed = true;
                match object {
                    Decoded::Valid(object) => cluster.set_object(Some(object)),
                    // Its content no longer matters.
                    Decoded::Invalid { metadata, .. } if metadata.deletion_timestamp.is_some() => {
                        cluster.set_object(None);
                    }
                    Decoded::Invalid { error, .. } => {
                        tracing::warn!(
                            cluster = name,
                            error,
                            "Unreadable object of the cluster, keeping its last good version"
                        );
                    }
                }
                cluster.wake_at(Some(Instant::now()));
            }
            // A list without the object: it was deleted while the watch was interrupted.
            Event::InitDone => {
                let clusters = self.clusters.iter();
                let gone = clusters.filter(|(_, cluster)| !cluster.is_listed);
                let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
                for name in gone {
                    self.remove(&name);
                }
            }
            Event::Delete(object) => {
                let name = object.metadata().name.clone().unwrap_or_default();
                self.remove(&name);
            }
        }
    }

    /// Returns the report on a cluster, a new one where there is none.
    fn cluster(&mut self, name: &str) -> &mut ClusterReport<'a> {
        let report = self.report;
        self.clusters
            .entry(name.to_owned())
            .or_insert_with(|| ClusterReport::new(report, name))
    }

    /// Removes a cluster whose object is gone. The agents' own may come back.
    fn remove(&mut self, name: &str) {
        match &self.report.subject {
            Subject::Own(_) => self.cluster(name).set_object(None),
            Subject::Members => {
                self.clusters.remove(name);
            }
        }
    }
}

impl Drop for Leader<'_> {
    /// Runs at the end of a term, when its future is dropped.
    fn drop(&mut self) {
        self.report.metrics.clear();
    }
}
