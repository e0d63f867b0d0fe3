//! The capacity of a cluster: the sum of its nodes, and of what its pods ask for.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use karmada_api::cluster_view::{Quantities, ResourceSummary};
use serde_json::{Value, json};

use objects::amounts::Amounts;

/// A node's room for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCapacity(Amounts);

/// The requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequest {
    phase: Phase,
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

impl From<&Value> for NodeCapacity {
    fn from(node: &Value) -> Self {
        Self(Amounts::read(node.pointer("/status/allocatable")))
    }
}

impl From<&Value> for PodRequest {
    fn from(pod: &Value) -> Self {
        let text = |path: &str| {
            pod.pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let phase = match (text("/status/phase"), text("/spec/nodeName")) {
            ("Succeeded" | "Failed", _) => Phase::Ended,
            (_, "") => Phase::Pending,
            _ => Phase::Scheduled,
        };
        let mut amounts = Amounts::read(Some(&json!({ "pods": 1 })));
        if let Some(spec) = pod.get("spec") {
            amounts.add(&Amounts::of_pod(spec));
        }
        Self { phase, amounts }
    }
}

/// Returns the capacity of a cluster with these nodes and pods.
pub fn summary<'a>(
    nodes: impl Iterator<Item = &'a NodeCapacity>,
    pods: impl Iterator<Item = &'a PodRequest>,
) -> ResourceSummary {
    let (mut allocatable, mut allocating, mut allocated) =
        (Amounts::default(), Amounts::default(), Amounts::default());
    for NodeCapacity(amounts) in nodes {
        allocatable.add(amounts);
    }
    for pod in pods {
        match pod.phase {
            Phase::Pending => allocating.add(&pod.amounts),
            Phase::Scheduled => allocated.add(&pod.amounts),
            Phase::Ended => {}
        }
    }
    ResourceSummary {
        allocatable: quantities(&allocatable),
        allocating: quantities(&allocating),
        allocated: quantities(&allocated),
    }
}

fn quantities(amounts: &Amounts) -> Quantities {
    let texts = amounts.texts().into_iter();
    texts.map(|(name, text)| (name, Quantity(text))).collect()
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

    /// Capacity is the sum of nodes and of pods that have not ended.
    #[test]
    fn capacity_sums_nodes_and_pods() {
        let node = |cpu: &str| {
            let amounts = json!({ "cpu": cpu, "memory": "1Gi", "pods": "110", "x.io/gpu": 1 });
            NodeCapacity::from(&json!({ "status": { "allocatable": amounts } }))
        };
        let nodes = [node("4"), node("3500m"), NodeCapacity::from(&json!({}))];
        let pods = [
            pod("n1", "Running", "250m"),
            pod("n1", "Pending", "1"),
            pod("", "Pending", "2"),
            pod("n1", "Succeeded", "8"),
            pod("n2", "Failed", "8"),
            PodRequest::from(&json!({ "spec": { "nodeName": "n2" } })),
        ];
        let summary = serde_json::to_value(summary(nodes.iter(), pods.iter())).unwrap();
        assert_eq!(
            summary,
            json!({
                "allocatable": { "cpu": "7500m", "memory": "2Gi", "pods": "220", "x.io/gpu": "2" },
                "allocating": { "cpu": "2", "memory": "64Mi", "pods": "1" },
                "allocated": { "cpu": "1250m", "memory": "128Mi", "pods": "3" },
            })
        );
    }

    /// An empty cluster has no capacity.
    #[test]
    fn empty_cluster_has_no_capacity() {
        let empty = summary([].iter(), [].iter());
        assert_eq!(empty, ResourceSummary::default());
    }
}
