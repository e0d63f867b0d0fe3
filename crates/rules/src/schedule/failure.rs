//! The reasons why a binding cannot be scheduled, in the words of Karmada's scheduler.

use std::collections::BTreeMap;
use std::fmt;

/// The reason why one affinity has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffinityFailure {
    /// No cluster fits.
    Unfit(Unfit),
    /// The clusters that fit have room for this many replicas only.
    Short(i64),
    /// The clusters of all tiers together lack room.
    Overflows,
    /// The placement cannot be met or understood.
    Error(String),
    /// The placement asks for what this scheduler does not do.
    Unsupported(String),
}

impl AffinityFailure {
    pub(super) fn error(message: &str) -> Self {
        Self::Error(message.to_owned())
    }

    pub(super) fn unsupported(what: &str) -> Self {
        Self::Unsupported(what.to_owned())
    }
}

/// The reasons why no cluster fits, with the number of clusters of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub(super) clusters: usize,
    pub(super) reasons: BTreeMap<String, usize>,
}

/// The reason of a binding that no cluster fits.
pub const NO_CLUSTER_FIT: &str = "NoClusterFit";
/// The reason of a binding for which the clusters lack room.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// The reason of a binding whose placement cannot be met otherwise, which may be for a lack of room, too.
pub(super) const SCHEDULER_ERROR: &str = "SchedulerError";

/// Returns the reason of a condition for what failed. The order of the failures does not matter.
pub(super) fn reason(failures: &[AffinityFailure]) -> &'static str {
    use AffinityFailure::{Overflows, Short, Unfit};
    if failures.iter().all(|failure| matches!(failure, Unfit(_))) {
        NO_CLUSTER_FIT
    } else if failures
        .iter()
        .all(|failure| matches!(failure, Unfit(_) | Short(_) | Overflows))
    {
        UNSCHEDULABLE
    } else {
        SCHEDULER_ERROR
    }
}

impl fmt::Display for AffinityFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Short(available) => write!(
                f,
                "Clusters available replicas {available} are not enough to schedule."
            ),
            Self::Overflows => {
                f.write_str("Clusters available replicas are not enough to schedule.")
            }
            Self::Error(message) => f.write_str(message),
            Self::Unsupported(what) => write!(f, "Unsupported: {what}"),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0/{} clusters are available", self.clusters)?;
        // Karmada sorts the texts with their numbers.
        let mut reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, clusters)| format!("{clusters} {reason}"))
            .collect();
        reasons.sort_unstable();
        write!(f, ": {}.", reasons.join(", "))
    }
}
