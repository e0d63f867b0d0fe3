//! The decision of an agent to campaign for the lease of its cluster's agents.
//!
//! A leader sends a request to every agent once a period. An agent that had one lately knows that there
//! is a leader and leaves the lease alone, so a thousand agents do not watch it. Two of them, chosen by
//! the leader, stand by to take over. Agents without a request campaign one after the other.

use std::time::{Duration, Instant};

/// The number of agents that start to campaign in each [`TURN`].
const AT_ONCE: u32 = 3;
const TURN: Duration = Duration::from_secs(2);

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
}

/// An agent's claim to campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidacy {
    /// It does not campaign, as things are.
    Never,
    /// It campaigns from this moment on.
    From(Instant),
    /// It campaigns now and does not wait for its turn.
    StandBy,
}

impl ElectionView {
    /// Decides when to campaign for a lease that lasts for `lease` after its last renewal. `share`, a
    /// random number from 0 to 1, is this agent's turn among all.
    pub fn candidacy(&self, lease: Duration, share: f64) -> Candidacy {
        let Some(known) = self.known else {
            return Candidacy::Never;
        };
        let turn = spread(known).mul_f64(share.clamp(0.0, 1.0));
        let from = match self.contact {
            // Even if that leader has fallen silent: then its lease is about to run out.
            Some(contact) if contact.standby => return Candidacy::StandBy,
            Some(contact) => contact.at.checked_add(lease + turn),
            None => self.started.checked_add(turn),
        };
        from.map_or(Candidacy::Never, Candidacy::From)
    }
}

/// Returns the time over which `known` agents spread an action that they must not take all at once.
pub fn spread(known: usize) -> Duration {
    let known = u32::try_from(known).unwrap_or(u32::MAX);
    TURN.saturating_mul(known) / AT_ONCE
}

#[cfg(test)]
mod tests;
