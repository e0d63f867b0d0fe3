//! The clusters of a binding, and its replicas in each.

mod capacity;
mod decide;
mod divide;
mod evict;
mod filter;
mod groups;
mod need;
mod plan;
mod regions;
mod select;
mod selects;
mod strategy;
mod write;

use std::fmt;

pub use divide::webster;
pub use evict::next_due;
pub use filter::Unfit;
pub use need::{Scheduler, concerns, is_observed, is_unscheduled, waits_for_room};
pub use plan::{KnownClusters, Pass, SchedulePlan, plan};
pub use selects::selects;
pub use write::{SUCCESS, SpecWrite, StatusWrite};

/// The condition of a binding: True once its clusters have been chosen.
pub const SCHEDULED: &str = "Scheduled";

/// The reason why one affinity has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffinityFailure {
    /// No cluster fits.
    Unfit(Unfit),
    /// The clusters that fit have room for this many replicas only.
    Short(i64),
    /// The placement cannot be met or understood.
    Error(String),
    /// The placement asks for what this scheduler does not do.
    Unsupported(String),
}

impl fmt::Display for AffinityFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Short(available) => write!(
                f,
                "Clusters available replicas {available} are not enough to schedule."
            ),
            Self::Error(message) => f.write_str(message),
            Self::Unsupported(what) => write!(f, "Unsupported: {what}"),
        }
    }
}
