//! One node's vote on the cluster's DNS, from its stream of probe rounds.
//!
//! Answers that agree make a streak, which is as old as the time since its first round was due. A
//! streak that is as old as its threshold settles the vote, in the moment it becomes so: there is
//! no waiting for another round, and [`Threshold::next_change`] tells when to look.

use std::time::{Duration, Instant};

use crate::observation::{Failure, Observation};

/// How long answers must agree before they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// How long all rounds must have failed for an unhealthy vote.
    pub failure: Duration,
    /// How long all rounds must have succeeded for a healthy vote.
    pub success: Duration,
    /// How long without any observation until there is no vote.
    pub silence: Duration,
}

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
}

/// Successive observations that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Streak {
    answer: Answer,
    since: Instant,
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
        if self.silent_at().is_some_and(|at| at <= now) {
            *self = Self::new(self.thresholds);
        } else if self.settles_at().is_some_and(|at| at <= now) {
            self.settled = self.streak.as_ref().map(|streak| vote(streak.answer));
        }
    }

    /// The vote as of the last call of [`Self::observe`] or [`Self::advance`].
    pub fn vote(&self) -> Option<Vote> {
        self.settled.or_else(|| {
            let streak = self.streak.as_ref()?;
            streak.answer.is_ok().then_some(Vote::FirstSuccess)
        })
    }

    /// When the vote changes by itself if no round finishes before that.
    pub fn next_change(&self) -> Option<Instant> {
        [self.settles_at(), self.silent_at()]
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
            newest: round.finished,
            newest_agrees: true,
        });
        if let (Some(Vote::Unhealthy(shown)), Err(newest)) = (&mut self.settled, answer) {
            *shown = newest;
        }
    }

    /// When the streak overturns the vote. A moment that no clock reaches is none.
    fn settles_at(&self) -> Option<Instant> {
        let streak = self.streak.as_ref().filter(|streak| streak.newest_agrees)?;
        let threshold = match (streak.answer, self.settled) {
            (Ok(()), Some(Vote::Healthy)) | (Err(_), Some(Vote::Unhealthy(_))) => return None,
            (Ok(()), _) => self.thresholds.success,
            (Err(_), _) => self.thresholds.failure,
        };
        streak.since.checked_add(threshold)
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
