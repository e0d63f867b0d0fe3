//! The reasons why a binding cannot be scheduled, in the words of Karmada's scheduler.

use std::collections::BTreeMap;
use std::fmt;

use objects::message::bounded;

/// The reason why one affinity has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffinityFailure {
    /// No cluster fits.
    Unfit(Unfit),
    /// The clusters that fit have room for this many replicas only, with the step of the division that found it.
    Short(i64, Step),
    /// The clusters of all tiers together lack room.
    Overflows,
    /// The placement cannot be met or understood.
    Error(String),
    /// The placement asks for something that this scheduler does not do.
    Unsupported(String),
}

/// A step of the division of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More replicas than there are get a cluster.
    ScaleUp,
    /// All of them get one anew.
    FreshScale,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ScaleUp => "failed to assign replicas: failed to scale up",
            Self::FreshScale => "failed to assign replicas: failed to do fresh scale",
        })
    }
}

impl AffinityFailure {
    /// Returns the failure of the selection of clusters.
    pub(super) fn of_selection(self) -> Self {
        match self {
            Self::Error(message) => Self::Error(format!("failed to select clusters: {message}")),
            other => other,
        }
    }

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

/// Returns the reason of a condition for these failures. The order of the failures does not matter.
pub(super) fn reason(failures: &[AffinityFailure]) -> &'static str {
    use AffinityFailure::{Overflows, Short, Unfit};
    if failures.iter().all(|failure| matches!(failure, Unfit(_))) {
        NO_CLUSTER_FIT
    } else if failures
        .iter()
        .all(|failure| matches!(failure, Unfit(_) | Short(..) | Overflows))
    {
        UNSCHEDULABLE
    } else {
        SCHEDULER_ERROR
    }
}

/// Returns the message of a condition for these failures: each different one once, as Kubernetes shows several errors.
pub(super) fn message(failures: &[AffinityFailure]) -> String {
    let mut messages: Vec<String> = Vec::new();
    for failure in failures {
        let message = failure.to_string();
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    bounded(match messages.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    })
}

impl fmt::Display for AffinityFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Short(available, step) => write!(
                f,
                "{step}: Clusters available replicas {available} are not enough to schedule."
            ),
            Self::Overflows => f.write_str(
                "failed to assign replicas: Clusters available replicas are not enough to schedule.",
            ),
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
