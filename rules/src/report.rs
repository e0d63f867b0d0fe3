//! What the leader writes of its cluster: the verdict, and whether the verdict is fresh.
//!
//! [`verdict`] makes the cluster's verdict from the votes; [`Reporter`] compares it with the
//! conditions the `Cluster` has and says which to write now, which later, and which not at all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::condition::{
    DNS_FAILED_REASON, DNS_READY, DNS_READY_REASON, FALSE, INSUFFICIENT_OBSERVATIONS_REASON,
    REPORTER_READY, REPORTING_REASON, TRUE,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::observation::Failure;
use crate::threshold::Vote;

/// How often a condition may be written only because its message changed.
const MESSAGE_INTERVAL: Duration = Duration::from_mins(1);

/// How many nodes, and how many kinds of failure, a message names.
const NAMED: usize = 3;

/// What the nodes say of their cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether DNS works in the cluster.
    pub healthy: bool,
    /// How many nodes fail, how, and which.
    pub message: String,
}

/// The verdict of a cluster whose only known agent is the one on `node`: its vote. A first success
/// counts only for a cluster that has no verdict yet.
pub fn verdict(node: &str, vote: Option<Vote>, conditions: &[Condition]) -> Option<Verdict> {
    let failing = match vote? {
        Vote::FirstSuccess if has_verdict(conditions) => return None,
        Vote::FirstSuccess | Vote::Healthy => BTreeMap::new(),
        Vote::Unhealthy(failure) => BTreeMap::from([(node, failure)]),
    };
    Some(Verdict {
        healthy: failing.is_empty(),
        message: message(1, &failing),
    })
}

fn has_verdict(conditions: &[Condition]) -> bool {
    find(conditions, DNS_READY).is_some_and(|c| c.status == TRUE || c.status == FALSE)
}

/// `2 of 5 nodes fail: timeout from 10.96.0.10 (2); n1, n2`.
fn message(nodes: usize, failing: &BTreeMap<&str, Failure>) -> String {
    let count = format!("{} of {nodes} nodes fail", failing.len());
    if failing.is_empty() {
        return count;
    }
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for failure in failing.values() {
        *kinds.entry(failure.to_string()).or_default() += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let kinds = kinds
        .iter()
        .map(|(kind, count)| format!("{kind} ({count})"));
    let names = failing.keys().map(ToString::to_string);
    format!("{count}: {}; {}", first_few(kinds), first_few(names))
}

fn first_few(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len() > NAMED;
    let mut listed: Vec<_> = items.take(NAMED).collect();
    if more {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

/// How fast conditions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A condition is written at most once in this time.
    pub period: Duration,
    /// How long there may be no verdict before the published one is called stale.
    pub patience: Duration,
}

/// What to do about the conditions now.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
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
    began: Instant,
    /// Since when there has been no verdict.
    silent: Option<Instant>,
    /// When each condition was last written.
    written: BTreeMap<&'static str, Instant>,
}

/// What a condition should say.
struct Wanted {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Reporter {
    /// A leader whose leadership begins now.
    pub fn new(pace: Pace, now: Instant) -> Self {
        Self {
            pace,
            began: now,
            silent: None,
            written: BTreeMap::new(),
        }
    }

    /// Decides what to do about the Cluster's `conditions`: to be asked whenever these or the
    /// verdict change. `time` becomes the transition time of a condition whose status changes.
    pub fn plan(
        &mut self,
        verdict: Option<&Verdict>,
        conditions: &[Condition],
        now: Instant,
        time: Timestamp,
    ) -> Plan {
        let (wanted, not_before) = if let Some(verdict) = verdict {
            self.silent = None;
            (vec![dns_ready(verdict), reporting()], Some(now))
        } else {
            let since = *self.silent.get_or_insert(now);
            (vec![insufficient()], since.checked_add(self.pace.patience))
        };
        let mut writes = Vec::new();
        let mut wake: Option<Instant> = None;
        for wanted in wanted {
            let current = find(conditions, wanted.kind);
            let due = self.due(current, &wanted, now).zip(not_before);
            match due.map(|(due, not_before)| due.max(not_before)) {
                None => {}
                Some(at) if at <= now => writes.push(condition(current, wanted, time)),
                Some(at) => wake = Some(wake.map_or(at, |wake| wake.min(at))),
            }
        }
        match (writes.is_empty(), wake) {
            (false, _) => Plan::Write(writes),
            (true, Some(at)) => Plan::Wait(at),
            (true, None) => Plan::Unchanged,
        }
    }

    /// Takes note that the condition of type `kind` was written.
    pub fn wrote(&mut self, kind: &str, now: Instant) {
        if let Some(kind) = [DNS_READY, REPORTER_READY].into_iter().find(|k| *k == kind) {
            self.written.insert(kind, now);
        }
    }

    /// When the condition may be written; never while it says what it should.
    fn due(&self, current: Option<&Condition>, wanted: &Wanted, now: Instant) -> Option<Instant> {
        let written = self.written.get(wanted.kind).copied();
        let same = |c: &&Condition| c.status == wanted.status && c.reason == wanted.reason;
        match current.filter(same) {
            None => written.map_or(Some(now), |at| at.checked_add(self.pace.period)),
            Some(current) if current.message == wanted.message => None,
            Some(_) => {
                let interval = self.pace.period.max(MESSAGE_INTERVAL);
                written.unwrap_or(self.began).checked_add(interval)
            }
        }
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

fn reporting() -> Wanted {
    Wanted {
        kind: REPORTER_READY,
        status: TRUE,
        reason: REPORTING_REASON,
        message: "1 of 1 nodes vote".to_owned(),
    }
}

fn insufficient() -> Wanted {
    Wanted {
        kind: REPORTER_READY,
        status: FALSE,
        reason: INSUFFICIENT_OBSERVATIONS_REASON,
        message: "0 of 1 nodes vote".to_owned(),
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
