//! The decisions about single clusters, with their reasons as KubeFleet words them.

use fleet_api::binding::{ClusterDecision, ClusterScore};

use crate::filter::Unfit;

/// Returns the decision for a cluster that is picked.
pub(super) fn picked(cluster: &str, score: Option<ClusterScore>) -> ClusterDecision {
    let scores = score.map_or_else(String::new, |score| {
        format!(
            " (affinity score: {}, topology spread score: {})",
            score.affinity_score, score.priority_score
        )
    });
    ClusterDecision {
        cluster_name: cluster.to_owned(),
        selected: true,
        cluster_score: score,
        reason: format!(
            "Successfully scheduled resources for placement in \"{cluster}\"{scores}: \
             picked by scheduling policy"
        ),
    }
}

/// Returns the decision against a cluster.
pub(super) fn refused(cluster: &str, reason: &Unfit) -> ClusterDecision {
    ClusterDecision {
        cluster_name: cluster.to_owned(),
        selected: false,
        cluster_score: None,
        reason: format!("ClusterUnschedulable, {reason}"),
    }
}
