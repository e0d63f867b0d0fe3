//! How much of the member is in use, kept known by watches of its nodes and pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use karmada_runtime::partial::PartialList;
use karmada_runtime::program::Program;
use kube::Client;
use kube::runtime::watcher::Config;
use objects::Key;
use objects::usage::{ClusterUsage, NodeCapacity, PodRequest};

use crate::index::Agent;

/// The pods whose requests count.
const PODS: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// The nodes and the pods of the member.
#[derive(Default)]
pub(crate) struct Usage {
    nodes: PartialList<Node, NodeCapacity>,
    pods: PartialList<Pod, PodRequest>,
}

impl Usage {
    /// Keeps nodes and pods known, and wakes the membership when they have been listed. Without the right to list them,
    /// they stay unknown.
    pub(crate) fn watch(program: &mut Program, member: &Client, agent: Arc<Agent>) -> Arc<Self> {
        let usage = Arc::new(Self::default());
        let (known, member) = (Arc::clone(&usage), member.clone());
        program.run_until_stopped("usage", async move {
            let (all, counted) = (Config::default(), Config::default().fields(PODS));
            let nodes = known.nodes.watch(member.clone(), all, || wake(&agent));
            let pods = known.pods.watch(member, counted, || wake(&agent));
            tokio::join!(nodes, pods);
        });
        usage
    }

    /// Returns the usage, once all nodes and pods are known.
    pub(crate) fn sum(&self) -> Option<ClusterUsage> {
        let (nodes, pods) = (self.nodes.known()?, self.pods.known()?);
        let nodes = nodes.iter().map(|node| &node.part);
        Some(ClusterUsage::of(nodes, pods.iter().map(|pod| &pod.part)))
    }
}

fn wake(agent: &Agent) {
    let channel = agent.index.lock().channel();
    let keys = channel.map(|channel| Key::of(&*channel));
    agent.queues.membership.add_all(keys);
}
