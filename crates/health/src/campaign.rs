//! The decision of an agent to campaign for the lease of its cluster's agents.
//!
//! A leader sends a request to every agent once a period. An agent that had one lately knows that there
//! is a leader and leaves the lease alone, so a thousand agents do not watch it. Two of them, chosen by
//! the leader, stand by to take over. Agents without a request campaign one after the other.
//!
//! A leader that hears too few votes for long gives the lease back, so that one that hears more can lead.
//! It abstains for a while: long enough for every other agent to notice, and shorter than a reporter may
//! be silent. If nobody else leads by then, it leads again, and for longer each time.

use std::time::{Duration, Instant};

/// The number of agents that start to campaign in each [`TURN`].
const AT_ONCE: u32 = 3;
const TURN: Duration = Duration::from_secs(2);
/// The longest time for which a leader keeps the lease with too few votes, unless its patience is longer.
const LONGEST_TENURE: Duration = Duration::from_mins(10);
/// Beyond this many doublings every tenure is longer than the longest.
const MOST_DOUBLINGS: u32 = 16;

/// A leader's request to this agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderContact {
    /// The moment of the request.
    pub at: Instant,
    /// Set if this agent is to take over when that leader is gone.
    pub standby: bool,
}

/// The facts on which an agent decides whether to campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionView {
    /// The start of this agent.
    pub started: Instant,
    /// The last request of a leader.
    pub contact: Option<LeaderContact>,
    /// The number of agents, this one included; `None` until it is known.
    pub known: Option<usize>,
    /// The end of this agent's last abstention.
    pub abstains_until: Option<Instant>,
}

/// An agent's claim to campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidacy {
    /// It does not campaign, as things are.
    Never,
    /// It campaigns from this moment on.
    From(Instant),
    /// It campaigns until this moment and does not wait for its turn.
    StandBy(Instant),
    /// It gives the lease back if it holds it, and does not campaign before this moment.
    Abstain(Instant),
}

impl ElectionView {
    /// Decides as of `now` when to campaign for a lease that lasts for `lease` after its last renewal.
    /// `share`, a random number from 0 to 1, is this agent's turn among all.
    pub fn candidacy(&self, now: Instant, lease: Duration, share: f64) -> Candidacy {
        if let Some(until) = self.abstains_until.filter(|until| now < *until) {
            return Candidacy::Abstain(until);
        }
        let Some(known) = self.known else {
            return Candidacy::Never;
        };
        let turn = spread(known).mul_f64(share.clamp(0.0, 1.0));
        // A standby takes the lease once it has run out, which is up to its duration after the leader's
        // last request. After twice that time the leader's choice means nothing any more.
        let standby = self.contact.filter(|contact| contact.standby);
        let relieved = standby.and_then(|contact| contact.at.checked_add(2 * lease));
        if let Some(until) = relieved.filter(|until| now < *until) {
            return Candidacy::StandBy(until);
        }
        let from = match self.contact {
            Some(contact) => contact.at.checked_add(lease + turn),
            None => self.started.checked_add(turn),
        };
        from.map_or(Candidacy::Never, Candidacy::From)
    }
}

/// A leader's patience with too few votes, which outlasts its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    patience: Duration,
    /// The number of terms in a row that ended with too few votes.
    resignations: u32,
}

impl Tenure {
    /// Creates the patience of an agent that keeps the lease for at least `patience` with too few votes.
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            resignations: 0,
        }
    }

    /// Returns the moment at which a leader gives the lease back that knows so many agents, itself
    /// included, and has had too few votes since `insufficient`. `None` if nobody else could lead.
    pub fn ends_at(&self, known: usize, insufficient: Instant) -> Option<Instant> {
        let factor = 2_u32.saturating_pow(self.resignations);
        let longest = LONGEST_TENURE.max(self.patience);
        let tenure = self.patience.saturating_mul(factor).min(longest);
        insufficient.checked_add(tenure).filter(|_| known > 1)
    }

    /// Records that the leader gave the lease back. Should nobody else lead in its stead, the next term is
    /// twice as long, so that the lease does not change hands for ever.
    pub fn resigned(&mut self) {
        self.resignations = (self.resignations + 1).min(MOST_DOUBLINGS);
    }

    /// Records that enough nodes vote.
    pub fn heard_enough(&mut self) {
        self.resignations = 0;
    }
}

/// Returns the time for which a leader that gave back a lease of this duration does not campaign.
pub fn abstention(lease: Duration) -> Duration {
    // Agents with a leader notice its absence after one duration, and then wait for their turns. Twice
    // that is still less than the remedy-controller's patience with a silent reporter.
    2 * lease
}

/// Returns the time over which `known` agents spread an action that they must not take all at once.
pub fn spread(known: usize) -> Duration {
    let known = u32::try_from(known).unwrap_or(u32::MAX);
    TURN.saturating_mul(known) / AT_ONCE
}

#[cfg(test)]
mod tests;
