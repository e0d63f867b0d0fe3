//! The room of a cluster by the models of its nodes.

use std::collections::BTreeMap;

use karmada_api::ClusterView;
use karmada_api::cluster_view::ResourceModel;
use objects::amounts::Amounts;

/// The pods for which a node has room, as Karmada assumes: models do not tell.
const PODS: (&str, &str) = ("pods", "110");

/// Returns the pods with this request for which the nodes of the cluster have room, each having the least amounts of
/// its model, as Karmada's general estimator counts them. Returns `None` if the cluster has no models, or its nodes are
/// not counted by them.
pub(super) fn available(cluster: &ClusterView, request: &Amounts) -> Option<i128> {
    let models = &cluster.spec.resource_models;
    let counts = &cluster
        .status
        .resource_summary
        .as_ref()?
        .allocatable_modelings;
    if models.is_empty() || counts.is_empty() || counts.iter().any(|nodes| nodes.count < 0) {
        return None;
    }
    // Of two models of one grade the last counts.
    let nodes: BTreeMap<i64, Amounts> = models
        .iter()
        .map(|model| (model.grade, node(model)))
        .collect();
    let rooms = counts.iter().filter_map(|counted| {
        let node = nodes.get(&counted.grade)?;
        let each = node.times(request).unwrap_or_default();
        Some(each.saturating_mul(counted.count.into()))
    });
    Some(rooms.fold(0, i128::saturating_add))
}

/// Returns what a node of the model has at least.
fn node(model: &ResourceModel) -> Amounts {
    let ranges = model.ranges.iter();
    let least = ranges.map(|range| (&*range.name, &*range.min.0));
    least.chain([PODS]).collect()
}
