//! What the leader writes of its cluster: the verdict, and whether the verdict is fresh.
//!
//! [`Reporter`] compares what the nodes' answers come to with the conditions the `Cluster` has, and says
//! which to write now, which later, and which not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use karmada_api::condition::{
    DNS_FAILED_REASON, DNS_READY, DNS_READY_REASON, FALSE, INSUFFICIENT_OBSERVATIONS_REASON, OWNED,
    REPORTER_READY, REPORTING_REASON, TRUE,
};

use super::quorum::{Judgement, Quorum, Tally, Verdict};

/// How often a condition may be written only because its message changed.
const MESSAGE_INTERVAL: Duration = Duration::from_mins(1);

/// How fast conditions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A condition's status is written at most once in this time. A message written meanwhile does
    /// not hold it up.
    pub period: Duration,
    /// For how long too few nodes may vote before the published verdict is called stale.
    pub patience: Duration,
}

/// What to do about the conditions now.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportPlan {
    /// Nothing: they say what they should.
    Unchanged,
    /// Nothing before this moment; then plan again.
    Wait(Instant),
    /// Write these, in this order.
    Write(Vec<Condition>),
}

/// What one leader remembers between plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    pace: Pace,
    quorum: Quorum,
    began: Instant,
    /// What the answers last came to.
    standing: Option<bool>,
    /// Since when too few nodes have voted.
    insufficient: Option<Instant>,
    /// When each condition was last written.
    written: BTreeMap<&'static str, Instant>,
    /// When the status or reason of each was last written.
    turned: BTreeMap<&'static str, Instant>,
    /// Those whose status or reason the newest plan writes.
    turning: BTreeSet<&'static str>,
}

/// What a condition should say.
struct Wanted {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Wanted {
    fn is_status_of(&self, condition: &Condition) -> bool {
        condition.status == self.status && condition.reason == self.reason
    }
}

impl Reporter {
    /// A leader whose leadership begins now.
    pub fn new(pace: Pace, quorum: Quorum, now: Instant) -> Self {
        Self {
            pace,
            quorum,
            began: now,
            standing: None,
            insufficient: None,
            written: BTreeMap::new(),
            turned: BTreeMap::new(),
            turning: BTreeSet::new(),
        }
    }

    /// Decides what to do about the Cluster's `conditions`: to be asked whenever these or the answers
    /// change. While a verdict is published, the one that the answers came to last stands.
    /// `time` becomes the transition time of a condition whose status changes.
    pub fn plan(
        &mut self,
        tally: &Tally,
        conditions: &[Condition],
        now: Instant,
        time: Timestamp,
    ) -> ReportPlan {
        let standing = published(conditions).map(|published| self.standing.unwrap_or(published));
        let judgement = self.quorum.judge(tally, standing);
        let (wanted, not_before) = if judgement.sufficient {
            self.insufficient = None;
            let verdict = judgement.verdict.as_ref();
            self.standing = verdict.map(|verdict| verdict.healthy);
            let mut wanted: Vec<_> = verdict.map(dns_ready).into_iter().collect();
            wanted.push(reporting(&judgement));
            (wanted, Some(now))
        } else {
            let since = *self.insufficient.get_or_insert(now);
            let stale = vec![insufficient(&judgement)];
            (stale, since.checked_add(self.pace.patience))
        };
        let mut writes = Vec::new();
        let mut wake: Option<Instant> = None;
        self.turning.clear();
        for wanted in wanted {
            let current = find(conditions, wanted.kind);
            let due = self.due(current, &wanted, now).zip(not_before);
            match due.map(|(due, not_before)| due.max(not_before)) {
                None => {}
                Some(at) if at <= now => {
                    if !current.is_some_and(|current| wanted.is_status_of(current)) {
                        self.turning.insert(wanted.kind);
                    }
                    writes.push(condition(current, wanted, time));
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

    /// Whether DNS works in the cluster, by the last plan with enough votes.
    pub fn standing(&self) -> Option<bool> {
        self.standing
    }

    /// Takes note that the condition of type `kind` was written.
    pub fn wrote(&mut self, kind: &str, now: Instant) {
        if let Some(kind) = OWNED.into_iter().find(|owned| *owned == kind) {
            self.written.insert(kind, now);
            if self.turning.contains(kind) {
                self.turned.insert(kind, now);
            }
        }
    }

    /// When the condition may be written; never while it says what it should.
    fn due(&self, current: Option<&Condition>, wanted: &Wanted, now: Instant) -> Option<Instant> {
        match current.filter(|current| wanted.is_status_of(current)) {
            None => {
                let turned = self.turned.get(wanted.kind);
                turned.map_or(Some(now), |at| at.checked_add(self.pace.period))
            }
            Some(current) if current.message == wanted.message => None,
            Some(_) => {
                let interval = self.pace.period.max(MESSAGE_INTERVAL);
                let written = self.written.get(wanted.kind).copied();
                written.unwrap_or(self.began).checked_add(interval)
            }
        }
    }
}

/// The verdict that the conditions tell.
fn published(conditions: &[Condition]) -> Option<bool> {
    match find(conditions, DNS_READY)?.status.as_str() {
        TRUE => Some(true),
        FALSE => Some(false),
        _ => None,
    }
}

fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == kind)
}

fn dns_ready(verdict: &Verdict) -> Wanted {
    let (status, reason) = if verdict.healthy {
        (TRUE, DNS_READY_REASON)
    } else {
        (FALSE, DNS_FAILED_REASON)
    };
    Wanted {
        kind: DNS_READY,
        status,
        reason,
        message: verdict.message.clone(),
    }
}

fn reporting(judgement: &Judgement) -> Wanted {
    Wanted {
        kind: REPORTER_READY,
        status: TRUE,
        reason: REPORTING_REASON,
        message: judgement.message.clone(),
    }
}

fn insufficient(judgement: &Judgement) -> Wanted {
    Wanted {
        kind: REPORTER_READY,
        status: FALSE,
        reason: INSUFFICIENT_OBSERVATIONS_REASON,
        message: judgement.message.clone(),
    }
}

/// Kubernetes keeps whole seconds.
fn condition(current: Option<&Condition>, wanted: Wanted, time: Timestamp) -> Condition {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    let last_transition_time = match current {
        Some(current) if current.status == wanted.status => current.last_transition_time.clone(),
        _ => Time(whole),
    };
    Condition {
        type_: wanted.kind.to_owned(),
        status: wanted.status.to_owned(),
        reason: wanted.reason.to_owned(),
        message: wanted.message,
        last_transition_time,
        observed_generation: None,
    }
}

#[cfg(test)]
mod tests;
