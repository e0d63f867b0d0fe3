//! Whether an agent seeks the lease of its cluster's agents.
//!
//! A leader asks every agent once a period, so one that was asked lately knows that there is a leader
//! and leaves the lease alone: a thousand agents do not watch it. Two of them, which the leader names,
//! stand by to take over. Those whom no leader asks seek the lease themselves, one after the other.

use std::time::{Duration, Instant};

/// How many agents begin to seek the lease in each [`TURN`].
const AT_ONCE: u32 = 3;
const TURN: Duration = Duration::from_secs(2);

/// That a leader has asked this agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderContact {
    /// When.
    pub at: Instant,
    /// Whether this agent is to take over when that leader is gone.
    pub standby: bool,
}

/// What one agent knows of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// When it began.
    pub started: Instant,
    /// When a leader last asked it.
    pub contact: Option<LeaderContact>,
    /// How many agents there are, with this one; none until that is known.
    pub known: Option<usize>,
}

/// From when on an agent seeks the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidacy {
    /// Never, as things are.
    Never,
    /// From this moment on.
    From(Instant),
    /// It stands by: it seeks the lease already, and does not wait its turn.
    StandBy,
}

impl Situation {
    /// Whether to seek a lease that lasts for `lease` after its last renewal. `share`, a random number
    /// from 0 to 1, is this agent's place among those that seek it.
    pub fn candidacy(&self, lease: Duration, share: f64) -> Candidacy {
        let Some(known) = self.known else {
            return Candidacy::Never;
        };
        let turn = spread(known).mul_f64(share.clamp(0.0, 1.0));
        let from = match self.contact {
            // Also when that leader asks no more: then its lease is about to run out.
            Some(contact) if contact.standby => return Candidacy::StandBy,
            Some(contact) => contact.at.checked_add(lease + turn),
            None => self.started.checked_add(turn),
        };
        from.map_or(Candidacy::Never, Candidacy::From)
    }
}

/// Over how long `known` agents spread what none of them must do at the same time as all others.
pub fn spread(known: usize) -> Duration {
    let known = u32::try_from(known).unwrap_or(u32::MAX);
    TURN.saturating_mul(known) / AT_ONCE
}

#[cfg(test)]
mod tests;
