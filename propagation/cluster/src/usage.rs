//! The nodes and the pods of a member, kept known by watches.

use k8s_openapi::api::core::v1::{Node, Pod};
use karmada_api::cluster_view::ResourceSummary;
use karmada_rules::cluster::summary;
use karmada_rules::usage::{ClusterUsage, NodeCapacity, PodRequest};
use karmada_runtime::partial::PartialList;
use kube::Client;
use kube::runtime::watcher::Config;

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
    pub(crate) fn summary(&self) -> Option<ResourceSummary> {
        let (nodes, pods) = (self.nodes.known()?, self.pods.known()?);
        let nodes = nodes.iter().map(|node| &node.part);
        let usage = ClusterUsage::of(nodes, pods.iter().map(|pod| &pod.part));
        Some(summary(&usage))
    }
}
