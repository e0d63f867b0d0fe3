//! The names and addresses of the nodes' agents.

use std::net::{Ipv4Addr, SocketAddr};

/// The prefix of every [`pod_ip`] in JSON.
pub(super) const PODS: &str = "\"10.77.";
/// The prefix of every [`address`] in JSON.
pub(super) const LISTENING: &str = "\"127.77.";

/// Returns the address on which the agent of a node listens.
///
/// An API server rejects endpoints on loopback, so it stores the agent's pod IP, which is replaced in
/// every response.
pub fn address(node: u16, port: u16) -> SocketAddr {
    let [high, low] = node.to_be_bytes();
    (Ipv4Addr::new(127, 77, high, low), port).into()
}

/// Returns the pod IP of a node's agent in the API.
pub(super) fn pod_ip(node: u16) -> Ipv4Addr {
    let [high, low] = node.to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// Returns the name of a node.
pub fn name(node: u16) -> String {
    format!("n{node:04}")
}
