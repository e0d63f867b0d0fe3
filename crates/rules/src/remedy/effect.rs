//! The effect of one remedy on one cluster.

use std::fmt;

use jiff::Timestamp;
use karmada_api::{Cluster, ClusterConditionRequirement, Operator, Remedy};

use super::mode::Mode;
use super::scope::covers;

/// The effect of a remedy on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The remedy requires its actions.
    Acts(Cause),
    /// It would require them if it did not only observe.
    WouldAct(Cause),
    /// It may require them: what decides about that cannot be read.
    Unclear,
}

/// The reason why a remedy acts on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The remedy has no matches: someone decided to act at once.
    Unconditional,
    /// A condition of the cluster matches.
    Condition {
        /// The condition's type.
        kind: String,
        /// Its status.
        status: String,
    },
}

impl Effect {
    /// Returns the effect at `now` of `remedy`, whose scope covers `cluster`; `None` if it has none.
    pub fn of(remedy: &Remedy, cluster: &Cluster, now: Timestamp) -> Option<Self> {
        if remedy.metadata.deletion_timestamp.is_some() {
            return None;
        }
        match (Mode::of(remedy, now), matched(remedy, cluster)) {
            (Mode::Expired, _) => None,
            (Mode::Enforce, Some(cause)) => Some(Self::Acts(cause)),
            (Mode::Observe, cause) => cause.map(Self::WouldAct),
            (Mode::Hold, Some(_)) => Some(Self::Unclear),
            (Mode::Enforce | Mode::Hold, None) => {
                depends_on_unclear(remedy, cluster).then_some(Self::Unclear)
            }
        }
    }
}

/// Returns the reason why `remedy` acts on `cluster` at `now`, or `None` if it does not. Checks the
/// remedy's scope too.
pub fn cause(remedy: &Remedy, cluster: &Cluster, now: Timestamp) -> Option<Cause> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    match Effect::of(remedy, cluster, now) {
        Some(Effect::Acts(cause)) if covers(remedy, name) => Some(cause),
        _ => None,
    }
}

fn matched(remedy: &Remedy, cluster: &Cluster) -> Option<Cause> {
    match &remedy.spec.decision_matches {
        // Nobody asked for a condition. An empty list is one whose last match was removed.
        None => Some(Cause::Unconditional),
        Some(_) => requirements(remedy).find_map(|requirement| met(requirement, cluster)),
    }
}

/// Returns `true` if the remedy names a condition of the cluster that cannot be read.
fn depends_on_unclear(remedy: &Remedy, cluster: &Cluster) -> bool {
    requirements(remedy).any(|wanted| cluster.is_unclear(&wanted.condition_type))
}

/// Iterates over the requirements of a remedy on a cluster's conditions, of which any one suffices.
pub(super) fn requirements(remedy: &Remedy) -> impl Iterator<Item = &ClusterConditionRequirement> {
    let matches = remedy.spec.decision_matches.iter().flatten();
    matches.filter_map(|decision| decision.cluster_condition_match.as_ref())
}

/// Returns the cause if the requirement is met. A condition that the cluster does not have, or whose
/// status is of another type than text, never matches, `NotEqual` included. A status that is null or left
/// out is an empty text, as in Karmada: it differs from any that a requirement names.
fn met(requirement: &ClusterConditionRequirement, cluster: &Cluster) -> Option<Cause> {
    let condition = cluster.condition(&requirement.condition_type)?;
    let equal = condition.status == requirement.condition_status;
    let met = match requirement.operator? {
        Operator::Equal => equal,
        Operator::NotEqual => !equal,
    };
    (met && !condition.unclear).then(|| Cause::Condition {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
    })
}

/// Returns the actions of a remedy.
pub(super) fn actions(remedy: &Remedy) -> &[String] {
    remedy.spec.actions.as_deref().unwrap_or_default()
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconditional => f.write_str("it names no condition"),
            Self::Condition { kind, status } => write!(f, "{kind} is {status}"),
        }
    }
}
