//! The remedy actions of a cluster, from its conditions and the users' remedies.

mod bound;
mod inert;
mod scope;
mod silence;

use std::collections::BTreeSet;
use std::fmt;

use karmada_api::{Cluster, ClusterConditionRequirement, Operator, Remedy, TRAFFIC_CONTROL};

pub use bound::{BlockBound, Claim, MaxBlocked, OverBound};
pub use inert::{Inert, inert};
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
/// An action that cannot be read is written over, but not before everything that decides about it is known.
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
    let mut acting: Vec<(&Remedy, Cause)> = Vec::new();
    // Actions that a remedy may require, by a condition that cannot be read.
    let mut possible: BTreeSet<&String> = BTreeSet::new();
    for remedy in remedies {
        if let Some(cause) = cause(remedy, cluster) {
            acting.push((remedy, cause));
        } else if depends_on_unclear(remedy, cluster) {
            possible.extend(actions(remedy));
        }
    }
    if cluster.has_unclear_actions() && !(complete && possible.is_empty()) {
        return RemedyPlan::Unchanged;
    }
    // By name, so that the remedy named in a change does not depend on the order of the cache.
    acting.sort_by(|(a, _), (b, _)| a.metadata.name.cmp(&b.metadata.name));

    let mut wanted: BTreeSet<&String> = acting
        .iter()
        .flat_map(|(remedy, _)| actions(remedy))
        .collect();
    if !may_block {
        wanted.retain(|action| *action != TRAFFIC_CONTROL);
    }
    let is_kept = |action: &&String| !complete || possible.contains(*action);
    wanted.extend(current.iter().filter(is_kept));
    // `remedyActions: []` is not up to date: the field must be absent rather than empty.
    let absent = cluster
        .status
        .as_ref()
        .is_none_or(|status| status.remedy_actions.is_none());
    let settled = if wanted.is_empty() {
        absent
    } else {
        wanted.iter().copied().eq(current) && !cluster.has_unclear_actions()
    };
    if settled {
        return RemedyPlan::Unchanged;
    }
    RemedyPlan::Write {
        changes: changes(current, &wanted, &acting),
        actions: wanted.into_iter().cloned().collect(),
    }
}

/// Returns the changes from the current actions to those wanted, first those set. `acting` has the
/// remedies that act on the cluster, by name.
fn changes(
    current: &[String],
    wanted: &BTreeSet<&String>,
    acting: &[(&Remedy, Cause)],
) -> Vec<ActionChange> {
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
    // Unique: another writer may have listed an action twice.
    let cleared: BTreeSet<&String> = current
        .iter()
        .filter(|action| !wanted.contains(action))
        .collect();
    let cleared = cleared.into_iter().map(|action| ActionChange::Cleared {
        action: action.clone(),
    });
    set.chain(cleared).collect()
}

/// Returns the reason why `remedy` acts on `cluster`, or `None` if it does not. Checks the remedy's scope
/// too.
pub fn cause(remedy: &Remedy, cluster: &Cluster) -> Option<Cause> {
    if !covers(remedy, cluster) {
        return None;
    }
    match &remedy.spec.decision_matches {
        // Nobody asked for a condition. An empty list is one whose last match was removed.
        None => Some(Cause::Unconditional),
        Some(_) => requirements(remedy).find_map(|requirement| met(requirement, cluster)),
    }
}

/// Returns `true` if the remedy names a condition of the cluster that cannot be read.
fn depends_on_unclear(remedy: &Remedy, cluster: &Cluster) -> bool {
    let unclear = |wanted: &ClusterConditionRequirement| cluster.is_unclear(&wanted.condition_type);
    covers(remedy, cluster) && requirements(remedy).any(unclear)
}

fn covers(remedy: &Remedy, cluster: &Cluster) -> bool {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    remedy.metadata.deletion_timestamp.is_none() && Scope::of(remedy).covers(name)
}

fn requirements(remedy: &Remedy) -> impl Iterator<Item = &ClusterConditionRequirement> {
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
