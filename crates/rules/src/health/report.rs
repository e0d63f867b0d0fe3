//! The conditions that a leader writes: the verdict, and its freshness.
//!
//! [`Reporter`] compares the judgement of the nodes' votes with the conditions of the `Cluster` and plans
//! which to write now and which later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::condition::{
    DNS_FAILED_REASON, DNS_READY, DNS_READY_REASON, FALSE, INSUFFICIENT_OBSERVATIONS_REASON, OWNED,
    REPORTER_READY, REPORTING_REASON, TRUE,
};
use objects::condition::{find, transition};

use super::quorum::{Judgement, Quorum, Tally, Verdict};

/// The shortest interval between two writes of a condition of which only the message changes.
const MESSAGE_INTERVAL: Duration = Duration::from_mins(1);

/// The pace of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The shortest interval between two changes of a condition's status. A write of its message does not
    /// delay the next change.
    pub period: Duration,
    /// The time for which too few nodes may vote before the published verdict is marked stale.
    pub patience: Duration,
}

/// The participation of the nodes in the vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participation {
    /// Nothing has been planned in this term yet.
    Unknown,
    /// Enough nodes vote.
    Enough,
    /// Too few nodes vote.
    TooFew {
        /// The moment since when too few do.
        since: Instant,
    },
}

/// The writes that are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportPlan {
    /// No condition must change.
    Unchanged,
    /// Nothing is due before this moment. Plan again then.
    Wait(Instant),
    /// Write these conditions, in this order.
    Write(Vec<Condition>),
}

/// The state of one leader between plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    pace: Pace,
    quorum: Quorum,
    started: Instant,
    /// The last verdict: true if DNS works.
    verdict: Option<bool>,
    participation: Participation,
    /// The last write of each condition.
    written: BTreeMap<&'static str, Instant>,
    /// The last write of each condition that changed its status or reason.
    changed: BTreeMap<&'static str, Instant>,
    /// The conditions whose status or reason the newest plan changes.
    changing: BTreeSet<&'static str>,
}

/// A condition as it should be.
struct DesiredCondition {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl DesiredCondition {
    /// Compares all but the message.
    fn is_status_of(&self, condition: &Condition) -> bool {
        condition.status == self.status && condition.reason == self.reason
    }
}

impl Reporter {
    /// Creates the state of a leader whose term begins at `now`.
    pub fn new(pace: Pace, quorum: Quorum, now: Instant) -> Self {
        Self {
            pace,
            quorum,
            started: now,
            verdict: None,
            participation: Participation::Unknown,
            written: BTreeMap::new(),
            changed: BTreeMap::new(),
            changing: BTreeSet::new(),
        }
    }

    /// Plans the writes for the Cluster's `conditions`. Must be called whenever these or the tally change.
    /// `time` becomes the transition time of a condition whose status changes.
    pub fn plan(
        &mut self,
        tally: &Tally,
        conditions: &[Condition],
        now: Instant,
        time: Timestamp,
    ) -> ReportPlan {
        // This leader's own last verdict takes precedence over the published one, which another client
        // may have overwritten. Without a published one, first successes count as for a new cluster.
        let current = published(conditions).map(|published| self.verdict.unwrap_or(published));
        let judgement = self.quorum.judge(tally, current);
        let (desired, not_before) = if judgement.sufficient {
            self.participation = Participation::Enough;
            let verdict = judgement.verdict.as_ref();
            self.verdict = verdict.map(|verdict| verdict.healthy);
            let mut desired: Vec<_> = verdict.map(dns_ready).into_iter().collect();
            desired.push(reporting(&judgement));
            (desired, Some(now))
        } else {
            let since = match self.participation {
                Participation::TooFew { since } => since,
                Participation::Unknown | Participation::Enough => now,
            };
            self.participation = Participation::TooFew { since };
            let desired = insufficient(&judgement);
            // The count of another leader stands: two that hear too few nodes would rewrite it in turn.
            let marked = find(conditions, REPORTER_READY)
                .is_some_and(|current| desired.is_status_of(current));
            let theirs = marked && !self.written.contains_key(REPORTER_READY);
            let stale = if theirs { Vec::new() } else { vec![desired] };
            (stale, since.checked_add(self.pace.patience))
        };
        // DNS_READY comes first: a verdict must not wait for a write of the other condition.
        let mut writes = Vec::new();
        let mut wake: Option<Instant> = None;
        self.changing.clear();
        for desired in desired {
            let current = find(conditions, desired.kind);
            let due = self.due(current, &desired, now).zip(not_before);
            match due.map(|(due, not_before)| due.max(not_before)) {
                None => {}
                Some(at) if at <= now => {
                    if !current.is_some_and(|current| desired.is_status_of(current)) {
                        self.changing.insert(desired.kind);
                    }
                    writes.push(condition(current, desired, time));
                }
                Some(at) => wake = Some(wake.map_or(at, |wake| wake.min(at))),
            }
        }
        match (writes.is_empty(), wake) {
            (false, _) => ReportPlan::Write(writes),
            (true, Some(at)) => ReportPlan::Wait(at),
            (true, None) => ReportPlan::Unchanged,
        }
    }

    /// Returns the verdict of the last plan with enough votes: `Some(true)` if DNS works in the cluster.
    pub fn verdict(&self) -> Option<bool> {
        self.verdict
    }

    /// Returns the participation as of the last plan.
    pub fn participation(&self) -> Participation {
        self.participation
    }

    /// Records a successful write of the condition of type `kind`.
    pub fn wrote(&mut self, kind: &str, now: Instant) {
        // Looked up for its `'static` name.
        if let Some(kind) = OWNED.into_iter().find(|owned| *owned == kind) {
            self.written.insert(kind, now);
            if self.changing.contains(kind) {
                self.changed.insert(kind, now);
            }
        }
    }

    /// Returns the moment from which the condition may be written, or `None` if it is as it should be.
    fn due(
        &self,
        current: Option<&Condition>,
        desired: &DesiredCondition,
        now: Instant,
    ) -> Option<Instant> {
        match current.filter(|current| desired.is_status_of(current)) {
            None => {
                let changed = self.changed.get(desired.kind);
                changed.map_or(Some(now), |at| at.checked_add(self.pace.period))
            }
            Some(current) if current.message == desired.message => None,
            Some(_) => {
                let interval = self.pace.period.max(MESSAGE_INTERVAL);
                let written = self.written.get(desired.kind).copied();
                // Leaders that follow each other quickly must not each rewrite the message at once.
                written.unwrap_or(self.started).checked_add(interval)
            }
        }
    }
}

/// Returns the verdict in the conditions.
fn published(conditions: &[Condition]) -> Option<bool> {
    match find(conditions, DNS_READY)?.status.as_str() {
        TRUE => Some(true),
        FALSE => Some(false),
        _ => None,
    }
}

fn dns_ready(verdict: &Verdict) -> DesiredCondition {
    let (status, reason) = if verdict.healthy {
        (TRUE, DNS_READY_REASON)
    } else {
        (FALSE, DNS_FAILED_REASON)
    };
    DesiredCondition {
        kind: DNS_READY,
        status,
        reason,
        message: verdict.message.clone(),
    }
}

fn reporting(judgement: &Judgement) -> DesiredCondition {
    DesiredCondition {
        kind: REPORTER_READY,
        status: TRUE,
        reason: REPORTING_REASON,
        message: judgement.message.clone(),
    }
}

fn insufficient(judgement: &Judgement) -> DesiredCondition {
    DesiredCondition {
        kind: REPORTER_READY,
        status: FALSE,
        reason: INSUFFICIENT_OBSERVATIONS_REASON,
        message: judgement.message.clone(),
    }
}

fn condition(current: Option<&Condition>, desired: DesiredCondition, time: Timestamp) -> Condition {
    Condition {
        type_: desired.kind.to_owned(),
        status: desired.status.to_owned(),
        reason: desired.reason.to_owned(),
        message: desired.message,
        last_transition_time: Some(transition(current, desired.status, time)),
        observed_generation: None,
        unclear: false,
    }
}

#[cfg(test)]
mod tests;
