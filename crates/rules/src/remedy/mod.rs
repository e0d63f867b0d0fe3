//! What must be done to a cluster: its conditions × the users' remedies → its remedy actions.

mod scope;

use std::collections::BTreeSet;
use std::fmt;

use karmada_api::{Cluster, ClusterConditionRequirement, Operator, Remedy};

pub use scope::{RemedyIndex, Scope};

/// What to write to a cluster's `status.remedyActions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemedyPlan {
    /// Nothing: it says already what it should.
    Unchanged,
    /// These actions, in place of what is there.
    Write {
        /// Sorted and unique; none: the field goes away.
        actions: Vec<String>,
        /// What changes, for people.
        changes: Vec<ActionChange>,
    },
}

/// An action that a write sets or clears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionChange {
    /// It was not asked for before.
    Set {
        /// The action.
        action: String,
        /// The first remedy, by name, that asks for it.
        remedy: String,
        /// Why that remedy does.
        cause: Cause,
    },
    /// No remedy asks for it any more.
    Cleared {
        /// The action.
        action: String,
    },
}

/// Why a remedy acts on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It names no condition: a person's decision.
    Unconditional,
    /// A condition of the cluster is as the remedy says.
    Condition {
        /// The condition's type.
        kind: String,
        /// Its status.
        status: String,
    },
}

/// Decides the actions of `cluster`. `remedies` are those whose scope covers it; the order does not
/// matter. While `complete` is false some remedy could never be read: actions are added then, but
/// none is cleared, since the unread one may ask for it.
pub fn plan<'a>(
    cluster: &Cluster,
    remedies: impl IntoIterator<Item = &'a Remedy>,
    complete: bool,
) -> RemedyPlan {
    if cluster.metadata.deletion_timestamp.is_some() {
        return RemedyPlan::Unchanged;
    }
    let current = cluster.remedy_actions();
    let mut acting: Vec<(&Remedy, Cause)> = remedies
        .into_iter()
        .filter_map(|remedy| Some((remedy, cause(remedy, cluster)?)))
        .collect();
    acting.sort_by(|(a, _), (b, _)| a.metadata.name.cmp(&b.metadata.name));

    let mut wanted: BTreeSet<&String> = acting
        .iter()
        .flat_map(|(remedy, _)| actions(remedy))
        .collect();
    if !complete {
        wanted.extend(current);
    }
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

/// Why `remedy` acts on `cluster`; none when it does not. The remedy's scope is looked at too.
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
