//! The facts that decide about a step of a run.

use fleet_api::{
    ApprovalRequest, Binding, MemberCluster, Placement, PolicySnapshot, StagedUpdateRun,
    StagedUpdateStrategy,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::condition::{Condition, find};

use crate::overrides::Overrides;

/// Everything that decides about a step of a run.
#[derive(Clone, Copy, Debug)]
pub struct UpdateFacts<'a> {
    /// The run.
    pub run: &'a StagedUpdateRun,
    /// Its placement.
    pub placement: Option<&'a Placement>,
    /// The strategy that it names; asked for once, when it begins.
    pub strategy: Option<&'a StagedUpdateStrategy>,
    /// The snapshots of the placement's policy.
    pub policies: &'a [&'a PolicySnapshot],
    /// The metadata of the snapshots of the selection of the placement.
    pub snapshots: &'a [&'a ObjectMeta],
    /// The overrides of the objects in the snapshot that the clusters get.
    pub overrides: &'a Overrides<'a>,
    /// The bindings of the placement.
    pub bindings: &'a [&'a Binding],
    /// The clusters of the fleet.
    pub clusters: &'a [&'a MemberCluster],
    /// The approval requests of the run.
    pub approvals: &'a [&'a ApprovalRequest],
    /// The time.
    pub now: Timestamp,
}

/// Returns `true` if there is a condition of this status.
pub(super) fn is(conditions: &[Condition], kind: &str, status: &str) -> bool {
    find(conditions, kind).is_some_and(|one| one.status == status)
}
