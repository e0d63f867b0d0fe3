//! The room of a cluster by the models of its nodes.

use std::collections::BTreeMap;

use karmada_api::ClusterView;
use karmada_api::cluster_view::ResourceModel;
use objects::amounts::Amounts;

use super::pods::Pods;

/// The pods for which a node has room, as Karmada assumes: models do not tell.
const PODS: (&str, &str) = ("pods", "110");

/// Returns the pods with this request for which the nodes of the cluster have room, each having the least amounts of
/// its model, as Karmada's general estimator counts them. Returns `None` if the cluster has no models, or its nodes are
/// not counted by them.
pub(super) fn available(
    cluster: &ClusterView,
    request: &Amounts,
    assumed: &[Pods],
) -> Option<i128> {
    let rooms = nodes(cluster, assumed)?.into_iter().map(|(node, count)| {
        let each = node.times(request).unwrap_or_default();
        each.saturating_mul(count)
    });
    Some(rooms.fold(0, i128::saturating_add))
}

/// The sets beyond which nobody counts: with so much room, whether a set fits is no question of single nodes.
const MOST: i128 = 100;

/// Returns the sets of these Pods for which the nodes of the cluster have room if each Pod goes to the first of them that
/// has some, as Karmada's general estimator tries it. Returns `None` if the cluster has no models, or room for many.
pub(super) fn sets(cluster: &ClusterView, set: &[Pods], assumed: &[Pods]) -> Option<i128> {
    let mut nodes = nodes(cluster, assumed)?;
    (0..MOST).find(|_| {
        nodes.retain(|(node, _)| set.iter().any(|(pod, _)| node.times(pod) > Some(0)));
        !set.iter().all(|pods| place(&mut nodes, pods))
    })
}

/// Takes the room for Pods from the first nodes that have some, and returns `true` if it is enough.
fn place(nodes: &mut Vec<Nodes>, (pod, count): &Pods) -> bool {
    let mut rest = *count;
    let before = std::mem::take(nodes);
    for (node, mut number) in before {
        let each = match rest {
            0 => 0,
            _ => node.times(pod).unwrap_or_default(),
        };
        if each > 0 {
            let full = number.min(rest / each);
            keep(nodes, without(&node, pod, each), full);
            number -= full;
            rest -= full * each;
            if rest > 0 && number > 0 {
                keep(nodes, without(&node, pod, rest), 1);
                number -= 1;
                rest = 0;
            }
        }
        keep(nodes, node, number);
    }
    rest == 0
}

/// Adds a number of equal nodes.
fn keep(nodes: &mut Vec<Nodes>, node: Amounts, number: i128) {
    match nodes.last_mut() {
        _ if number == 0 => {}
        Some((same, count)) if *same == node => *count += number,
        _ => nodes.push((node, number)),
    }
}

/// Returns a node with so many more Pods.
fn without(node: &Amounts, pod: &Amounts, pods: i128) -> Amounts {
    let mut node = node.clone();
    node.subtract(&pod.multiplied(pods));
    node
}

/// Nodes that have the same each, and their number.
type Nodes = (Amounts, i128);

/// Returns the nodes of the cluster by their models, the least first, with the room that is left once each Pod that is
/// assumed to be there has gone to the first of them that has room for it. Returns `None` if the cluster has no models, or
/// its nodes are not counted by them.
fn nodes(cluster: &ClusterView, assumed: &[Pods]) -> Option<Vec<Nodes>> {
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
    let by_grade: BTreeMap<i64, &ResourceModel> =
        models.iter().map(|model| (model.grade, model)).collect();
    let nodes = by_grade.into_iter().map(|(grade, model)| {
        let counts = counts.iter().filter(|counted| counted.grade == grade);
        let counts = counts.map(|counted| i128::from(counted.count));
        (node(model), counts.sum())
    });
    let mut nodes: Vec<_> = nodes.collect();
    for pods in assumed {
        // A Pod that fits on no node is in nobody's way.
        place(&mut nodes, pods);
    }
    Some(nodes)
}

/// Returns the least room of a node of the model.
fn node(model: &ResourceModel) -> Amounts {
    let ranges = model.ranges.iter();
    let least = ranges.map(|range| (&*range.name, &*range.min.0));
    least.chain([PODS]).collect()
}
