//! One node's vote on the cluster's DNS, from its stream of probe rounds.
//!
//! Answers that agree make a streak, which is as old as the time since its first round was due. A
//! streak that is as old as its threshold settles the vote, in the moment it becomes so, or, if it is
//! one of failures, a quarter of a second later: there is no waiting for another round to end, and
//! [`Threshold::next_change`] tells when to look.
//!
//! A node whose vote fell from healthy to unhealthy, and falls again soon, must succeed for longer
//! before it is healthy once more: twice as long with each fall. So a cluster that flaps is not
//! blocked and released all the time.

use std::time::{Duration, Instant};

use super::observation::{Failure, Observation};

/// How long answers must agree before they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// How long all rounds must have failed for an unhealthy vote.
    pub failure: Duration,
    /// How long all rounds must have succeeded for a healthy vote.
    pub success: Duration,
    /// How long without any observation until there is no vote.
    pub silence: Duration,
    /// The longest that a node which falls again and again must succeed for a healthy vote; one that is
    /// shorter than `success` changes nothing.
    pub max_hold: Duration,
}

/// How long a fall from healthy to unhealthy counts against the next ones.
const MEMORY: Duration = Duration::from_mins(10);

/// How long failures wait for a round that is due in the moment they are old enough: DNS that works
/// again answers it by then, and an outage shorter than the threshold turns no vote.
const GLANCE: Duration = Duration::from_millis(250);

/// A finished probe round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// When it was due to start.
    pub scheduled: Instant,
    /// When it finished.
    pub finished: Instant,
    /// What it saw.
    pub observation: Observation,
}

/// A node's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The newest answers are good, but not for a whole threshold: healthy only for a cluster that
    /// has no verdict yet.
    FirstSuccess,
    /// DNS works on this node.
    Healthy,
    /// DNS fails on this node; this is its newest failure.
    Unhealthy(Failure),
}

/// The state from which a node's vote follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    thresholds: Thresholds,
    settled: Option<Vote>,
    streak: Option<Streak>,
    fall: Option<Fall>,
}

/// The last turn from healthy to unhealthy, while it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fall {
    at: Instant,
    /// How many falls led to it, each remembered when the next one came.
    before: u32,
}

/// Successive observations that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Streak {
    answer: Answer,
    since: Instant,
    /// When the newest of them was due to start.
    due: Instant,
    newest: Instant,
    /// Whether the newest finished round is one of them; a round that could not ask is not.
    newest_agrees: bool,
}

type Answer = Result<(), Failure>;

impl Threshold {
    /// A node that has seen nothing yet.
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            settled: None,
            streak: None,
            fall: None,
        }
    }

    /// Takes in a finished round. Rounds come in the order in which they finish.
    pub fn observe(&mut self, round: &Round) {
        self.advance(round.finished);
        match round.observation {
            Observation::Resolved => self.extend(Ok(()), round),
            Observation::Failed(failure) => self.extend(Err(failure), round),
            Observation::Internal => {
                if let Some(streak) = &mut self.streak {
                    streak.newest_agrees = false;
                }
            }
        }
        self.advance(round.finished);
    }

    /// Lets time pass, up to `now`.
    pub fn advance(&mut self, now: Instant) {
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

    /// The vote as of the last call of [`Self::observe`] or [`Self::advance`].
    pub fn vote(&self) -> Option<Vote> {
        self.settled.or_else(|| {
            let streak = self.streak.as_ref()?;
            streak.answer.is_ok().then_some(Vote::FirstSuccess)
        })
    }

    /// How long successes must last for a healthy vote now.
    pub fn hold(&self) -> Duration {
        let success = self.thresholds.success;
        let doublings = self.fall.map_or(0, |fall| fall.before);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let most = self.thresholds.max_hold.max(success);
        success.saturating_mul(factor).min(most)
    }

    /// When the vote, or the hold, changes by itself if no round finishes before that.
    pub fn next_change(&self) -> Option<Instant> {
        [self.settles_at(), self.silent_at(), self.forgets_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn extend(&mut self, answer: Answer, round: &Round) {
        let since = match &self.streak {
            Some(streak) if streak.answer.is_ok() == answer.is_ok() => streak.since,
            _ => round.scheduled,
        };
        self.streak = Some(Streak {
            answer,
            since,
            due: round.scheduled,
            newest: round.finished,
            newest_agrees: true,
        });
        if let (Some(Vote::Unhealthy(shown)), Err(newest)) = (&mut self.settled, answer) {
            *shown = newest;
        }
    }

    /// Turns the vote to what the streak says, as of `at`.
    fn settle(&mut self, at: Instant) {
        let before = std::mem::replace(
            &mut self.settled,
            self.streak.as_ref().map(|streak| vote(streak.answer)),
        );
        if let (Some(Vote::Healthy), Some(Vote::Unhealthy(_))) = (before, self.settled) {
            let remembered = self
                .fall
                .filter(|fall| at.saturating_duration_since(fall.at) < MEMORY);
            let before = remembered.map_or(0, |fall| fall.before.saturating_add(1));
            self.fall = Some(Fall { at, before });
        }
    }

    /// When the streak overturns the vote. A moment that no clock reaches is none.
    fn settles_at(&self) -> Option<Instant> {
        let streak = self.streak.as_ref().filter(|streak| streak.newest_agrees)?;
        match (streak.answer, self.settled) {
            (Ok(()), Some(Vote::Healthy)) | (Err(_), Some(Vote::Unhealthy(_))) => None,
            (Ok(()), _) => self.recovers_at(streak.since),
            (Err(_), _) => {
                let old = streak.since.checked_add(self.thresholds.failure)?;
                if streak.due >= old {
                    Some(old)
                } else {
                    old.checked_add(GLANCE)
                }
            }
        }
    }

    /// When successes since `since` make the vote healthy: after the hold, or, if that is sooner, once
    /// the falls are forgotten.
    fn recovers_at(&self, since: Instant) -> Option<Instant> {
        let earliest = since.checked_add(self.thresholds.success)?;
        let forgotten = self.forgets_at().map_or(earliest, |at| at.max(earliest));
        Some(match since.checked_add(self.hold()) {
            Some(held) => held.min(forgotten),
            None => forgotten,
        })
    }

    fn forgets_at(&self) -> Option<Instant> {
        self.fall?.at.checked_add(MEMORY)
    }

    fn silent_at(&self) -> Option<Instant> {
        let streak = self.streak.as_ref()?;
        streak.newest.checked_add(self.thresholds.silence)
    }
}

fn vote(answer: Answer) -> Vote {
    match answer {
        Ok(()) => Vote::Healthy,
        Err(failure) => Vote::Unhealthy(failure),
    }
}

#[cfg(test)]
mod tests;
