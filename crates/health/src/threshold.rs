//! One node's vote on one signal, from its stream of probe rounds.
//!
//! Observations that agree form a streak, which begins when its first round was due. A streak as old as
//! its threshold settles the vote at that very moment, without waiting for another round; a streak of
//! failures may take a quarter of a second more. [`Threshold::next_change`] returns that moment.
//!
//! The time between two rounds counts only if rounds really cover it. While the process does not run (a
//! frozen cgroup, swap, SIGSTOP) nothing is observed, so such a stall brings no streak to its threshold, and
//! a round that it interrupts observes nothing.
//!
//! A node whose vote falls from healthy to unhealthy again and again must succeed for twice as long after
//! each fall before it is healthy once more. So a cluster that flaps is not blocked and released all the
//! time.
//!
//! All times are monotonic: setting the system clock changes nothing.

use std::time::{Duration, Instant};

use super::observation::{Failure, Observation, Partial};

/// The times for which observations must agree before they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The time from the scheduled start of one round to that of the next.
    pub period: Duration,
    /// The time for which all rounds must have failed for an unhealthy vote.
    pub failure: Duration,
    /// The time for which all rounds must have succeeded for a healthy vote.
    pub success: Duration,
    /// The time without any observation after which the node loses its vote.
    pub silence: Duration,
    /// The longest time for which a node that falls again and again must succeed for a healthy vote. A
    /// value below `success` has no effect.
    pub max_hold: Duration,
}

impl Thresholds {
    /// Returns the longest time that a round covers from its scheduled start. A second period leaves room
    /// for a late round, and for one that could not ask.
    fn reach(&self) -> Duration {
        self.period.saturating_mul(2)
    }
}

/// The time for which a fall from healthy to unhealthy is remembered.
const FALL_MEMORY: Duration = Duration::from_mins(10);

/// The time that a streak of failures waits for a round due at the moment it is old enough. DNS that
/// works again responds to that round by then, so an outage shorter than the threshold changes no vote.
const LAST_ROUND_GRACE: Duration = Duration::from_millis(250);

/// A finished probe round, with one observation, or those of several clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round<O = Observation> {
    /// The moment at which it was due to start.
    pub scheduled: Instant,
    /// The moment at which it finished.
    pub finished: Instant,
    /// Its observation.
    pub observation: O,
}

/// A node's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The first rounds succeeded, but not yet for a whole threshold. Counts as healthy only while the
    /// cluster has no verdict.
    FirstSuccess,
    /// It works on this node.
    Healthy,
    /// As [`Self::Healthy`], but not for all pods, or not without a wait.
    Partial(Partial),
    /// It fails on this node; this is its newest failure.
    Unhealthy(Failure),
}

impl Vote {
    /// Returns `true` unless the signal fails on the node.
    pub fn is_healthy(self) -> bool {
        !matches!(self, Self::Unhealthy(_))
    }
}

/// The state machine of a node's vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    thresholds: Thresholds,
    settled: Option<Vote>,
    streak: Option<Streak>,
    fall: Option<Fall>,
}

/// The last fall from healthy to unhealthy, while it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fall {
    at: Instant,
    /// The number of falls before it, each still remembered at the next one.
    before: u32,
}

/// Successive observations that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Streak {
    outcome: Outcome,
    since: Instant,
    /// The moment at which the newest of them was due to start.
    due: Instant,
    /// The moment at which the newest of them finished.
    newest: Instant,
    /// Set if the newest finished round is one of them. An internal error is not.
    newest_agrees: bool,
}

/// A success has the trouble that shows all the same.
type Outcome = Result<Partial, Failure>;

impl Threshold {
    /// Creates the state of a node without any observation.
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            settled: None,
            streak: None,
            fall: None,
        }
    }

    /// Processes a finished round. Rounds must come in the order in which they finish.
    pub fn observe(&mut self, round: &Round) {
        // First with the old streak alone: it may have settled before this round finished.
        self.advance(round.finished);
        let took = round.finished.saturating_duration_since(round.scheduled);
        match round.observation {
            // Its deadline is shorter than a period. So the process stalled meanwhile, and a missing
            // response is no evidence against the server.
            _ if took > self.thresholds.reach() => self.interrupt(),
            Observation::Success => self.extend(Ok(Partial::default()), round),
            Observation::Partial(partial) => self.extend(Ok(partial), round),
            Observation::Failed(failure) => self.extend(Err(failure), round),
            Observation::Internal => self.interrupt(),
        }
        self.advance(round.finished);
    }

    /// Processes a round that observed nothing.
    fn interrupt(&mut self) {
        if let Some(streak) = &mut self.streak {
            streak.newest_agrees = false;
        }
    }

    /// Lets time pass up to `now`.
    pub fn advance(&mut self, now: Instant) {
        // Both may have passed since the last call; the earlier one happened first.
        let silent = self.silent_at().filter(|at| *at <= now);
        let settles = self.settles_at().filter(|at| *at <= now);
        if let Some(at) = settles.filter(|at| silent.is_none_or(|silent| *at < silent)) {
            self.settle(at);
        }
        if silent.is_some() {
            (self.settled, self.streak) = (None, None);
        }
        if self.forgets_at().is_some_and(|at| at <= now) {
            self.fall = None;
        }
    }

    /// Returns the vote as of the last call of [`Self::observe`] or [`Self::advance`].
    pub fn vote(&self) -> Option<Vote> {
        self.settled.or_else(|| {
            let streak = self.streak.as_ref()?;
            streak.outcome.is_ok().then_some(Vote::FirstSuccess)
        })
    }

    /// Returns the time for which rounds must currently succeed for a healthy vote.
    pub fn hold(&self) -> Duration {
        let success = self.thresholds.success;
        // `checked_shl` guards the shift; the product saturates, and `most` limits both.
        let doublings = self.fall.map_or(0, |fall| fall.before);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let most = self.thresholds.max_hold.max(success);
        success.saturating_mul(factor).min(most)
    }

    /// Returns the moment at which the vote or the hold changes if no round finishes before.
    pub fn next_change(&self) -> Option<Instant> {
        [self.settles_at(), self.silent_at(), self.forgets_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn extend(&mut self, outcome: Outcome, round: &Round) {
        let since = match &self.streak {
            Some(streak) if streak.outcome.is_ok() == outcome.is_ok() => {
                let gap = round.scheduled.saturating_duration_since(streak.due);
                let missed = if gap > self.thresholds.reach() {
                    gap.saturating_sub(self.thresholds.period)
                } else {
                    Duration::ZERO
                };
                // At most the scheduled start of this round, so it cannot overflow.
                streak.since + missed
            }
            _ => round.scheduled,
        };
        self.streak = Some(Streak {
            outcome,
            since,
            due: round.scheduled,
            newest: round.finished,
            newest_agrees: true,
        });
        // The vote stays, but its failure is the newest.
        if self
            .settled
            .is_some_and(|settled| settled.is_healthy() == outcome.is_ok())
        {
            self.settled = Some(vote(outcome));
        }
    }

    /// Settles the vote at the streak's outcome, as of `at`.
    fn settle(&mut self, at: Instant) {
        let before = std::mem::replace(
            &mut self.settled,
            self.streak.as_ref().map(|streak| vote(streak.outcome)),
        );
        let votes = [before, self.settled].map(|vote| vote.map(Vote::is_healthy));
        if votes == [Some(true), Some(false)] {
            let remembered = self
                .fall
                .filter(|fall| at.saturating_duration_since(fall.at) < FALL_MEMORY);
            let before = remembered.map_or(0, |fall| fall.before.saturating_add(1));
            self.fall = Some(Fall { at, before });
        }
    }

    /// Returns the moment at which the streak changes the vote. `None` also for one that overflows the
    /// clock.
    fn settles_at(&self) -> Option<Instant> {
        let streak = self.streak.as_ref().filter(|streak| streak.newest_agrees)?;
        let healthy = self.settled.map(Vote::is_healthy);
        let settles = match streak.outcome {
            outcome if healthy == Some(outcome.is_ok()) => return None,
            Ok(_) => self.recovers_at(streak.since)?,
            Err(_) => {
                let old = streak.since.checked_add(self.thresholds.failure)?;
                // A round due at or after that moment has failed already, so nothing is left to wait for.
                if streak.due >= old {
                    old
                } else {
                    old.checked_add(LAST_ROUND_GRACE)?
                }
            }
        };
        let covered = streak.due.checked_add(self.thresholds.reach());
        covered
            .is_none_or(|until| settles <= until)
            .then_some(settles)
    }

    /// Returns the moment at which successes since `since` make the vote healthy: after the hold or, if
    /// that is sooner, once the falls are forgotten.
    fn recovers_at(&self, since: Instant) -> Option<Instant> {
        let earliest = since.checked_add(self.thresholds.success)?;
        let forgotten = self.forgets_at().map_or(earliest, |at| at.max(earliest));
        Some(match since.checked_add(self.hold()) {
            Some(held) => held.min(forgotten),
            None => forgotten,
        })
    }

    fn forgets_at(&self) -> Option<Instant> {
        self.fall?.at.checked_add(FALL_MEMORY)
    }

    fn silent_at(&self) -> Option<Instant> {
        let streak = self.streak.as_ref()?;
        streak.newest.checked_add(self.thresholds.silence)
    }
}

fn vote(outcome: Outcome) -> Vote {
    match outcome {
        Ok(partial) if partial.is_nothing() => Vote::Healthy,
        Ok(partial) => Vote::Partial(partial),
        Err(failure) => Vote::Unhealthy(failure),
    }
}

#[cfg(test)]
mod tests;
