//! The facts that decide about the status of a placement.

use fleet_api::binding::BindingState;
use fleet_api::{Binding, Placement, PolicySnapshot};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use serde_json::Value;

use crate::refuse::Refusal;
use crate::select::Selection;

/// Everything that a placement's status tells of.
#[derive(Clone, Copy, Debug)]
pub struct StatusFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The objects that it selects, or why nothing is done about it.
    pub selection: Result<&'a Selection, &'a Refusal>,
    /// The latest snapshot of its policy.
    pub policy: Option<&'a PolicySnapshot>,
    /// The latest snapshot of its selection: the master.
    pub snapshot: Option<&'a ObjectMeta>,
    /// The objects in the snapshot that runs have given to all clusters: [`given_snapshot`](super::given_snapshot).
    pub given: &'a [Value],
    /// Every binding of it.
    pub bindings: &'a [&'a Binding],
    /// The objects that are held in a cluster that is to lose them, and their holders.
    pub held: &'a [(&'a str, String)],
    /// The time after which a cluster that is not available has made the rollout stuck.
    pub progress_deadline: SignedDuration,
    /// The time.
    pub now: Timestamp,
}

/// Returns `true` if its cluster has the placement, or is to have it.
pub(super) fn is_current(binding: &Binding) -> bool {
    !binding.metadata.is_deleting() && binding.spec.state != BindingState::Unscheduled
}
