//! The remedy actions of a cluster, from its conditions and the users' remedies.

mod bound;
mod scope;
mod silence;

use std::collections::BTreeSet;
use std::fmt;

use karmada_api::{Cluster, ClusterConditionRequirement, Operator, Remedy, TRAFFIC_CONTROL};

pub use bound::{BlockBound, Claim, MaxBlocked, OverBound};
pub use scope::{RemedyIndex, Scope};
pub use silence::{Reporters, reporter_silent};

/// The write of a cluster's `status.remedyActions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemedyPlan {
    /// The field is up to date.
    Unchanged,
    /// These actions replace the current ones.
    Write {
        /// Sorted and unique. If empty, the field is removed.
        actions: Vec<String>,
        /// The changes, for Events and logs.
        changes: Vec<ActionChange>,
    },
}

/// An action that a write sets or clears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionChange {
    /// A remedy requires it, and the cluster does not have it yet.
    Set {
        /// The action.
        action: String,
        /// The first remedy, by name, that requires it.
        remedy: String,
        /// The reason why that remedy acts.
        cause: Cause,
    },
    /// No remedy requires it any more.
    Cleared {
        /// The action.
        action: String,
    },
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

/// Plans the actions of `cluster`. `remedies` are those whose scope covers it, in any order. While
/// `complete` is false, a remedy could not be read yet: then actions are added but not cleared, since the
/// unread remedy may require them. While `may_block` is false, [`BlockBound`] keeps the cluster unblocked.
pub fn plan<'a>(
    cluster: &Cluster,
    remedies: impl IntoIterator<Item = &'a Remedy>,
    complete: bool,
    may_block: bool,
) -> RemedyPlan {
    // A cluster that is leaving keeps its actions: lifting a block would send it traffic again.
    if cluster.metadata.deletion_timestamp.is_some() {
        return RemedyPlan::Unchanged;
    }
    let current = cluster.remedy_actions();
    let mut acting: Vec<(&Remedy, Cause)> = remedies
        .into_iter()
        .filter_map(|remedy| Some((remedy, cause(remedy, cluster)?)))
        .collect();
    // By name, so that the remedy named in a change does not depend on the order of the cache.
    acting.sort_by(|(a, _), (b, _)| a.metadata.name.cmp(&b.metadata.name));

    let mut wanted: BTreeSet<&String> = acting
        .iter()
        .flat_map(|(remedy, _)| actions(remedy))
        .collect();
    if !may_block {
        wanted.retain(|action| *action != TRAFFIC_CONTROL);
    }
    if !complete {
        wanted.extend(current);
    }
    // `remedyActions: []` is not up to date: the field must be absent rather than empty.
    let absent = cluster
        .status
        .as_ref()
        .is_none_or(|status| status.remedy_actions.is_none());
    let settled = if wanted.is_empty() {
        absent
    } else {
        wanted.iter().copied().eq(current)
    };
    if settled {
        return RemedyPlan::Unchanged;
    }
    let set = wanted
        .iter()
        .filter(|action| !current.contains(action))
        .filter_map(|action| {
            let (remedy, cause) = acting
                .iter()
                .find(|(remedy, _)| actions(remedy).contains(action))?;
            Some(ActionChange::Set {
                action: (*action).clone(),
                remedy: remedy.metadata.name.clone().unwrap_or_default(),
                cause: cause.clone(),
            })
        });
    let cleared: BTreeSet<&String> = current
        .iter()
        .filter(|action| !wanted.contains(action))
        .collect();
    let cleared = cleared.into_iter().map(|action| ActionChange::Cleared {
        action: action.clone(),
    });
    RemedyPlan::Write {
        changes: set.chain(cleared).collect(),
        actions: wanted.into_iter().cloned().collect(),
    }
}

/// Returns the reason why `remedy` acts on `cluster`, or `None` if it does not. Checks the remedy's scope
/// too.
pub fn cause(remedy: &Remedy, cluster: &Cluster) -> Option<Cause> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if remedy.metadata.deletion_timestamp.is_some() || !Scope::of(remedy).covers(name) {
        return None;
    }
    let matches = remedy.spec.decision_matches.as_deref().unwrap_or_default();
    if matches.is_empty() {
        return Some(Cause::Unconditional);
    }
    matches
        .iter()
        .filter_map(|decision| decision.cluster_condition_match.as_ref())
        .find_map(|requirement| met(requirement, cluster))
}

/// Returns the cause if the requirement is met. A condition that the cluster does not have never
/// matches, `NotEqual` included.
fn met(requirement: &ClusterConditionRequirement, cluster: &Cluster) -> Option<Cause> {
    let condition = cluster.condition(&requirement.condition_type)?;
    let equal = condition.status == requirement.condition_status;
    let met = match requirement.operator {
        Operator::Equal => equal,
        Operator::NotEqual => !equal,
    };
    met.then(|| Cause::Condition {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
    })
}

fn actions(remedy: &Remedy) -> &[String] {
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

impl fmt::Display for ActionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set {
                action,
                remedy,
                cause,
            } => {
                write!(f, "{action} set by Remedy {remedy}: {cause}")
            }
            Self::Cleared { action } => {
                write!(f, "{action} cleared: no Remedy asks for it any more")
            }
        }
    }
}

#[cfg(test)]
mod tests;
