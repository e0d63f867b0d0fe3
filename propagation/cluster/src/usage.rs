//! The nodes and the pods of a member, kept known by watches.

use k8s_openapi::api::core::v1::{Node, Pod};
use karmada_api::cluster_view::ResourceModel;
use karmada_runtime::partial::PartialList;
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use objects::usage::{NodeCapacity, PodRequest};
use propagation_rules::cluster::{Capacity, capacity};

/// The nodes and the pods of a member.
#[derive(Default)]
pub(crate) struct Usage {
    nodes: PartialList<Node, NodeCapacity>,
    pods: PartialList<Pod, PodRequest>,
}

impl Usage {
    /// Keeps nodes and pods known. It never ends; without the right to list them, they stay unknown.
    pub(crate) async fn watch(&self, client: Client) {
        let nodes = self.nodes.watch(client.clone(), Config::default(), || {});
        let pods = self.pods.watch(client, Config::default(), || {});
        tokio::join!(nodes, pods);
    }

    /// Returns the capacity, once all nodes and pods are known.
    pub(crate) fn capacity(&self, models: &[ResourceModel]) -> Option<Capacity> {
        let (nodes, pods) = (self.nodes.known()?, self.pods.known()?);
        let nodes = nodes.iter().map(|node| {
            let name = node.meta().name.as_deref();
            (name.unwrap_or_default(), &node.part)
        });
        let pods = pods.iter().map(|pod| &pod.part);
        let (nodes, pods): (Vec<_>, Vec<_>) = (nodes.collect(), pods.collect());
        Some(capacity(&nodes, &pods, models))
    }
}
