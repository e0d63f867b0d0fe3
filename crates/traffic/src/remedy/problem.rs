//! The parts of a remedy that cannot be carried out as written, or may be a mistake.

use std::collections::BTreeSet;
use std::fmt;

use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY};
use karmada_api::{DecisionMatch, Remedy, TRAFFIC_CONTROL};

use super::decision::{Decision, STATUSES, WhenError};
use super::effect::actions;
use super::mode::{Expiry, annotation};

/// The number of names that a message shows.
const SHOWN: usize = 5;
/// The reason of a remedy whose annotation cannot be read that says when it acts.
pub(super) const INVALID_WHEN: &str = "InvalidWhen";

/// A part of a remedy that cannot be carried out as written, or may be a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Its affinity names no cluster.
    SelectsNoCluster,
    /// Its list of matches is empty.
    NeverMatches,
    /// Its list of actions is empty or absent.
    NoActions,
    /// A match has no requirement, or one that lacks a field.
    IncompleteMatch {
        /// The place of the match in the list.
        index: usize,
    },
    /// Its expiry cannot be read.
    InvalidExpiry {
        /// The value of the annotation.
        value: String,
    },
    /// It cannot be read whether it only observes.
    InvalidObserveOnly {
        /// The value of the annotation.
        value: String,
    },
    /// It cannot be read which conditions must all match.
    InvalidWhen(WhenError),
    /// It requires a status that no condition has.
    UnknownStatus {
        /// The required status.
        status: String,
    },
    /// It names clusters that do not exist.
    ClusterNotFound {
        /// Their names.
        clusters: BTreeSet<String>,
    },
    /// It requires conditions that no cluster has.
    ConditionNotFound {
        /// Their types.
        types: BTreeSet<String>,
    },
    /// It has actions that none of our programs carries out.
    UnknownAction {
        /// The actions.
        actions: BTreeSet<String>,
    },
}

/// The parts of a fleet to which a remedy may refer.
#[derive(Clone, Copy)]
pub struct FleetLookup<'a> {
    /// Returns `true` if a cluster of this name exists.
    pub has_cluster: &'a dyn Fn(&str) -> bool,
    /// Returns `true` if a cluster has a condition of this type, or there is no cluster.
    pub has_condition: &'a dyn Fn(&str) -> bool,
}

/// Returns the problems of `remedy` in `fleet`, those first that keep it from being carried out as
/// written. Our definition of the kind, or our admission policy, does not accept some of them, but Karmada's does.
pub fn problems(remedy: &Remedy, fleet: FleetLookup<'_>) -> Vec<Problem> {
    let decision = Decision::of(remedy);
    let mut problems = mistakes(remedy, &decision);
    problems.extend(doubts(remedy, &decision, fleet));
    problems
}

/// Returns the types of the conditions that `remedy` requires.
pub fn required_conditions(remedy: &Remedy) -> BTreeSet<String> {
    types(&Decision::of(remedy))
}

fn types(decision: &Decision<'_>) -> BTreeSet<String> {
    let types = decision
        .requirements()
        .map(|required| &required.condition_type);
    types.filter(|kind| !kind.is_empty()).cloned().collect()
}

fn mistakes(remedy: &Remedy, decision: &Decision<'_>) -> Vec<Problem> {
    let spec = &remedy.spec;
    let names = spec.cluster_affinity.as_ref().map(|affinity| {
        let names = affinity.cluster_names.as_deref();
        names.unwrap_or_default()
    });
    let no_cluster = names.is_some_and(<[_]>::is_empty);
    let no_match = matches!(decision, Decision::Any([]));
    let mut found: Vec<Problem> = [
        no_cluster.then_some(Problem::SelectsNoCluster),
        no_match.then_some(Problem::NeverMatches),
        actions(remedy).is_empty().then_some(Problem::NoActions),
    ]
    .into_iter()
    .flatten()
    .collect();
    let matches = spec.decision_matches.iter().flatten().enumerate();
    let incomplete = matches.filter(|(_, decision)| !is_complete(decision));
    found.extend(incomplete.map(|(index, _)| Problem::IncompleteMatch { index }));
    if Expiry::of(remedy) == Expiry::Unreadable {
        let value = annotation(remedy, EXPIRES_AT)
            .unwrap_or_default()
            .to_owned();
        found.push(Problem::InvalidExpiry { value });
    }
    if let Some(value) = annotation(remedy, OBSERVE_ONLY)
        && !["true", "false"].contains(&value)
    {
        let value = value.to_owned();
        found.push(Problem::InvalidObserveOnly { value });
    }
    if let Decision::Unreadable(error) = decision {
        found.push(Problem::InvalidWhen(error.clone()));
    }
    found
}

fn is_complete(decision: &DecisionMatch) -> bool {
    let required = decision.cluster_condition_match.as_ref();
    required.is_some_and(|required| {
        !required.condition_type.is_empty()
            && required.operator.is_some()
            && !required.condition_status.is_empty()
    })
}

fn doubts(remedy: &Remedy, decision: &Decision<'_>, fleet: FleetLookup<'_>) -> Vec<Problem> {
    let required = decision.requirements();
    let statuses = required.filter(|required| !required.condition_status.is_empty());
    let statuses = statuses.map(|required| required.condition_status.clone());
    let statuses: BTreeSet<String> = statuses.collect();
    let unknown = statuses
        .into_iter()
        .filter(|status| !STATUSES.contains(&status.as_str()));
    let mut found: Vec<Problem> = unknown
        .map(|status| Problem::UnknownStatus { status })
        .collect();
    let affinity = remedy.spec.cluster_affinity.iter();
    let names = affinity.flat_map(|affinity| affinity.cluster_names.iter().flatten());
    let missing = names.filter(|name| !(fleet.has_cluster)(name));
    let clusters: BTreeSet<String> = missing.cloned().collect();
    let mut types = types(decision);
    types.retain(|kind| !(fleet.has_condition)(kind));
    let unknown = actions(remedy)
        .iter()
        .filter(|action| *action != TRAFFIC_CONTROL);
    let actions: BTreeSet<String> = unknown.cloned().collect();
    let lists = [
        (!clusters.is_empty()).then_some(Problem::ClusterNotFound { clusters }),
        (!types.is_empty()).then_some(Problem::ConditionNotFound { types }),
        (!actions.is_empty()).then_some(Problem::UnknownAction { actions }),
    ];
    found.extend(lists.into_iter().flatten());
    found
}

impl Problem {
    /// Returns its reason, for conditions and Events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::SelectsNoCluster => "SelectsNoCluster",
            Self::NeverMatches => "NeverMatches",
            Self::NoActions => "NoActions",
            Self::IncompleteMatch { .. } => "IncompleteMatch",
            Self::InvalidExpiry { .. } => "InvalidExpiry",
            Self::InvalidObserveOnly { .. } => "InvalidObserveOnly",
            Self::InvalidWhen(_) => INVALID_WHEN,
            Self::UnknownStatus { .. } => "UnknownStatus",
            Self::ClusterNotFound { .. } => "ClusterNotFound",
            Self::ConditionNotFound { .. } => "ConditionNotFound",
            Self::UnknownAction { .. } => "UnknownAction",
        }
    }

    /// Returns `true` if a part of the remedy is not carried out as written. Any other problem may end by
    /// itself, such as by a cluster that joins.
    pub fn is_mistake(&self) -> bool {
        !matches!(
            self,
            Self::UnknownStatus { .. }
                | Self::ClusterNotFound { .. }
                | Self::ConditionNotFound { .. }
                | Self::UnknownAction { .. }
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SelectsNoCluster => f.write_str("clusterAffinity has no clusterNames, so this Remedy selects no cluster: leave clusterAffinity out to select every cluster"),
            Self::NeverMatches => f.write_str("decisionMatches is empty, so this Remedy never acts: leave decisionMatches out to act at once"),
            Self::NoActions => f.write_str("actions is empty, so this Remedy does nothing"),
            Self::IncompleteMatch { index } => write!(
                f,
                "decisionMatches[{index}] matches nothing: clusterConditionMatch needs conditionType, operator and conditionStatus"
            ),
            Self::InvalidExpiry { value } => write!(
                f,
                "annotation {EXPIRES_AT} is {value:?} and is ignored, so this Remedy does not expire: write a time such as 2026-11-20T18:00:00Z"
            ),
            Self::InvalidObserveOnly { value } => write!(
                f,
                "annotation {OBSERVE_ONLY} is {value:?}, so this Remedy sets no action and clears none: write true or false"
            ),
            Self::InvalidWhen(error) => error.fmt(f),
            Self::UnknownStatus { status } => write!(
                f,
                "conditionStatus is {status:?}, but a condition is True, False or Unknown"
            ),
            Self::ClusterNotFound { clusters } => {
                write!(f, "there is no cluster {}", Names(clusters.iter(), clusters.len()))
            }
            Self::ConditionNotFound { types } => {
                write!(f, "no cluster has the condition {}", Names(types.iter(), types.len()))
            }
            Self::UnknownAction { actions } => write!(
                f,
                "no program of karmada-rs carries out {}",
                Names(actions.iter(), actions.len())
            ),
        }
    }
}

/// A list of names as a message shows it, and how many there are.
pub(super) struct Names<I>(pub(super) I, pub(super) usize);

impl<'a, I: Iterator<Item = &'a String> + Clone> fmt::Display for Names<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names, count) = self;
        let shown: Vec<&str> = names.clone().take(SHOWN).map(String::as_str).collect();
        f.write_str(&shown.join(", "))?;
        match count.saturating_sub(shown.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
