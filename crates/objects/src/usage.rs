//! The usage of a cluster: the resources of its nodes, and the requests of its pods.

use std::collections::BTreeMap;

use crate::Metadata;
use crate::amounts::Amounts;
use crate::condition::TRUE;
use crate::condition::find;
use serde_json::{Value, json};

/// The room of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCapacity {
    capacity: Amounts,
    allocatable: Amounts,
    /// True if its condition `Ready` is True.
    pub is_ready: bool,
    /// The type of its machine; empty if nobody knows.
    instance_type: Box<str>,
}

/// The labels of a node with the type of its machine, that of today first.
const INSTANCE_TYPES: [&str; 2] = [
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];

/// The requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequest {
    phase: Phase,
    /// The name of its node; empty without one.
    node: Box<str>,
    amounts: Amounts,
}

/// The phases of a pod, as far as its requests count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// It has no node yet.
    #[default]
    Pending,
    /// It has a node.
    Scheduled,
    /// Nothing of it runs any more.
    Ended,
}

/// The sums of a cluster's nodes and pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterUsage {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes of each type of machine; by the empty name those of which nobody knows it.
    pub instance_types: BTreeMap<String, usize>,
    /// Their room.
    pub capacity: Amounts,
    /// The part of it that pods may have.
    pub allocatable: Amounts,
    /// The requests of pods without a node.
    pub allocating: Amounts,
    /// The requests of pods with a node.
    pub allocated: Amounts,
}

impl From<&Value> for NodeCapacity {
    fn from(node: &Value) -> Self {
        Self {
            capacity: Amounts::read(node.pointer("/status/capacity")),
            allocatable: Amounts::read(node.pointer("/status/allocatable")),
            is_ready: find(list(node.pointer("/status/conditions")), "Ready")
                .is_some_and(|ready| ready["status"] == TRUE),
            instance_type: instance_type(node).into(),
        }
    }
}

fn instance_type(node: &Value) -> &str {
    let mut labels = INSTANCE_TYPES.iter();
    labels
        .find_map(|label| node.label(label))
        .unwrap_or_default()
}

impl From<&Value> for PodRequest {
    fn from(pod: &Value) -> Self {
        let [phase, node] = ["/status/phase", "/spec/nodeName"].map(|path| {
            let text = pod.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default()
        });
        let phase = match (phase, node) {
            ("Succeeded" | "Failed", _) => Phase::Ended,
            (_, "") => Phase::Pending,
            _ => Phase::Scheduled,
        };
        let mut amounts = Amounts::read(Some(&json!({ "pods": 1 })));
        if let Some(spec) = pod.get("spec") {
            amounts.add(&Amounts::of_pod(spec));
        }
        Self {
            phase,
            node: node.into(),
            amounts,
        }
    }
}

impl ClusterUsage {
    /// Returns the sums of these nodes and pods.
    pub fn of<'a>(
        nodes: impl IntoIterator<Item = &'a NodeCapacity>,
        pods: impl IntoIterator<Item = &'a PodRequest>,
    ) -> Self {
        let mut sum = Self::default();
        for node in nodes {
            sum.nodes += 1;
            *sum.instance_types
                .entry((*node.instance_type).to_owned())
                .or_default() += 1;
            sum.capacity.add(&node.capacity);
            sum.allocatable.add(&node.allocatable);
        }
        for pod in pods {
            match pod.phase {
                Phase::Pending => sum.allocating.add(&pod.amounts),
                Phase::Scheduled => sum.allocated.add(&pod.amounts),
                Phase::Ended => {}
            }
        }
        sum
    }
}

/// Returns the room that each of these named nodes has left beside the pods on it.
pub fn free<'a>(
    nodes: impl IntoIterator<Item = (&'a str, &'a NodeCapacity)>,
    pods: impl IntoIterator<Item = &'a PodRequest>,
) -> Vec<Amounts> {
    let nodes = nodes.into_iter();
    let mut free: BTreeMap<_, _> = nodes
        .map(|(name, node)| (name, node.allocatable.clone()))
        .collect();
    for pod in pods.into_iter().filter(|pod| pod.phase == Phase::Scheduled) {
        if let Some(free) = free.get_mut(&*pod.node) {
            free.subtract(&pod.amounts);
        }
    }
    free.into_values().collect()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(node: &str, phase: &str, cpu: &str) -> PodRequest {
        PodRequest::from(&json!({
            "spec": { "nodeName": node, "containers": [
                { "resources": { "requests": { "cpu": cpu, "memory": "64Mi" } } },
            ] },
            "status": { "phase": phase },
        }))
    }

    /// The sum is of all nodes, and of the pods that have not ended.
    #[test]
    fn nodes_and_pods_are_summed() {
        let [large, small] = ["4", "3500m"].map(|cpu| {
            let amounts = json!({ "cpu": cpu, "memory": "1Gi", "pods": "110", "x.io/gpu": 1 });
            let capacity = json!({ "cpu": "8" });
            NodeCapacity::from(
                &json!({ "status": { "allocatable": amounts, "capacity": capacity } }),
            )
        });
        let nodes = [large, small, NodeCapacity::from(&json!({}))];
        let pods = [
            pod("n1", "Running", "250m"),
            pod("n1", "Pending", "1"),
            pod("", "Pending", "2"),
            pod("n1", "Succeeded", "8"),
            pod("n2", "Failed", "8"),
            PodRequest::from(&json!({ "spec": { "nodeName": "n2" } })),
        ];
        let sum = ClusterUsage::of(&nodes, &pods);
        assert_eq!(sum.nodes, 3);
        for (amounts, expected) in [
            (&sum.capacity, json!({ "cpu": "16" })),
            (
                &sum.allocatable,
                json!({ "cpu": "7500m", "memory": "2Gi", "pods": "220", "x.io/gpu": "2" }),
            ),
            (
                &sum.allocating,
                json!({ "cpu": "2", "memory": "64Mi", "pods": "1" }),
            ),
            (
                &sum.allocated,
                json!({ "cpu": "1250m", "memory": "128Mi", "pods": "3" }),
            ),
        ] {
            assert_eq!(json!(amounts.texts()), expected);
        }
    }
}
