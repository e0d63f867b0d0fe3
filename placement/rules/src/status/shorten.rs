//! Keeps the status of a placement small enough to be stored.

use fleet_api::placement::{ClusterPlacementStatus, Difference, PlacementStatus};
use objects::condition::TRUE;

use crate::drift::without_values;

/// The size up to which every condition of every cluster is told, in bytes of JSON: etcd takes 1.5 MiB.
const FULL_BYTES: usize = 256 * 1024;
/// The size up to which every object is named that is not as it shall be.
const MOST_BYTES: usize = 1024 * 1024;

/// Leaves clusters on which all is well only their last condition if the whole is too large; if that is not enough, the
/// others the first object of each kind of trouble, and if even that is too much, the condition that is not True.
pub(super) fn shorten(status: &mut PlacementStatus) {
    if bytes(status) <= FULL_BYTES {
        return;
    }
    for cluster in &mut status.placement_statuses {
        let is_healthy = cluster
            .conditions
            .iter()
            .all(|condition| condition.status == TRUE);
        if is_healthy {
            cluster
                .conditions
                .drain(..cluster.conditions.len().saturating_sub(1));
        }
    }
    if bytes(status) > MOST_BYTES {
        status.placement_statuses.iter_mut().for_each(name_first);
    }
    if bytes(status) > MOST_BYTES {
        status.placement_statuses.iter_mut().for_each(name_none);
    }
}

fn name_none(cluster: &mut ClusterPlacementStatus) {
    cluster.failed_placements.clear();
    cluster.drifted_placements.clear();
    cluster.diffed_placements.clear();
    let mut conditions = cluster.conditions.iter();
    if let Some(place) = conditions.position(|condition| condition.status != TRUE) {
        cluster.conditions.swap(0, place);
        cluster.conditions.truncate(1);
    }
}

fn name_first(cluster: &mut ClusterPlacementStatus) {
    cluster.failed_placements.truncate(1);
    cluster.drifted_placements.truncate(1);
    cluster.diffed_placements.truncate(1);
    for one in &mut cluster.drifted_placements {
        one.observed_drifts = first(&one.observed_drifts);
    }
    for one in &mut cluster.diffed_placements {
        one.observed_diffs = first(&one.observed_diffs);
    }
}

fn first(differences: &[Difference]) -> Vec<Difference> {
    differences.iter().take(1).map(without_values).collect()
}

fn bytes(status: &PlacementStatus) -> usize {
    serde_json::to_vec(status).map_or(0, |json| json.len())
}
