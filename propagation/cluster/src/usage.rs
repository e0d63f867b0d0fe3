//! The nodes and the pods of a member, kept known by watches.

use std::net::IpAddr;

use clap::ValueEnum;
use k8s_openapi::api::core::v1::{Node, Pod};
use karmada_api::cluster_view::ResourceModel;
use karmada_runtime::partial::PartialList;
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use objects::ip::non_special;
use objects::usage::{NodeCapacity, PodRequest};
use propagation_rules::cluster::{Capacity, NodeAddresses, capacity};
use serde_json::Value;

/// The nodes and the pods of a member.
#[derive(Default)]
pub(crate) struct Usage {
    nodes: PartialList<Node, KnownNode>,
    pods: PartialList<Pod, PodRequest>,
}

/// The types of a node's addresses that can be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeAddressType {
    #[value(name = "InternalIP")]
    InternalIp,
    #[value(name = "ExternalIP")]
    ExternalIp,
}

/// The parts of a node that are kept.
#[derive(Clone, Debug, Default)]
struct KnownNode {
    capacity: NodeCapacity,
    addresses: Vec<(NodeAddressType, IpAddr)>,
}

impl From<&Value> for KnownNode {
    fn from(node: &Value) -> Self {
        let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
        let addresses = addresses.into_iter().flatten().filter_map(|address| {
            let type_ = NodeAddressType::of(address.get("type")?.as_str()?)?;
            let ip: IpAddr = address.get("address")?.as_str()?.parse().ok()?;
            Some((type_, non_special(ip).ok()?))
        });
        Self {
            capacity: NodeCapacity::from(node),
            addresses: addresses.collect(),
        }
    }
}

impl NodeAddressType {
    /// Returns the type that Kubernetes calls so, if it is one of these.
    fn of(name: &str) -> Option<Self> {
        match name {
            "InternalIP" => Some(Self::InternalIp),
            "ExternalIP" => Some(Self::ExternalIp),
            _ => None,
        }
    }
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
            (name.unwrap_or_default(), &node.part.capacity)
        });
        let pods = pods.iter().map(|pod| &pod.part);
        let (nodes, pods): (Vec<_>, Vec<_>) = (nodes.collect(), pods.collect());
        Some(capacity(&nodes, &pods, models))
    }

    /// Returns the nodes with their addresses of a type, once all nodes are known.
    pub(crate) fn nodes(&self, type_: NodeAddressType) -> Option<Vec<NodeAddresses>> {
        let nodes = self.nodes.known()?;
        let nodes = nodes.iter().map(|node| {
            let of_type = node.part.addresses.iter().filter(|(of, _)| *of == type_);
            NodeAddresses {
                name: node.meta().name.clone().unwrap_or_default(),
                addresses: of_type.map(|(_, ip)| *ip).collect(),
                is_ready: node.part.capacity.is_ready,
            }
        });
        Some(nodes.collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Of a node the IP addresses are kept that an endpoint may have, with their types.
    #[test]
    fn node_has_typed_addresses() {
        let address = |type_: &str, address: &str| json!({ "type": type_, "address": address });
        let node = json!({ "status": { "addresses": [
            address("Hostname", "n1"),
            address("InternalIP", "10.0.0.1"),
            address("InternalIP", "fe80::1"),
            address("ExternalIP", "192.0.2.1"),
            address("ExternalIP", "n1.example.com"),
            { "type": "InternalIP", "address": null },
            7,
        ] } });
        let expected = [
            (NodeAddressType::InternalIp, "10.0.0.1".parse().unwrap()),
            (NodeAddressType::ExternalIp, "192.0.2.1".parse().unwrap()),
        ];
        assert_eq!(KnownNode::from(&node).addresses, expected);
        let odd = json!({ "status": { "addresses": "10.0.0.1" } });
        assert!(KnownNode::from(&odd).addresses.is_empty());
    }
}
