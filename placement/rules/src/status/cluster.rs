//! Where a placement stands in one cluster.

use fleet_api::binding::{BindingState, ClusterDecision};
use fleet_api::conditions::{
    APPLY_IN_PROGRESS, DIFF_REPORT_IN_PROGRESS, ROLLOUT_STARTED, SCHEDULED,
};
use fleet_api::placement::ClusterPlacementStatus;
use fleet_api::{Binding, Placement};
use objects::condition::{Condition, FALSE, TRUE};

use super::step::{REPORTING, Step, WRITING};
use crate::condition::{condition, current_condition};
use crate::strategy::{Strategy, allows_no_change};

/// Where a placement stands in one cluster.
#[derive(Debug)]
pub(super) struct ClusterProgress {
    scheduled: Condition,
    /// The steps that it takes.
    pub(super) steps: &'static [Step],
    /// The condition of each step, up to the first that is not done.
    pub(super) reached: Vec<Condition>,
    /// Its entry without the conditions.
    details: ClusterPlacementStatus,
}

impl ClusterProgress {
    /// Returns the name of the cluster.
    pub(super) fn cluster(&self) -> &str {
        &self.details.cluster_name
    }

    /// Returns its entry. `index` is that of the snapshot that the entry is about.
    pub(super) fn into_status(self, index: &str) -> ClusterPlacementStatus {
        let mut conditions = vec![self.scheduled];
        conditions.extend(self.reached);
        ClusterPlacementStatus {
            conditions,
            observed_resource_index: index.to_owned(),
            ..self.details
        }
    }
}

/// The message about a cluster that is kept from the objects that it is to have.
const BLOCKED: &str = "The rollout is being blocked by the rollout strategy";

/// The end of a message where no waiting helps.
pub(super) const FOR_GOOD: &str = ": maxUnavailable is 0, so that no cluster that has the placement may ever change: raise \
     spec.strategy.rollingUpdate.maxUnavailable";

/// Returns where a placement stands in a cluster that was picked. `snapshot` is the one that it is to have.
pub(super) fn progress(
    placement: &Placement,
    decision: &ClusterDecision,
    binding: Option<&Binding>,
    snapshot: Option<&str>,
) -> ClusterProgress {
    let strategy = binding.and_then(|binding| binding.spec.apply_strategy.as_ref());
    let steps: &[Step] = if Strategy::of(strategy).only_reports() {
        &REPORTING
    } else {
        &WRITING
    };
    let mut reached = Vec::new();
    for step in steps {
        let mut said = said(step, binding, snapshot);
        if said.message == BLOCKED && allows_no_change(placement) && binding.is_some_and(is_bound) {
            said.message.push_str(FOR_GOOD);
        }
        let is_done = said.status == TRUE;
        reached.push(said);
        if !is_done {
            break;
        }
    }
    let is_given = reached
        .first()
        .is_some_and(|started| started.status == TRUE);
    let given = binding.filter(|_| is_given);
    let status = given.and_then(|binding| binding.status.clone());
    let status = status.unwrap_or_default();
    let spec = given
        .map(|binding| binding.spec.clone())
        .unwrap_or_default();
    ClusterProgress {
        scheduled: condition((SCHEDULED, TRUE), "Scheduled", &decision.reason),
        steps,
        reached,
        details: ClusterPlacementStatus {
            cluster_name: decision.cluster_name.clone(),
            applicable_resource_overrides: spec.resource_override_snapshots,
            applicable_cluster_resource_overrides: spec.cluster_resource_override_snapshots,
            failed_placements: status.failed_placements,
            drifted_placements: status.drifted_placements,
            diffed_placements: status.diffed_placements,
            ..ClusterPlacementStatus::default()
        },
    }
}

fn is_bound(binding: &Binding) -> bool {
    binding.spec.state == BindingState::Bound
}

/// Returns the condition of a step in a cluster.
fn said(step: &Step, binding: Option<&Binding>, snapshot: Option<&str>) -> Condition {
    let Some(binding) = binding else {
        return pending(step);
    };
    let Some(reported) = current_condition(binding, step.kind) else {
        return pending(step);
    };
    let is_latest = snapshot == Some(&binding.spec.resource_snapshot_name);
    match (step.kind, &*reported.status) {
        // Started with another than the latest: about that, the rollout has not decided yet.
        (ROLLOUT_STARTED, TRUE) if !is_latest => pending(step),
        (ROLLOUT_STARTED, FALSE) => condition((step.kind, FALSE), step.not.reason, BLOCKED),
        (_, FALSE) if [APPLY_IN_PROGRESS, DIFF_REPORT_IN_PROGRESS].contains(&&*reported.reason) => {
            pending(step)
        }
        (_, status) => condition((step.kind, status), &reported.reason, &reported.message),
    }
}

/// Returns the condition of a step in a cluster while nobody knows.
fn pending(step: &Step) -> Condition {
    condition((step.kind, "Unknown"), step.unknown.reason, step.pending)
}
