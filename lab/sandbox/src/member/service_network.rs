//! The rules of a member's nodes for the agents' Service, their faults, and the pods that notice them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use lab_parts::kube_proxy::{NodeRules, Rule};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use crate::fault::ServiceNetworkFault;
use crate::update::{Update, UpdateSender};

/// The longest that a pod waits for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time between two requests of each node's pods.
const REPEAT: Duration = Duration::from_millis(500);

/// The emulated kube-proxy of each node. Dropping it ends them.
#[derive(Debug)]
pub(super) struct ServiceNetwork(Vec<NodeRules>);

impl ServiceNetwork {
    /// Leads the cluster IP, as each node sees it, to the endpoints.
    pub(super) fn start(cluster_ips: &[SocketAddr], endpoints: &[SocketAddr]) -> Self {
        let rules = cluster_ips.iter();
        let rules = rules.map(|cluster_ip| NodeRules::start(*cluster_ip, endpoints.into()));
        Self(rules.collect())
    }

    /// Injects a fault in place of the one before.
    pub(super) fn inject(&self, fault: ServiceNetworkFault) {
        let [first, others] = match fault {
            ServiceNetworkFault::None => [Rule::Forward; 2],
            ServiceNetworkFault::OneNode => [Rule::Refuse, Rule::Forward],
            ServiceNetworkFault::Refuse => [Rule::Refuse; 2],
            ServiceNetworkFault::Reset => [Rule::Reset; 2],
            ServiceNetworkFault::Drop => [Rule::Drop; 2],
        };
        for (nth, rules) in self.0.iter().enumerate() {
            rules.set(if nth == 0 { first } else { others });
        }
    }
}

/// Connects to the Service from every node again and again, as the cluster's pods do, and never returns.
pub(super) async fn repeat(cluster: String, cluster_ips: Vec<SocketAddr>, updates: UpdateSender) {
    let mut ticks = interval(REPEAT);
    loop {
        ticks.tick().await;
        let requests = cluster_ips.iter().map(|address| request(*address));
        let results = join_all(requests).await;
        updates.send(Update::Connections {
            cluster: cluster.clone(),
            failing: results.iter().filter(|result| result.is_err()).count(),
        });
    }
}

/// Sends a request over a connection of its own: one that is open already follows no new rule.
async fn request(address: SocketAddr) -> io::Result<()> {
    let exchange = async {
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await?;
        connection.read_u8().await
    };
    timeout(RESPONSE_TIMEOUT, exchange).await??;
    Ok(())
}
