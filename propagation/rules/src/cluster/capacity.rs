//! The capacity in the status of a `Cluster`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use karmada_api::cluster_view::{
    AllocatableModeling, NodeSummary, Quantities, ResourceModel, ResourceSummary,
};
use objects::amounts::Amounts;

use objects::usage::{ClusterUsage, NodeCapacity, PodRequest, free};

/// The summary of a cluster's nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacity {
    /// Their numbers.
    pub nodes: NodeSummary,
    /// Their room, and the nodes of each model.
    pub resources: ResourceSummary,
}

/// Returns the capacity of these named nodes with these pods. Nodes are counted by `models`, of the last whose least
/// amounts a node has free. One on which no pod has room is of none.
pub fn capacity(
    nodes: &[(&str, &NodeCapacity)],
    pods: &[&PodRequest],
    models: &[ResourceModel],
) -> Capacity {
    let usage = ClusterUsage::of(nodes.iter().map(|(_, node)| *node), pods.iter().copied());
    Capacity {
        nodes: NodeSummary {
            total_num: number(nodes.len()),
            ready_num: number(nodes.iter().filter(|(_, node)| node.is_ready).count()),
        },
        resources: ResourceSummary {
            allocatable: quantities(&usage.allocatable),
            allocating: quantities(&usage.allocating),
            allocated: quantities(&usage.allocated),
            allocatable_modelings: counted(nodes, pods, models),
        },
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn counted(
    nodes: &[(&str, &NodeCapacity)],
    pods: &[&PodRequest],
    models: &[ResourceModel],
) -> Vec<AllocatableModeling> {
    let mut counts: Vec<_> = models
        .iter()
        .map(|model| (least(model), model.grade, 0))
        .collect();
    counts.sort_by_key(|(_, grade, _)| *grade);
    if !counts.is_empty() {
        let one: Amounts = [("pods", "1")].into_iter().collect();
        for free in free(nodes.iter().copied(), pods.iter().copied()) {
            let mut of_model = counts.iter_mut().rev();
            let of_model = of_model.find(|(least, ..)| free.has(&one) && free.has(least));
            if let Some((.., count)) = of_model {
                *count += 1;
            }
        }
    }
    let counts = counts.into_iter();
    counts
        .map(|(_, grade, count)| AllocatableModeling { grade, count })
        .collect()
}

/// Returns the least room of a node of the model.
fn least(model: &ResourceModel) -> Amounts {
    let ranges = model.ranges.iter();
    ranges.map(|range| (&*range.name, &*range.min.0)).collect()
}

fn quantities(amounts: &Amounts) -> Quantities {
    let texts = amounts.texts().into_iter();
    texts.map(|(name, text)| (name, Quantity(text))).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    /// An empty cluster has no capacity.
    #[test]
    fn empty_cluster_has_no_capacity() {
        assert_eq!(capacity(&[], &[], &[]), Capacity::default());
    }

    fn node(cpu: &str, pods: &str, ready: &str) -> NodeCapacity {
        let allocatable = json!({ "cpu": cpu, "memory": "8Gi", "pods": pods });
        let conditions = json!([{ "type": "MemoryPressure", "status": "True" },
            { "type": "Ready", "status": ready }]);
        NodeCapacity::from(
            &json!({ "status": { "allocatable": allocatable, "conditions": conditions } }),
        )
    }

    fn pod(node: &str, phase: &str, cpu: &str) -> PodRequest {
        let requests = json!({ "requests": { "cpu": cpu } });
        PodRequest::from(
            &json!({ "spec": { "nodeName": node, "containers": [{ "resources": requests }] },
            "status": { "phase": phase } }),
        )
    }

    /// Nodes are counted by the room that their pods leave, one that is full of pods not at all.
    #[test]
    fn nodes_are_counted_by_model() {
        let models = json!([
            { "grade": 0, "ranges": [{ "name": "cpu", "min": "0" }, { "name": "memory", "min": "0" }] },
            { "grade": 2, "ranges": [{ "name": "cpu", "min": "2" }, { "name": "memory", "min": "16Gi" }] },
            { "grade": 1, "ranges": [{ "name": "cpu", "min": "1" }, { "name": "memory", "min": "4Gi" }] },
        ]);
        let models = Vec::deserialize(models).unwrap();
        let nodes = [
            // Two models by its CPU, one by its memory.
            ("a", &node("4", "110", "True")),
            ("b", &node("4", "110", "False")),
            ("full", &node("4", "1", "True")),
            ("over", &node("1", "110", "Unknown")),
        ];
        let pods = [
            &pod("b", "Running", "3500m"),
            &pod("a", "Succeeded", "4"),
            &pod("", "Pending", "4"),
            &pod("full", "Running", "1"),
            &pod("over", "Running", "2"),
        ];
        let capacity = capacity(&nodes, &pods, &models);
        assert_eq!(
            json!(capacity.nodes),
            json!({ "totalNum": 4, "readyNum": 2 })
        );
        let counts: Vec<Value> = [(0, 1), (1, 1), (2, 0)]
            .map(|(grade, count)| json!({ "grade": grade, "count": count }))
            .into();
        assert_eq!(
            json!(capacity.resources.allocatable_modelings),
            json!(counts)
        );
    }
}
