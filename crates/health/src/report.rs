//! The conditions that a leader writes: the verdict on each signal, and their freshness.
//!
//! [`Reporter`] compares the judgements of the nodes' votes with the conditions of the `Cluster` and plans
//! which to write now and which later. One condition, [`REPORTER_READY`] for those of a member's own agents, tells whether all
//! verdicts are fresh: it is False as soon as too few nodes have voted on any signal for too long, and says on which.
//!
//! The condition of a signal that users declare has a type of their choice, so it is ours by its reason: one of that type
//! with another reason is another's and stays as it is, and one whose signal is declared no more is [obsolete].
//!
//! [obsolete]: Reporter::obsolete

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::condition::{
    FALSE, INSUFFICIENT_OBSERVATIONS_REASON, REPORTER_READY, REPORTING_REASON, TRUE, is_declared,
};
use objects::condition::{find, transition};

use super::quorum::{Judgement, Quorum, Tally, Verdict};
use super::signal::{PerTarget, Signal, Voters};

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

/// The terms on which the votes on a declared signal become a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The shares of nodes that the verdict takes.
    pub quorum: Quorum,
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
    started: Instant,
    /// The type of the condition of the verdicts' freshness.
    freshness: &'static str,
    signals: PerTarget<SignalState>,
    /// Set once it is known which signals users declare.
    knows_declared: bool,
    /// The last write of each condition.
    written: BTreeMap<&'static str, Instant>,
    /// The last write of each condition that changed its status or reason.
    changed: BTreeMap<&'static str, Instant>,
    /// The conditions whose status or reason the newest plan changes.
    changing: BTreeSet<&'static str>,
}

/// The state of one signal between plans.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SignalState {
    terms: Terms,
    /// The last verdict: true if the signal works.
    verdict: Option<bool>,
    participation: Participation,
}

impl SignalState {
    fn new(terms: Terms) -> Self {
        Self {
            terms,
            verdict: None,
            participation: Participation::Unknown,
        }
    }

    /// Judges the votes on `signal` and remembers the result.
    fn judge(
        &mut self,
        signal: &Signal,
        tally: &Tally,
        conditions: &[Condition],
        now: Instant,
    ) -> Judgement {
        // This leader's own last verdict takes precedence over the published one, which another client
        // may have overwritten. Without a published one, first successes count as for a new cluster.
        let published = published(conditions, signal);
        let current = published.map(|published| self.verdict.unwrap_or(published));
        let judgement = self.terms.quorum.judge(tally, current);
        if judgement.sufficient {
            self.participation = Participation::Enough;
            self.verdict = judgement.verdict.as_ref().map(|verdict| verdict.healthy);
        } else if self.too_few_since().is_none() {
            self.participation = Participation::TooFew { since: now };
        }
        judgement
    }

    fn too_few_since(&self) -> Option<Instant> {
        match self.participation {
            Participation::TooFew { since } => Some(since),
            Participation::Unknown | Participation::Enough => None,
        }
    }
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
    /// Creates the state of a leader whose term begins at `now`, and who reports on these signals of one cluster.
    pub fn new(pace: Pace, quorums: &PerTarget<Quorum>, now: Instant) -> Self {
        let mut signals = quorums.iter().map(|(target, _)| target.signal);
        Self {
            pace,
            started: now,
            freshness: signals
                .next()
                .map_or(REPORTER_READY, |signal| signal.reporter),
            signals: quorums.map(|_, quorum| {
                SignalState::new(Terms {
                    quorum: *quorum,
                    patience: pace.patience,
                })
            }),
            knows_declared: false,
            written: BTreeMap::new(),
            changed: BTreeMap::new(),
            changing: BTreeSet::new(),
        }
    }

    /// Takes in which signals users declare now. Those that were declared before keep their state.
    pub fn declare(&mut self, declared: &PerTarget<Terms>) {
        self.knows_declared = true;
        let signals = self.signals.iter().map(|(target, _)| target.signal);
        let undeclared: Vec<_> = signals
            .filter(|signal| signal.is_declared())
            .filter(|signal| !declared.iter().any(|(target, _)| target.signal == *signal))
            .collect();
        for signal in undeclared {
            self.signals.remove(signal);
        }
        for (target, terms) in declared.iter() {
            match self.signals.get_mut(target.signal) {
                Some(state) => state.terms = *terms,
                None => self.signals.insert(target.signal, SignalState::new(*terms)),
            }
        }
    }

    /// Returns the type of a condition to remove: its signal was declared once, and is no more.
    pub fn obsolete<'a>(&self, conditions: &'a [Condition]) -> Option<&'a str> {
        let mut declared = conditions.iter().filter(|one| is_declared(one));
        let obsolete = declared.find(|one| {
            let mut signals = self.signals.iter();
            !signals.any(|(target, _)| target.signal.condition == one.type_)
        });
        let obsolete = obsolete.filter(|_| self.knows_declared)?;
        Some(&obsolete.type_)
    }

    /// Returns the types of conditions that declared signals should have, and that another writes.
    pub fn taken(&self, conditions: &[Condition]) -> BTreeSet<&'static str> {
        let signals = self.signals.iter().map(|(target, _)| target.signal);
        let taken = signals.filter(|signal| is_anothers(conditions, signal));
        taken.map(|signal| signal.condition).collect()
    }

    /// Plans the writes for the Cluster's `conditions`. Must be called whenever these or the tallies change.
    /// `time` becomes the transition time of a condition whose status changes.
    pub fn plan(
        &mut self,
        tallies: &PerTarget<Tally>,
        conditions: &[Condition],
        now: Instant,
        time: Timestamp,
    ) -> ReportPlan {
        let mut judgements = Vec::new();
        let nobody = Tally::default();
        for (target, state) in self.signals.iter_mut() {
            let signal = target.signal;
            let tally = match tallies.of(target) {
                Some(tally) => tally,
                // Nobody can vote any more on a signal that has a verdict.
                None if published(conditions, signal).is_some() => &nobody,
                None => continue,
            };
            judgements.push((signal, state.judge(signal, tally, conditions, now)));
        }
        if judgements.is_empty() {
            return ReportPlan::Unchanged;
        }
        // Verdicts come first: they must not wait for a write of the other condition.
        let verdicts = judgements.iter().filter_map(|(signal, judgement)| {
            let verdict = judgement.verdict.as_ref()?;
            (!is_anothers(conditions, signal)).then(|| (ready(signal, verdict), Some(now)))
        });
        let mut desired: Vec<_> = verdicts.collect();
        desired.extend(self.freshness(&judgements, conditions, now));

        let mut writes = Vec::new();
        let mut wake: Option<Instant> = None;
        self.changing.clear();
        for (desired, not_before) in desired {
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

    /// Returns the condition of the verdicts' freshness, and the moment before which it is not due: `None`
    /// if that is never.
    fn freshness(
        &self,
        judgements: &[(&'static Signal, Judgement)],
        conditions: &[Condition],
        now: Instant,
    ) -> Option<(DesiredCondition, Option<Instant>)> {
        let unread = self.unread(conditions);
        let mut short: Vec<_> = judgements
            .iter()
            .filter(|(_, judgement)| !judgement.sufficient)
            .map(|(signal, judgement)| match judgements.len() {
                1 => judgement.message.clone(),
                _ => format!("{}: {}", signal.condition, judgement.message),
            })
            .collect();
        for kind in &unread {
            short.push(format!("{kind}: the file of signals cannot be used"));
        }
        if short.is_empty() {
            return Some((self.reporting(), Some(now)));
        }
        let desired = self.insufficient(short.join("; "));
        // The count of another leader stands: two that hear too few nodes would rewrite it in turn.
        let marked =
            find(conditions, self.freshness).is_some_and(|current| desired.is_status_of(current));
        if marked && !self.written.contains_key(self.freshness) {
            return None;
        }
        let stale_at = self.signals.values().filter_map(|state| {
            let since = state.too_few_since()?;
            since.checked_add(state.terms.patience)
        });
        let unread_at = self.started.checked_add(self.pace.patience);
        let unread_at = unread_at.filter(|_| !unread.is_empty());
        Some((desired, stale_at.chain(unread_at).min()))
    }

    /// Returns the types of the conditions of declared signals while it is unknown which are declared: nobody votes on them.
    fn unread<'a>(&self, conditions: &'a [Condition]) -> Vec<&'a str> {
        // Those of a gateway have nothing to do with them.
        if self.knows_declared || self.freshness != REPORTER_READY {
            return Vec::new();
        }
        let declared = conditions.iter().filter(|one| is_declared(one));
        declared.map(|one| &*one.type_).collect()
    }

    /// Returns the verdict on each signal of the last plan with enough votes: `Some(true)` if it works in
    /// the cluster.
    pub fn verdicts(&self) -> PerTarget<Option<bool>> {
        self.signals.map(|_, state| state.verdict)
    }

    fn reporting(&self) -> DesiredCondition {
        DesiredCondition {
            kind: self.freshness,
            status: TRUE,
            reason: REPORTING_REASON,
            message: "enough nodes vote".to_owned(),
        }
    }

    fn insufficient(&self, message: String) -> DesiredCondition {
        DesiredCondition {
            kind: self.freshness,
            status: FALSE,
            reason: INSUFFICIENT_OBSERVATIONS_REASON,
            message,
        }
    }

    /// Returns the participation as of the last plan. Too few vote only where that holds for every signal:
    /// nodes that vote on one are heard, and another leader would not hear more.
    pub fn participation(&self) -> Participation {
        // A leader's vote on a signal of its own says nothing about the nodes.
        let signals = self.signals.iter();
        let of_nodes = signals.filter(|(target, _)| target.signal.voters == Voters::Nodes);
        let of_nodes: Vec<_> = of_nodes.map(|(_, state)| state).collect();
        let too_few = of_nodes.iter().map(|state| state.too_few_since());
        match too_few.collect::<Option<Vec<_>>>() {
            Some(since) => match since.into_iter().max() {
                Some(since) => Participation::TooFew { since },
                None => Participation::Unknown,
            },
            None if of_nodes
                .iter()
                .any(|state| state.participation == Participation::Enough) =>
            {
                Participation::Enough
            }
            None => Participation::Unknown,
        }
    }

    /// Records a successful write of the condition of type `kind`.
    pub fn wrote(&mut self, kind: &str, now: Instant) {
        // Looked up for its `'static` name.
        let kinds = self
            .signals
            .iter()
            .map(|(target, _)| target.signal.condition);
        if let Some(kind) = kinds.chain([self.freshness]).find(|own| *own == kind) {
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

/// Returns `true` if another writes the condition that the declared `signal` should have.
fn is_anothers(conditions: &[Condition], signal: &Signal) -> bool {
    let current = find(conditions, signal.condition);
    signal.is_declared() && current.is_some_and(|current| !is_declared(current))
}

/// Returns the verdict on `signal` in the conditions.
fn published(conditions: &[Condition], signal: &Signal) -> Option<bool> {
    let condition = find(conditions, signal.condition);
    let condition = condition.filter(|_| !is_anothers(conditions, signal))?;
    match condition.status.as_str() {
        TRUE => Some(true),
        FALSE => Some(false),
        _ => None,
    }
}

fn ready(signal: &'static Signal, verdict: &Verdict) -> DesiredCondition {
    let (status, reason) = if verdict.healthy {
        (TRUE, signal.ready_reason)
    } else {
        (FALSE, signal.failed_reason)
    };
    DesiredCondition {
        kind: signal.condition,
        status,
        reason,
        message: verdict.message.clone(),
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
