//! The leader's report: writes the verdict on each signal to a condition of the object of the cluster.

mod cluster;

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use karmada_api::Condition;
use karmada_rules::health::campaign::{Tenure, abstention};
use karmada_rules::health::quorum::{Quorum, Tally};
use karmada_rules::health::report::{Pace, Participation, ReportPlan, Reporter};
use karmada_rules::health::signal::PerSignal;
use karmada_runtime::contention::{Contention, find_rival};
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::lease::{self, Leadership};
use karmada_runtime::watch::{Decoded, events_of};
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::PatchParams;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::cluster::{Change, RawCluster};
use crate::backoff::Backoff;
use crate::cluster_kind::ClusterKind;
use crate::metrics::VerdictMetrics;
use crate::peers::Peers;

/// The deadline of a read.
const READ_LIMIT: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// The number of conflicts in a row after which a write backs off. Each means that another writer has
/// succeeded, so an immediate retry is right until something is clearly wrong.
const MOST_CONFLICTS: u32 = 100;

/// The report of one agent, written while it leads.
pub(crate) struct Report {
    pub(crate) client: Client,
    pub(crate) kind: ClusterKind,
    /// The name of the object.
    pub(crate) cluster: String,
    pub(crate) pace: Pace,
    /// The quorum of each signal that is reported on.
    pub(crate) quorums: PerSignal<Quorum>,
    pub(crate) peers: Peers,
    pub(crate) metrics: VerdictMetrics,
    pub(crate) leadership: Leadership,
    /// Takes the end of each abstention, at whose start the lease is to be given back.
    pub(crate) abstentions: watch::Sender<Option<Instant>>,
    pub(crate) writer: Writer,
    /// Who undoes our conditions, by their type.
    pub(crate) contention: Contention<String>,
    /// The clock of the conditions' transition times.
    pub(crate) clock: fn() -> Timestamp,
}

impl Report {
    /// Writes conditions while this agent leads, until the program stops.
    pub(crate) async fn run(self, stopping: CancellationToken) -> Result<(), BoxError> {
        let terms = async {
            let mut tenure = Tenure::new(self.pace.patience);
            loop {
                self.leadership.acquired().await;
                tokio::select! {
                    // The end of a term before its next write: another agent may lead already.
                    biased;
                    () = self.leadership.lost() => {}
                    () = self.term(&mut tenure) => {
                        tenure.resigned();
                        self.resign().await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => Ok(()),
            () = terms => Ok(()),
        }
    }

    /// Polls the agents and writes their verdicts, until too few of them have voted for too long.
    async fn term(&self, tenure: &mut Tenure) {
        let (counted, tallies) = watch::channel(None);
        let leader = Leader::new(self, tallies, tenure);
        tokio::select! {
            () = self.peers.poll(counted) => {}
            () = leader.lead() => {}
        }
    }

    /// Gives the lease back and returns once this agent no longer leads.
    async fn resign(&self) {
        let pause = abstention(lease::DURATION);
        tracing::warn!(
            ?pause,
            "Too few nodes vote for too long, giving the lease back for an agent that hears more of them"
        );
        self.metrics.count_resignation();
        self.abstentions.send_replace(Some(Instant::now() + pause));
        self.leadership.lost().await;
    }
}

/// The state of one term of leadership.
struct Leader<'a> {
    report: &'a Report,
    clusters: Api<RawCluster>,
    /// `None` until every agent has had a request.
    tallies: watch::Receiver<Option<PerSignal<Tally>>>,
    reporter: Reporter,
    tenure: &'a mut Tenure,
    /// The object, unless it is absent or being deleted.
    cluster: Option<RawCluster>,
    /// Set once the list under way has returned the object.
    listed: bool,
    /// Set while the log's last word is that the object is absent.
    logged_absent: bool,
    /// Writes in a row that failed because the object had changed.
    conflicts: u32,
    /// For all other failures.
    backoff: Backoff,
    retry: Option<Instant>,
}

impl<'a> Leader<'a> {
    fn new(
        report: &'a Report,
        tallies: watch::Receiver<Option<PerSignal<Tally>>>,
        tenure: &'a mut Tenure,
    ) -> Self {
        Self {
            report,
            clusters: Api::all_with(report.client.clone(), &report.kind.resource()),
            tallies,
            reporter: Reporter::new(report.pace, &report.quorums, Instant::now().into_std()),
            tenure,
            cluster: None,
            listed: false,
            logged_absent: false,
            conflicts: 0,
            backoff: Backoff::default(),
            retry: None,
        }
    }

    /// Watches, decides and writes, until the leader has to give the lease back.
    async fn lead(mut self) {
        // Watching the one object costs the API server nothing while other clusters change.
        let own = Config::default().fields(&format!("metadata.name={}", self.report.cluster));
        let kind = self.report.kind.resource();
        let watched = Api::<Decoded<_>>::all_with(self.report.client.clone(), &kind);
        let mut events = pin!(events_of::<RawCluster>(watched, own, &kind));
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
                Ok(()) = self.tallies.changed() => {}
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    /// Returns the moment at which the leader gives the lease back should no more nodes vote.
    fn ends_at(&mut self) -> Option<Instant> {
        match self.reporter.participation() {
            Participation::Unknown => None,
            Participation::Enough => {
                self.tenure.heard_enough();
                None
            }
            Participation::TooFew { since } => {
                let tallies = self.tallies.borrow();
                // The same on each signal.
                let known = tallies.as_ref()?.values().next()?.known();
                self.tenure.ends_at(known, since).map(Instant::from_std)
            }
        }
    }

    fn observe(&mut self, event: Event<Decoded<RawCluster>>) {
        match event {
            Event::Init => self.listed = false,
            Event::InitApply(object) | Event::Apply(object) => {
                self.listed = true;
                match object {
                    Decoded::Valid(cluster) => self.set_cluster(Some(cluster)),
                    // Its content no longer matters.
                    Decoded::Invalid { metadata, .. } if metadata.deletion_timestamp.is_some() => {
                        self.set_cluster(None);
                    }
                    Decoded::Invalid { error, .. } => {
                        tracing::warn!(
                            error,
                            "Unreadable object of the cluster, keeping its last good version"
                        );
                    }
                }
            }
            // A list without the object: it was deleted while the watch was interrupted.
            Event::InitDone if self.listed => {}
            Event::InitDone | Event::Delete(_) => self.set_cluster(None),
        }
    }

    fn set_cluster(&mut self, cluster: Option<RawCluster>) {
        self.cluster = cluster.filter(|cluster| !cluster.is_deleting());
        let absent = self.cluster.is_none();
        if absent != std::mem::replace(&mut self.logged_absent, absent) {
            let (kind, cluster) = (self.report.kind, &self.report.cluster);
            if absent {
                tracing::warn!(
                    ?kind,
                    cluster,
                    "The object of the cluster does not exist or is being deleted, waiting for it"
                );
            } else {
                tracing::info!(?kind, cluster, "The object of the cluster is there now");
            }
        }
    }

    /// Writes what is due and returns the moment of the next plan, should nothing happen before.
    async fn act(&mut self) -> Option<Instant> {
        loop {
            // Neither votes nor events shorten a backoff.
            if let Some(retry) = self.retry.filter(|retry| Instant::now() < *retry) {
                return Some(retry);
            }
            let conditions = self.cluster.as_ref()?.ours();
            let (now, time) = (Instant::now().into_std(), (self.report.clock)());
            let plan = {
                let tallies = self.tallies.borrow_and_update();
                self.reporter
                    .plan(tallies.as_ref()?, &conditions, now, time)
            };
            self.report.metrics.set(Some(&self.reporter.verdicts()));
            let writes = match plan {
                ReportPlan::Unchanged => return None,
                ReportPlan::Wait(until) => return Some(Instant::from_std(until)),
                ReportPlan::Write(writes) => writes,
            };
            match self.write_all(&writes).await {
                Ok(pause) => {
                    self.backoff.reset();
                    self.retry = None;
                    if pause.is_some() {
                        return pause;
                    }
                }
                Err(error) => self.schedule_retry(&error),
            }
        }
    }

    /// Writes `conditions` one after the other, and returns the end of the first pause, if another
    /// writer undoes one of them.
    /// Stops without an error if the object has changed meanwhile, so that the next plan is made from its
    /// new state.
    async fn write_all(&mut self, conditions: &[Condition]) -> Result<Option<Instant>, WriteError> {
        let contention = &self.report.contention;
        let mut pause: Option<Instant> = None;
        for condition in conditions {
            let Some(cluster) = &self.cluster else {
                return Ok(None);
            };
            let (kind, value) = (&condition.type_, contested(condition));
            let begun = contention.begin(kind.clone(), &value, cluster.version(), Instant::now());
            let attempt = match begun {
                Ok(attempt) => attempt,
                Err(backoff) => {
                    if backoff.is_news {
                        self.report_contention(kind).await;
                    }
                    pause = pause.into_iter().chain([backoff.until]).min();
                    continue;
                }
            };
            let change = change(cluster, condition)?;
            let patch = change.to_patch();
            let parameters = PatchParams::default();
            let call = self
                .clusters
                .patch_status(&self.report.cluster, &parameters, &patch);
            match self.report.writer.write("conditions", call).await {
                Ok(cluster) => {
                    self.conflicts = 0;
                    log_written(condition);
                    let (version, now) = (cluster.version().map(str::to_owned), Instant::now());
                    contention.stored(attempt, version, now);
                    self.reporter.wrote(kind, now.into_std());
                    // The next patch must build on this response: the watch event comes later.
                    self.set_cluster(Some(cluster));
                }
                Err(error) => {
                    self.check_conflict(error, condition, &change).await?;
                    return Ok(None);
                }
            }
        }
        Ok(pause)
    }

    /// Logs who undoes every write of the condition of type `kind`, if that can be found out: the manager of
    /// a list is the last one who wrote any of its elements.
    async fn report_contention(&self, kind: &str) {
        let (name, conditions) = (&self.report.cluster, ["/status/conditions".to_owned()]);
        let manager = find_rival(&self.clusters, name, crate::identity::NAME, &conditions).await;
        tracing::warn!(
            condition = kind,
            manager = manager.as_deref().unwrap_or("another client"),
            "Another writer undoes every write of the condition, will write again after growing pauses"
        );
    }

    /// Reads the object again after a rejected write. Returns `error` if the `rejected` change would be
    /// the same for the newest object: then the API server rejects the change itself.
    async fn check_conflict(
        &mut self,
        error: WriteError,
        condition: &Condition,
        rejected: &Change,
    ) -> Result<(), WriteError> {
        // A server that is away would not answer a read either, and what it refuses it refuses again.
        if let WriteErrorKind::Transient | WriteErrorKind::Invalid = error.kind() {
            return Err(error);
        }
        let read = timeout(READ_LIMIT, self.clusters.get_opt(&self.report.cluster)).await;
        let Ok(Ok(cluster)) = read else {
            return Err(error);
        };
        self.set_cluster(cluster);
        let conflict = match &self.cluster {
            Some(cluster) => change(cluster, condition)? != *rejected,
            None => true,
        };
        self.conflicts += 1;
        if conflict && self.conflicts < MOST_CONFLICTS {
            return Ok(());
        }
        self.conflicts = 0;
        Err(error)
    }

    fn schedule_retry(&mut self, error: &WriteError) {
        // An API server that was away gets the verdict within a period of its return.
        let longest = match error.kind() {
            WriteErrorKind::Transient => LONGEST_RETRY.min(self.report.pace.period),
            _ => LONGEST_RETRY,
        };
        let delay = self.backoff.next(longest);
        self.retry = Some(Instant::now() + delay);
        let shown = Chain(error);
        match (error, error.kind()) {
            // Expected at the end of a term, and the next leader writes the verdict.
            (WriteError::NotLeading, _) => tracing::debug!("No longer leading, nothing written"),
            (_, WriteErrorKind::Invalid) => {
                tracing::error!(error = %shown, ?delay, "The API server refuses a condition");
            }
            _ => tracing::warn!(error = %shown, ?delay, "Could not write a condition, will retry"),
        }
    }
}

impl Drop for Leader<'_> {
    /// Runs at the end of a term, when its future is dropped.
    fn drop(&mut self) {
        self.report.metrics.set(None);
    }
}

fn change(cluster: &RawCluster, condition: &Condition) -> Result<Change, WriteError> {
    let change = cluster.change_to(condition);
    change.map_err(|error| kube::Error::SerdeError(error).into())
}

/// Returns the part of a condition that another writer may undo. Its time is another one with each write.
fn contested(condition: &Condition) -> Value {
    json!([condition.status, condition.reason, condition.message])
}

fn log_written(condition: &Condition) {
    let Condition { type_, status, .. } = condition;
    let (reason, note) = (&condition.reason, &condition.message);
    tracing::info!(condition = type_, status, reason, note, "Condition written");
}

#[cfg(test)]
mod tests;
