//! The kinds of probes that a file may name.

use serde::Deserialize;

use super::dns::Dns;
use super::grpc::Grpc;
use super::http::Http;
use super::kind::Kind;
use super::nodes::Nodes;
use super::prometheus::Prometheus;
use super::tcp::Tcp;

/// A probe as the file has it, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Probe {
    Http(Http),
    Tcp(Tcp),
    Grpc(Grpc),
    Dns(Dns),
    Prometheus(Prometheus),
    Nodes(Nodes),
}

impl Probe {
    /// Returns its kind, by which everything else knows it.
    pub(super) fn kind(&self) -> &dyn Kind {
        match self {
            Self::Http(http) => http,
            Self::Tcp(tcp) => tcp,
            Self::Grpc(grpc) => grpc,
            Self::Dns(dns) => dns,
            Self::Prometheus(prometheus) => prometheus,
            Self::Nodes(nodes) => nodes,
        }
    }
}
