//! The status of a remedy.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::remedy::{ACCEPTED, ACTIVE};
use karmada_api::{Remedy, RemedyStatus};
use objects::condition::{find, transition, upsert};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

use super::decision::Decision;
use super::mode::{Expiry, Mode};
use super::problem::{INVALID_WHEN, Names, Problem};
use super::reach::{Listed, Reach};

/// The reason of the condition [`ACTIVE`] of a remedy that has expired.
const EXPIRED: &str = "Expired";
/// The reason of the condition [`ACTIVE`] of a remedy that only observes.
const OBSERVES: &str = "ObserveOnly";
/// The message of the condition [`ACTIVE`] of a remedy of which it cannot be read whether it is to act.
const HOLDS: &str = "it sets no action and clears none";
/// The number of problems that a message shows.
const SHOWN: usize = 8;

/// The state of a remedy, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It has expired.
    Expired,
    /// It is not carried out as it is written.
    NotAccepted,
    /// It only observes.
    ObserveOnly,
    /// It acts on a cluster.
    Active,
    /// It acts on no cluster now.
    Idle,
}

impl State {
    /// The states, in the order in which the first that holds counts.
    pub const ALL: [Self; 5] = [
        Self::Expired,
        Self::NotAccepted,
        Self::ObserveOnly,
        Self::Active,
        Self::Idle,
    ];

    /// Returns the state of `remedy` at `now`.
    pub fn of(remedy: &Remedy, problems: &[Problem], reach: &Reach, now: Timestamp) -> Self {
        match Mode::of(remedy, now) {
            Mode::Expired => Self::Expired,
            _ if problems.iter().any(Problem::is_mistake) => Self::NotAccepted,
            Mode::Observe => Self::ObserveOnly,
            Mode::Enforce | Mode::Hold if reach.acting.count > 0 => Self::Active,
            Mode::Enforce | Mode::Hold => Self::Idle,
        }
    }

    /// Returns the state that the status of `remedy` tells, and `None` while there is none about its spec.
    pub fn told_by(remedy: &Remedy) -> Option<Self> {
        let status = remedy.status.as_ref()?;
        if status.observed_generation != remedy.metadata.generation {
            return None;
        }
        let conditions = status.conditions.as_ref()?;
        let (accepted, active) = (find(conditions, ACCEPTED)?, find(conditions, ACTIVE)?);
        Some(if active.reason == EXPIRED {
            Self::Expired
        } else if accepted.status != TRUE {
            Self::NotAccepted
        } else if active.reason == OBSERVES {
            Self::ObserveOnly
        } else if active.status == TRUE {
            Self::Active
        } else {
            Self::Idle
        })
    }
}

/// Returns the status of `remedy` at `now`. The conditions of other clients stay as they are.
pub fn status(
    remedy: &Remedy,
    problems: &[Problem],
    reach: &Reach,
    now: Timestamp,
) -> RemedyStatus {
    let current = remedy.status.as_ref();
    let current = current.and_then(|status| status.conditions.clone());
    let mut conditions = current.unwrap_or_default();
    let is_accepted = !problems.iter().any(Problem::is_mistake);
    let reason = problems.first().map_or(ACCEPTED, Problem::reason);
    for (kind, holds, reason, message) in [
        (ACCEPTED, is_accepted, reason, described(problems)),
        active(remedy, reach, now),
    ] {
        let status = if holds { TRUE } else { FALSE };
        let new = Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: transition(find(&conditions, kind), status, now),
            observed_generation: remedy.metadata.generation,
        };
        upsert(&mut conditions, new);
    }
    RemedyStatus {
        observed_generation: remedy.metadata.generation,
        conditions: Some(conditions),
        active_clusters: Some(count(&reach.acting)),
        active_cluster_names: names(&reach.acting),
        refused_clusters: Some(count(&reach.refused)),
        refused_cluster_names: names(&reach.refused),
    }
}

fn count(listed: &Listed) -> i64 {
    i64::try_from(listed.count).unwrap_or(i64::MAX)
}

fn names(listed: &Listed) -> Option<Vec<String>> {
    Some(listed.names.clone()).filter(|names| !names.is_empty())
}

/// Returns the write that gives `remedy` this status, and `None` if it has it. The write fails if the remedy has changed
/// meanwhile.
pub fn status_write(remedy: &Remedy, status: &RemedyStatus) -> Option<Write> {
    if remedy.status.as_ref() == Some(status) {
        return None;
    }
    let fields = json!({
        "observedGeneration": status.observed_generation,
        "conditions": status.conditions,
        "activeClusters": status.active_clusters,
        // A merge patch removes fields that are null.
        "activeClusterNames": status.active_cluster_names,
        "refusedClusters": status.refused_clusters,
        "refusedClusterNames": status.refused_cluster_names,
    });
    let (object, body) = (ObjectRef::of(remedy, &()), json!({ "status": fields }));
    let write = Write::merge("remedy_status", object, body);
    Some(write.of_status().guarded(Guard::Version))
}

/// Returns `true` if the status of `remedy` says that it has expired.
pub fn has_expired(remedy: &Remedy) -> bool {
    let status = remedy.status.as_ref();
    let conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    find(conditions, ACTIVE).is_some_and(|active| active.reason == EXPIRED)
}

/// Returns the condition that says whether the remedy acts: type, status, reason and message.
fn active(
    remedy: &Remedy,
    reach: &Reach,
    now: Timestamp,
) -> (&'static str, bool, &'static str, String) {
    let (holds, reason, message) = match Mode::of(remedy, now) {
        Mode::Expired => {
            let message = match Expiry::of(remedy) {
                Expiry::At(end) => format!("it expired at {end}"),
                Expiry::Never | Expiry::Unreadable => String::new(),
            };
            (false, EXPIRED, message)
        }
        Mode::Observe => (false, OBSERVES, named("would act on", &reach.observing)),
        Mode::Hold => (false, "InvalidObserveOnly", HOLDS.to_owned()),
        Mode::Enforce if matches!(Decision::of(remedy), Decision::Unreadable(_)) => {
            (false, INVALID_WHEN, HOLDS.to_owned())
        }
        Mode::Enforce => {
            let mut message = named("acts on", &reach.acting);
            let refused = reach.refused.count;
            if refused > 0 {
                message.push_str("; ");
                message.push_str(&named(
                    "--max-blocked-clusters keeps unblocked:",
                    &reach.refused,
                ));
            }
            match (reach.acting.count, refused) {
                (0, 0) => (false, "NoClusterMatches", message),
                (0, _) => (false, "MaxBlockedClustersReached", message),
                _ => (true, "ActionsRequired", message),
            }
        }
    };
    (ACTIVE, holds, reason, message)
}

fn named(what: &str, clusters: &Listed) -> String {
    if clusters.count == 0 {
        return format!("{what} no cluster");
    }
    format!("{what} {}", Names(clusters.names.iter(), clusters.count))
}

fn described(problems: &[Problem]) -> String {
    let shown = problems.iter().take(SHOWN).map(ToString::to_string);
    let mut shown: Vec<String> = shown.collect();
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN) {
        shown.push(format!("and {more} more"));
    }
    shown.join("; ")
}
