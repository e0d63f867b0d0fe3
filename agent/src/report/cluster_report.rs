//! The report on one cluster: plans its conditions, and writes those that are due.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use health::quorum::Tally;
use health::report::{Participation, ReportPlan, Reporter};
use health::signal::PerTarget;
use karmada_api::Condition;
use karmada_runtime::contention::find_rival;
use karmada_runtime::error::Chain;
use karmada_runtime::panics::Panicked;
use karmada_runtime::write::{Refusals, WriteError, WriteErrorKind};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::cluster::RawCluster;
use super::parts::{Report, Subject};
use super::told::{failed, refused, taken};
use crate::backoff::Backoff;
use crate::identity::NAME;

/// The deadline of a read.
const READ_LIMIT: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// The number of conflicts in a row after which a write backs off. Each means that another writer has
/// succeeded, so an immediate retry is right until something is clearly wrong.
const MOST_CONFLICTS: u32 = 100;

/// The report on one cluster in one term of leadership.
pub(super) struct ClusterReport<'a> {
    report: &'a Report,
    /// The name of the object.
    name: String,
    objects: Api<RawCluster>,
    reporter: Reporter,
    /// The object, unless it is absent or being deleted.
    object: Option<RawCluster>,
    /// Set once the list under way has returned the object.
    pub(super) is_listed: bool,
    /// Set while the log's last word is that the object is absent.
    logged_absent: bool,
    /// Writes in a row that failed because the object had changed.
    conflicts: u32,
    /// By the type of the condition.
    refusals: Refusals<String>,
    /// The types of conditions of declared signals that another writes.
    taken: BTreeSet<&'static str>,
    /// For all other failures.
    backoff: Backoff,
    retry: Option<Instant>,
    /// Set once an Event has told of a fault of this program.
    has_failed: bool,
    /// The moment of the next plan.
    wakes: Option<Instant>,
}

impl<'a> ClusterReport<'a> {
    /// Creates a report that is to be planned at once.
    pub(super) fn new(report: &'a Report, name: &str) -> Self {
        let now = Instant::now();
        let quorums = match report.subject {
            Subject::Own(_) => report.quorums.clone(),
            Subject::Members => report.quorums.about(&Arc::from(name)),
        };
        Self {
            report,
            name: name.to_owned(),
            objects: Api::all_with(report.client.clone(), &report.kind.resource()),
            reporter: Reporter::new(report.pace, &quorums, now.into_std()),
            object: None,
            is_listed: false,
            logged_absent: false,
            conflicts: 0,
            refusals: Refusals::default(),
            taken: BTreeSet::new(),
            backoff: Backoff::default(),
            retry: None,
            has_failed: false,
            wakes: Some(now),
        }
    }

    /// Returns the moment of the next plan, should nothing happen before.
    pub(super) fn wakes(&self) -> Option<Instant> {
        self.wakes
    }

    /// Sets the moment of the next plan.
    pub(super) fn wake_at(&mut self, at: Option<Instant>) {
        self.wakes = at;
    }

    /// Returns the participation of the nodes as of the last plan.
    pub(super) fn participation(&self) -> Participation {
        self.reporter.participation()
    }

    /// Takes in the newest version of the object.
    pub(super) fn set_object(&mut self, object: Option<RawCluster>) {
        self.object = object.filter(|object| !object.is_deleting());
        let absent = self.object.is_none();
        if absent != std::mem::replace(&mut self.logged_absent, absent) {
            let (kind, cluster) = (self.report.kind, &self.name);
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

    /// Writes the due conditions and returns the moment of the next plan, should nothing happen before.
    pub(super) async fn act(&mut self, tallies: Option<&PerTarget<Tally>>) -> Option<Instant> {
        loop {
            // Neither votes nor events shorten a backoff.
            if let Some(retry) = self.retry.filter(|retry| Instant::now() < *retry) {
                return Some(retry);
            }
            self.take_in_declared();
            let conditions = self.object.as_ref()?.conditions();
            self.tell_taken(&conditions);
            let written = if let Some(kind) = self.reporter.obsolete(&conditions) {
                self.remove(kind).await
            } else {
                let (now, time) = (Instant::now().into_std(), (self.report.clock)());
                let plan = self.reporter.plan(tallies?, &conditions, now, time);
                self.report.metrics.set(&self.reporter.verdicts());
                match plan {
                    ReportPlan::Unchanged => return None,
                    ReportPlan::Wait(until) => return Some(Instant::from_std(until)),
                    ReportPlan::Write(writes) => self.write_all(&writes).await,
                }
            };
            match written {
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

    /// Takes in which signals users declare, as far as that is known.
    fn take_in_declared(&mut self) {
        if let Some(declared) = &*self.report.declared.borrow() {
            self.reporter.declare(declared);
        }
    }

    /// Tells of conditions of declared signals that another writes, once of each.
    fn tell_taken(&mut self, conditions: &[Condition]) {
        let (name, report) = (&self.name, self.report);
        let now = self.reporter.taken(conditions);
        for kind in now.difference(&self.taken) {
            tracing::warn!(
                cluster = name,
                condition = kind,
                "Another writes the condition of a declared signal, leaving it as it is"
            );
            report
                .events
                .record(report.lease.clone(), taken(name, kind));
        }
        self.taken = now;
    }

    /// Takes in a fault of this program, and returns the moment of the next plan.
    pub(super) fn failed(&mut self, panicked: Panicked) -> Instant {
        let (name, report) = (&self.name, self.report);
        tracing::error!(cluster = name, error = %panicked, pause = ?LONGEST_RETRY, "Cluster not reported on, will try again");
        if !std::mem::replace(&mut self.has_failed, true) {
            let event = failed(name, panicked);
            report.events.record(report.lease.clone(), event);
        }
        let next = Instant::now() + LONGEST_RETRY;
        self.retry = Some(next);
        next
    }

    /// Writes `conditions` one after the other, and returns the end of the first pause, if another
    /// writer undoes one of them.
    /// Stops without an error if the object has changed meanwhile, so that the next plan is made from its
    /// new state.
    async fn write_all(&mut self, conditions: &[Condition]) -> Result<Option<Instant>, WriteError> {
        let contention = &self.report.contention;
        let mut pause: Option<Instant> = None;
        for condition in conditions {
            let Some(object) = &self.object else {
                return Ok(None);
            };
            let (kind, value) = (&condition.type_, contested(condition));
            let of = (self.name.clone(), kind.clone());
            let begun = contention.begin(of, &value, object.version(), Instant::now());
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
            let wanted = change(object, condition)?;
            match self.send(kind, &wanted).await {
                Ok(object) => {
                    self.conflicts = 0;
                    log_written(&self.name, condition);
                    let (version, now) = (object.version().map(str::to_owned), Instant::now());
                    contention.stored(attempt, version, now);
                    self.reporter.wrote(kind, now.into_std());
                    // The next patch must build on this response: the watch event comes later.
                    self.set_object(Some(object));
                }
                Err(error) => {
                    self.check_conflict(error, |object| change(object, condition), &wanted)
                        .await?;
                    return Ok(None);
                }
            }
        }
        Ok(pause)
    }

    /// Removes the condition of type `kind`, whose signal is declared no more.
    async fn remove(&mut self, kind: &str) -> Result<Option<Instant>, WriteError> {
        let Some(object) = &self.object else {
            return Ok(None);
        };
        let wanted = object.change_without(kind);
        match self.send(kind, &wanted).await {
            Ok(object) => {
                self.conflicts = 0;
                tracing::info!(
                    cluster = self.name,
                    condition = kind,
                    "Condition removed, its signal is declared no more"
                );
                self.set_object(Some(object));
            }
            Err(error) => {
                self.check_conflict(error, |object| Ok(object.change_without(kind)), &wanted)
                    .await?;
            }
        }
        Ok(None)
    }

    /// Sends a change of the condition of type `kind`. An Event tells if it is refused and that is news.
    async fn send(&self, kind: &str, wanted: &Value) -> Result<RawCluster, WriteError> {
        let patch = Patch::Merge(wanted);
        let parameters = PatchParams::apply(NAME);
        let call = self.objects.patch_status(&self.name, &parameters, &patch);
        let written = self.report.writer.write("conditions", call).await;
        if let Some(reason) = self.refusals.note(kind.to_owned(), &written) {
            let (report, event) = (self.report, refused(&self.name, kind, &reason));
            report.events.record(report.lease.clone(), event);
        }
        written
    }

    /// Logs who undoes every write of the condition of type `kind`, if that can be found out: the manager of
    /// a list is the last one who wrote any of its elements.
    async fn report_contention(&self, kind: &str) {
        let (name, conditions) = (&self.name, ["/status/conditions".to_owned()]);
        let manager = find_rival(&self.objects, name, NAME, &conditions).await;
        tracing::warn!(
            cluster = name,
            condition = kind,
            manager = manager.as_deref().unwrap_or("another client"),
            "Another writer undoes every write of the condition, will write again after growing pauses"
        );
    }

    /// Reads the object again after a rejected write. Returns `error` if the `rejected` change would be
    /// the same for the `newest` object: then the API server rejects the change itself.
    async fn check_conflict(
        &mut self,
        error: WriteError,
        newest: impl Fn(&RawCluster) -> Result<Value, WriteError>,
        rejected: &Value,
    ) -> Result<(), WriteError> {
        // A server that is away would not answer a read either, and a refused change is refused again.
        if let WriteErrorKind::Transient | WriteErrorKind::Invalid = error.kind() {
            return Err(error);
        }
        let read = timeout(READ_LIMIT, self.objects.get_opt(&self.name)).await;
        let Ok(Ok(object)) = read else {
            return Err(error);
        };
        self.set_object(object);
        let conflict = match &self.object {
            Some(object) => newest(object)? != *rejected,
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

pub(super) fn change(object: &RawCluster, condition: &Condition) -> Result<Value, WriteError> {
    let change = object.change_to(condition);
    change.map_err(|error| kube::Error::SerdeError(error).into())
}

/// Returns the part of a condition that another writer may undo. Its time is another one with each write.
fn contested(condition: &Condition) -> Value {
    json!([condition.status, condition.reason, condition.message])
}

fn log_written(cluster: &str, condition: &Condition) {
    let Condition { type_, status, .. } = condition;
    let (reason, note) = (&condition.reason, &condition.message);
    tracing::info!(
        cluster,
        condition = type_,
        status,
        reason,
        note,
        "Condition written"
    );
}
