//! The faults of the programs and the fleet.

use std::fmt;

use crate::{fleet::Member, programs::Binary};

/// A fault of the fleet in a turn, while templates are edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing: edits alone.
    None,
    /// The API of a member is away.
    MemberAway(Member),
    /// The API of the fleet is away, and copies are edited by somebody else meanwhile.
    FleetAway,
    /// Somebody else edits the copies in every member.
    Drift,
    /// The policy is paused, and resumed after the edits.
    Paused,
    /// DNS of a member fails, and a Remedy takes its traffic away, until it returns.
    DnsFails(Member),
    /// A program does not run for a while.
    Frozen(Binary),
    /// A program is killed, and started again.
    Killed(Binary),
}

/// One of these after the other.
const TURNS: [Fault; 10] = [
    Fault::None,
    Fault::MemberAway(Member(1)),
    Fault::Drift,
    Fault::Killed(Binary::PropagationController),
    Fault::Paused,
    Fault::Killed(Binary::ExecutionController),
    Fault::DnsFails(Member(2)),
    Fault::Frozen(Binary::ExecutionController),
    Fault::FleetAway,
    Fault::Killed(Binary::Scheduler),
];

impl Fault {
    /// Returns the fault of this turn; where memory is to be `level`, no program is killed.
    pub(super) fn of_turn(turn: usize, level: bool) -> Self {
        match TURNS[turn % TURNS.len()] {
            Self::Killed(program) if level => Self::Frozen(program),
            fault => fault,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("edits"),
            Self::MemberAway(member) => write!(formatter, "the API of {} is away", member.name()),
            Self::FleetAway => formatter.write_str("the API of the fleet is away"),
            Self::Drift => formatter.write_str("another writer in every member"),
            Self::Paused => formatter.write_str("the policy is paused"),
            Self::DnsFails(member) => write!(formatter, "DNS of {} fails", member.name()),
            Self::Frozen(program) => write!(formatter, "{} stands still", program.name()),
            Self::Killed(program) => write!(formatter, "{} is killed", program.name()),
        }
    }
}
