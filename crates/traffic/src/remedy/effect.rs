//! The effect of one remedy on one cluster.

use jiff::Timestamp;
use karmada_api::{Cluster, Remedy, TRAFFIC_CONTROL};

use super::decision::{Answer, Cause, Decision};
use super::mode::Mode;
use super::scope::covers;

/// The effect of a remedy on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The remedy requires its actions.
    Acts(Cause),
    /// It would require them if it did not only observe.
    WouldAct(Cause),
    /// It may require them: the fields that decide about that cannot be read.
    Unclear,
}

impl Effect {
    /// Returns the effect at `now` of `remedy`, which covers `cluster`; `None` if it has none.
    pub fn of(remedy: &Remedy, cluster: &Cluster, now: Timestamp) -> Option<Self> {
        if remedy.metadata.deletion_timestamp.is_some() {
            return None;
        }
        match (Mode::of(remedy, now), Decision::of(remedy).on(cluster)) {
            (Mode::Expired, _) | (_, Answer::No) | (Mode::Observe, Answer::Unclear) => None,
            (Mode::Enforce, Answer::Yes(cause)) => Some(Self::Acts(cause)),
            (Mode::Observe, Answer::Yes(cause)) => Some(Self::WouldAct(cause)),
            (Mode::Hold, Answer::Yes(_)) | (Mode::Enforce | Mode::Hold, Answer::Unclear) => {
                Some(Self::Unclear)
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

/// Returns `true` if traffic is blocked by one of these actions.
pub(crate) fn blocks(actions: &[String]) -> bool {
    actions.iter().any(|action| action == TRAFFIC_CONTROL)
}

/// Returns the actions of a remedy.
pub(super) fn actions(remedy: &Remedy) -> &[String] {
    remedy.spec.actions.as_deref().unwrap_or_default()
}
