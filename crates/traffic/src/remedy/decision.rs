//! The rule by which a remedy acts on a cluster: nothing, any one of its matches, or all conditions of its
//! annotation [`WHEN`].

use std::fmt;

use karmada_api::remedy::WHEN;
use karmada_api::{Cluster, ClusterConditionRequirement, DecisionMatch, Operator, Remedy};
use objects::qualified_name::is_qualified;

use super::mode::annotation;

/// The statuses that a condition may have.
pub(super) const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The rule by which a remedy acts on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// Nobody asked for a condition: it acts at once.
    AtOnce,
    /// Any one of these matches suffices. An empty list is one whose last match was removed: it never acts.
    Any(&'a [DecisionMatch]),
    /// The cluster must meet all of these.
    All(Vec<ClusterConditionRequirement>),
    /// The annotation cannot be read: the remedy neither sets an action nor clears one.
    Unreadable(WhenError),
}

/// The reason why the annotation [`WHEN`] cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenError {
    /// It is no list of conditions.
    Malformed {
        /// Its value.
        value: String,
    },
    /// The matches beside it are absent, so that another controller acts at once, or not empty, so that it acts on any
    /// one of them.
    BesideMatches,
}

/// The answer to whether a remedy acts on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It does.
    Yes(Cause),
    /// It does not.
    No,
    /// The fields that decide cannot be read.
    Unclear,
}

/// The reason why a remedy acts on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The remedy has no matches: someone decided to act at once.
    Unconditional,
    /// These conditions of the cluster match.
    Conditions(Vec<MetCondition>),
}

/// A condition of a cluster that meets a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetCondition {
    /// Its type.
    pub kind: String,
    /// Its status.
    pub status: String,
}

impl<'a> Decision<'a> {
    /// Returns the rule of `remedy`.
    pub fn of(remedy: &'a Remedy) -> Self {
        let matches = remedy.spec.decision_matches.as_deref();
        let Some(when) = annotation(remedy, WHEN) else {
            return matches.map_or(Self::AtOnce, Self::Any);
        };
        if matches.is_none_or(|matches| !matches.is_empty()) {
            return Self::Unreadable(WhenError::BesideMatches);
        }
        match when.split(',').map(requirement).collect() {
            Some(all) => Self::All(all),
            None => Self::Unreadable(WhenError::Malformed {
                value: when.to_owned(),
            }),
        }
    }

    /// Iterates over the requirements on a cluster's conditions.
    pub fn requirements(&self) -> impl Iterator<Item = &ClusterConditionRequirement> {
        let (any, all) = match self {
            Self::Any(matches) => (*matches, &[][..]),
            Self::All(requirements) => (&[][..], requirements.as_slice()),
            Self::AtOnce | Self::Unreadable(_) => (&[][..], &[][..]),
        };
        let any = any
            .iter()
            .filter_map(|decision| decision.cluster_condition_match.as_ref());
        any.chain(all)
    }

    /// Returns whether the remedy acts on `cluster`, were it in force and covered the cluster.
    pub(super) fn on(&self, cluster: &Cluster) -> Answer {
        let unclear =
            |wanted: &ClusterConditionRequirement| cluster.is_unclear(&wanted.condition_type);
        match self {
            Self::AtOnce => Answer::Yes(Cause::Unconditional),
            Self::Any(_) => match self.requirements().find_map(|wanted| met(wanted, cluster)) {
                Some(condition) => Answer::Yes(Cause::Conditions(vec![condition])),
                None if self.requirements().any(unclear) => Answer::Unclear,
                None => Answer::No,
            },
            Self::All(all) => {
                let conditions: Vec<_> = all.iter().map(|wanted| met(wanted, cluster)).collect();
                let mut open = all.iter().zip(&conditions).filter(|(_, met)| met.is_none());
                // One that is not met decides, whatever cannot be read.
                if open.any(|(wanted, _)| !unclear(wanted)) {
                    return Answer::No;
                }
                let met: Option<Vec<_>> = conditions.into_iter().collect();
                met.map_or(Answer::Unclear, |met| Answer::Yes(Cause::Conditions(met)))
            }
            Self::Unreadable(_) => Answer::Unclear,
        }
    }
}

/// Reads `TYPE=STATUS` or `TYPE!=STATUS`.
fn requirement(text: &str) -> Option<ClusterConditionRequirement> {
    let (kind, status) = text.split_once('=')?;
    let (kind, operator) = match kind.strip_suffix('!') {
        Some(kind) => (kind, Operator::NotEqual),
        None => (kind, Operator::Equal),
    };
    let (kind, status) = (kind.trim(), status.trim());
    let is_valid = is_qualified(kind) && STATUSES.contains(&status);
    is_valid.then(|| ClusterConditionRequirement {
        condition_type: kind.to_owned(),
        operator: Some(operator),
        condition_status: status.to_owned(),
    })
}

/// Returns `true` if `cluster` meets the requirement.
pub fn is_met(requirement: &ClusterConditionRequirement, cluster: &Cluster) -> bool {
    met(requirement, cluster).is_some()
}

/// Returns the condition that meets the requirement. A condition that the cluster does not have, or whose
/// status is of another type than text, never matches, `NotEqual` included. A status that is null or left
/// out is an empty text, as in Karmada: it differs from any that a requirement names.
fn met(requirement: &ClusterConditionRequirement, cluster: &Cluster) -> Option<MetCondition> {
    let condition = cluster.condition(&requirement.condition_type)?;
    let equal = condition.status == requirement.condition_status;
    let met = match requirement.operator? {
        Operator::Equal => equal,
        Operator::NotEqual => !equal,
    };
    (met && !condition.unclear).then(|| MetCondition {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
    })
}

impl fmt::Display for WhenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { value } => write!(
                f,
                "annotation {WHEN} is {value:?}, so this Remedy sets no action and clears none: write conditions such as HealthReporterReady=False,Ready!=True"
            ),
            Self::BesideMatches => write!(
                f,
                "annotation {WHEN} stands beside decisionMatches that are not empty, so this Remedy sets no action and clears none: write decisionMatches: []"
            ),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconditional => f.write_str("it names no condition"),
            Self::Conditions(met) => {
                for (place, MetCondition { kind, status }) in met.iter().enumerate() {
                    let and = if place > 0 { " and " } else { "" };
                    write!(f, "{and}{kind} is {status}")?;
                }
                Ok(())
            }
        }
    }
}
