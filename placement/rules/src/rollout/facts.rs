//! The facts that decide about a step of a rollout.

use std::collections::BTreeMap;

use fleet_api::{Binding, Placement};
use jiff::{SignedDuration, Timestamp};

use crate::eligible::Reach;
use crate::overrides::Overrides;

/// Everything that decides about a step of a rollout.
#[derive(Clone, Copy, Debug)]
pub struct RolloutFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The name of its latest snapshot.
    pub snapshot: &'a str,
    /// Its overrides.
    pub overrides: &'a Overrides<'a>,
    /// Every binding of it.
    pub bindings: &'a [&'a Binding],
    /// The clusters of the fleet; without any, all are taken for reachable.
    pub clusters: &'a BTreeMap<&'a str, Reach>,
    /// The time after which a version that is not available has failed.
    pub progress_deadline: SignedDuration,
    /// The time.
    pub now: Timestamp,
}
