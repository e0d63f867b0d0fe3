//! The remedy actions of a cluster, from its conditions and the users' remedies.
//!
//! - `scope`: which clusters does a Remedy cover?
//! - `decision`: which conditions of a cluster make it act?
//! - `mode`: does it act now, only observe, or has it expired? `expiries` tells when that changes.
//! - `effect`: which actions does one Remedy require of one cluster, and because of which condition?
//! - `bound`: may one more cluster be blocked? It decides across the fleet.
//! - here, [`plan`]: the write of one cluster's actions, from all of these.
//! - `member`: where are the actions of a `MemberCluster`?
//! - `forecast`: where does the whole fleet go? `kubectl remedy plan` asks.
//! - `reach`, `problem`, `status`: on which clusters does a Remedy act, which parts of it may be mistakes, and how
//!   does its status say so?
//! - `silence`: which reporters renew their leases no more?

mod bound;
mod decision;
mod effect;
mod expiries;
mod forecast;
mod member;
mod mode;
mod problem;
mod reach;
mod scope;
mod silence;
mod status;

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{Cluster, Remedy, TRAFFIC_CONTROL};
use objects::write::{ObjectRef, Plan, Write};
use serde_json::json;

pub use self::bound::{BlockBound, Claim, MaxBlocked, OverBound};
pub use self::decision::{Cause, Decision, MetCondition, WhenError, is_met};
pub use self::effect::{Effect, cause};
pub use self::expiries::Expiries;
pub use self::forecast::{Forecast, forecast};
pub use self::member::{StoredCluster, cluster_of, member_change, member_write};
pub use self::mode::{Expiry, Mode};
pub use self::problem::{FleetLookup, Problem, problems, required_conditions};
pub use self::reach::{Listed, Reach, ReachIndex, Reached};
pub use self::scope::{RemedyIndex, Scope, covers};
pub use self::silence::{ReporterOf, Reporters, reporter_silent};
pub use self::status::{State, has_expired, status, status_write};

pub(crate) use self::effect::blocks;

use self::effect::actions;

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

impl ActionChange {
    /// Returns the action.
    pub fn action(&self) -> &str {
        match self {
            Self::Set { action, .. } | Self::Cleared { action } => action,
        }
    }
}

/// The actions that a remedy which only observes would require of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedActions {
    /// The remedy.
    pub remedy: String,
    /// Its actions.
    pub actions: Vec<String>,
    /// The reason why it would act.
    pub cause: Cause,
}

/// Returns the actions that those of `remedies` which only observe would require of `cluster` at `now`. Their scope
/// covers it.
pub fn observed<'a>(
    cluster: &Cluster,
    remedies: impl IntoIterator<Item = &'a Remedy>,
    now: Timestamp,
) -> Vec<ObservedActions> {
    if cluster.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let observed = remedies.into_iter().filter_map(|remedy| {
        let actions = actions(remedy);
        match Effect::of(remedy, cluster, now) {
            Some(Effect::WouldAct(cause)) if !actions.is_empty() => Some(ObservedActions {
                remedy: remedy.metadata.name.clone().unwrap_or_default(),
                actions: actions.to_vec(),
                cause,
            }),
            _ => None,
        }
    });
    observed.collect()
}

/// Keeps the fields of a cluster that decide about its remedy actions. The rest is gone before a rule could read it, and
/// wakes nobody when it changes. An unreadable field decides, too: an action may be kept because of it.
pub fn keep_facts(cluster: &mut Cluster) {
    let metadata = std::mem::take(&mut cluster.metadata);
    cluster.metadata = ObjectMeta {
        name: metadata.name,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    };
}

/// The limits of a plan for a cluster, whatever its remedies say.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// False while a remedy could not be read yet: then actions are added but not cleared, since the unread remedy may
    /// require them.
    pub complete: bool,
    /// False while [`BlockBound`] keeps the cluster unblocked.
    pub may_block: bool,
}

/// Plans the actions of `cluster` at `now`. `remedies` are those that cover it, in any order. An action that
/// cannot be read is written over, but not before everything that decides about it is known.
pub fn plan<'a>(
    cluster: &Cluster,
    remedies: impl IntoIterator<Item = &'a Remedy>,
    now: Timestamp,
    allowance: Allowance,
) -> Plan<ActionChange> {
    let Allowance {
        complete,
        may_block,
    } = allowance;
    // A cluster that is leaving keeps its actions: lifting a block would send it traffic again.
    if cluster.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let current = cluster.remedy_actions();
    let mut acting: Vec<(&Remedy, Cause)> = Vec::new();
    // Actions that a remedy may require, by a condition or an annotation that cannot be read.
    let mut possible: BTreeSet<&String> = BTreeSet::new();
    for remedy in remedies {
        match Effect::of(remedy, cluster, now) {
            Some(Effect::Acts(cause)) => acting.push((remedy, cause)),
            Some(Effect::Unclear) => possible.extend(actions(remedy)),
            Some(Effect::WouldAct(_)) | None => {}
        }
    }
    if cluster.has_unclear_actions() && !(complete && possible.is_empty()) {
        return Plan::default();
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
    let kept = current.iter();
    wanted.extend(kept.filter(|action| !complete || possible.contains(*action)));
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
        return Plan::default();
    }
    Plan {
        writes: vec![write(cluster, &wanted)],
        events: changes(current, &wanted, &acting),
        wake_at: None,
    }
}

/// Returns the write that replaces the actions of `cluster`.
///
/// No other writer has a right to this field, so a merge patch overwrites nobody's change. It has no guard: clusters
/// change every few seconds and would make it a conflict each time, while a decision on an older version is made again
/// when the watch shows this write.
fn write(cluster: &Cluster, actions: &BTreeSet<&String>) -> Write {
    // Absent rather than empty: a merge patch removes a field that is null (RFC 7396).
    let actions = (!actions.is_empty()).then_some(actions);
    let body = json!({ "status": { "remedyActions": actions } });
    let write = Write::merge("remedy_actions", ObjectRef::of(cluster, &()), body);
    write.of_status().owning("/status/remedyActions")
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

impl fmt::Display for ObservedActions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            remedy,
            actions,
            cause,
        } = self;
        let actions = actions.join(", ");
        write!(
            f,
            "{actions} would be set by Remedy {remedy}, which only observes: {cause}"
        )
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
