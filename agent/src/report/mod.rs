//! The leader's part: writes to the `Cluster` object what the votes come to.

mod cluster;

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use karmada_rules::health::quorum::{Quorum, Tally};
use karmada_rules::health::report::{Pace, ReportPlan, Reporter};
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::lease::Leadership;
use karmada_runtime::watch::{Decoded, events};
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::PatchParams;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::cluster::{Change, RawCluster};
use crate::metrics::VerdictMetrics;
use crate::peers::Peers;

/// The longest a read may take.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// Before a failed write is tried again: doubled for each failure in a row.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// So often in a row another writer may be faster before we put our write off.
const MOST_CONFLICTS: u32 = 100;

/// What is reported, where, and by whom.
pub(crate) struct Report {
    pub(crate) client: Client,
    /// The name of the `Cluster` object.
    pub(crate) cluster: String,
    pub(crate) pace: Pace,
    pub(crate) quorum: Quorum,
    pub(crate) peers: Peers,
    pub(crate) metrics: VerdictMetrics,
    pub(crate) leadership: Leadership,
    pub(crate) writer: Writer,
    /// For the times that conditions show.
    pub(crate) clock: fn() -> Timestamp,
}

impl Report {
    /// Reports while leading, until the program stops.
    pub(crate) async fn run(self, stopping: CancellationToken) -> Result<(), BoxError> {
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = self.leadership.acquired() => {}
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = self.leadership.lost() => {}
                () = self.term() => {}
            }
        }
    }

    /// One leadership: asks the agents, and writes what they say; never ends.
    async fn term(&self) {
        let (told, tallies) = watch::channel(None);
        let leader = Leader::new(self, tallies);
        tokio::join!(self.peers.poll(told), leader.lead());
    }
}

/// What one leader knows.
struct Leader<'a> {
    report: &'a Report,
    clusters: Api<RawCluster>,
    /// None until every agent has been asked.
    tallies: watch::Receiver<Option<Tally>>,
    reporter: Reporter,
    /// The object, if it is known to exist and to stay.
    cluster: Option<RawCluster>,
    /// Whether the list under way has shown it.
    listed: bool,
    /// Whether we have said that it is not there.
    told_absent: bool,
    /// Refused writes in a row for which something had stood in the way.
    conflicts: u32,
    /// Other failed writes in a row.
    failures: u32,
    retry: Option<Instant>,
}

impl<'a> Leader<'a> {
    fn new(report: &'a Report, tallies: watch::Receiver<Option<Tally>>) -> Self {
        Self {
            report,
            clusters: Api::all(report.client.clone()),
            tallies,
            reporter: Reporter::new(report.pace, report.quorum, Instant::now().into_std()),
            cluster: None,
            listed: false,
            told_absent: false,
            conflicts: 0,
            failures: 0,
            retry: None,
        }
    }

    /// Watches, decides and writes; never ends.
    async fn lead(mut self) {
        let own = Config::default().fields(&format!("metadata.name={}", self.report.cluster));
        let watched: Api<Decoded<RawCluster>> = Api::all(self.report.client.clone());
        let mut events = pin!(events(watched, own));
        loop {
            let wake = self.act().await;
            tokio::select! {
                biased;
                Some(event) = events.next() => self.observe(event),
                Ok(()) = self.tallies.changed() => {}
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    fn observe(&mut self, event: Event<Decoded<RawCluster>>) {
        match event {
            Event::Init => self.listed = false,
            Event::InitApply(object) | Event::Apply(object) => {
                self.listed = true;
                match object {
                    Decoded::Valid(cluster) => self.see(Some(cluster)),
                    Decoded::Invalid { error, .. } => {
                        tracing::warn!(
                            error,
                            "Unreadable Cluster object, keeping its last good version"
                        );
                    }
                }
            }
            Event::InitDone if self.listed => {}
            Event::InitDone | Event::Delete(_) => self.see(None),
        }
    }

    fn see(&mut self, cluster: Option<RawCluster>) {
        self.cluster = cluster.filter(|cluster| !cluster.is_going());
        let absent = self.cluster.is_none();
        if absent != std::mem::replace(&mut self.told_absent, absent) {
            let cluster = &self.report.cluster;
            if absent {
                tracing::warn!(
                    cluster,
                    "The Cluster object does not exist or is being deleted, waiting for it"
                );
            } else {
                tracing::info!(cluster, "The Cluster object is there now");
            }
        }
    }

    /// Does what is to do now; returns when to look again if nothing happens before that.
    async fn act(&mut self) -> Option<Instant> {
        loop {
            if let Some(retry) = self.retry.filter(|retry| Instant::now() < *retry) {
                return Some(retry);
            }
            let conditions = self.cluster.as_ref()?.ours();
            let (now, time) = (Instant::now().into_std(), (self.report.clock)());
            let plan = {
                let tally = self.tallies.borrow_and_update();
                self.reporter.plan(tally.as_ref()?, &conditions, now, time)
            };
            self.report.metrics.set(self.reporter.standing());
            let writes = match plan {
                ReportPlan::Unchanged => return None,
                ReportPlan::Wait(until) => return Some(Instant::from_std(until)),
                ReportPlan::Write(writes) => writes,
            };
            match self.write_all(&writes).await {
                Ok(()) => (self.failures, self.retry) = (0, None),
                Err(error) => self.put_off(&error),
            }
        }
    }

    /// Writes `conditions` one after the other. Stops without error when the object turns out to be
    /// another one than was thought, for then the decision must be made anew.
    async fn write_all(&mut self, conditions: &[Condition]) -> Result<(), WriteError> {
        for condition in conditions {
            let Some(cluster) = &self.cluster else {
                return Ok(());
            };
            let change = change(cluster, condition)?;
            let (parameters, patch) = (PatchParams::default(), change.to_patch());
            let call = self
                .clusters
                .patch_status(&self.report.cluster, &parameters, &patch);
            match self.report.writer.write("conditions", call).await {
                Ok(cluster) => {
                    self.conflicts = 0;
                    tell(condition);
                    self.reporter
                        .wrote(&condition.type_, Instant::now().into_std());
                    self.see(Some(cluster));
                }
                Err(error) => {
                    self.read_again(error, condition, &change).await?;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the object again after a refused write. When nothing stood in the way of the `refused`
    /// change, the error is the API server's last word on it.
    async fn read_again(
        &mut self,
        error: WriteError,
        condition: &Condition,
        refused: &Change,
    ) -> Result<(), WriteError> {
        if error.kind() == WriteErrorKind::Transient {
            return Err(error);
        }
        let read = timeout(READ_LIMIT, self.clusters.get_opt(&self.report.cluster)).await;
        let Ok(Ok(cluster)) = read else {
            return Err(error);
        };
        self.see(cluster);
        let in_the_way = match &self.cluster {
            Some(cluster) => change(cluster, condition)? != *refused,
            None => true,
        };
        self.conflicts += 1;
        if in_the_way && self.conflicts < MOST_CONFLICTS {
            return Ok(());
        }
        self.conflicts = 0;
        Err(error)
    }

    fn put_off(&mut self, error: &WriteError) {
        // An API server that was away hears the verdict within a period of its return.
        let longest = match error.kind() {
            WriteErrorKind::Transient => LONGEST_RETRY.min(self.report.pace.period),
            _ => LONGEST_RETRY,
        };
        let delay = (FIRST_RETRY * 2_u32.saturating_pow(self.failures)).min(longest);
        self.failures = self.failures.saturating_add(1).min(16);
        self.retry = Some(Instant::now() + delay);
        let shown = Chain(error);
        match (error, error.kind()) {
            (WriteError::NotLeading, _) => tracing::debug!("No longer leading, nothing written"),
            (_, WriteErrorKind::Invalid) => {
                tracing::error!(error = %shown, ?delay, "The API server refuses a condition");
            }
            _ => tracing::warn!(error = %shown, ?delay, "Could not write a condition, will retry"),
        }
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.report.metrics.set(None);
    }
}

fn change(cluster: &RawCluster, condition: &Condition) -> Result<Change, WriteError> {
    let change = cluster.change_to(condition);
    change.map_err(|error| kube::Error::SerdeError(error).into())
}

fn tell(condition: &Condition) {
    let Condition { type_, status, .. } = condition;
    let (reason, note) = (&condition.reason, &condition.message);
    tracing::info!(condition = type_, status, reason, note, "Condition written");
}

#[cfg(test)]
mod tests;
