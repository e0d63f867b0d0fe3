//! An emulation of a node's rules for one Service, as kube-proxy writes them: a relay at the cluster IP.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::port::listen;

/// The time between two attempts to listen.
const AGAIN: Duration = Duration::from_millis(10);

/// The treatment of a connection to the cluster IP by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Leads it to an endpoint.
    Forward,
    /// Refuses it: the node has no rule.
    Refuse,
    /// Leads it to somebody who resets it.
    Reset,
    /// Loses it. The relay accepts it first, and never answers.
    Drop,
}

/// The rules of a node for one Service. Dropping them ends them, and every connection.
#[derive(Debug)]
pub struct NodeRules {
    rule: watch::Sender<Rule>,
    _relay: JoinSet<()>,
}

impl NodeRules {
    /// Leads connections to `cluster_ip` to the endpoints, one after the other.
    pub fn start(cluster_ip: SocketAddr, endpoints: Vec<SocketAddr>) -> Self {
        let rule = watch::Sender::new(Rule::Forward);
        let mut relaying = JoinSet::new();
        relaying.spawn(relay(cluster_ip, endpoints, rule.subscribe()));
        Self {
            rule,
            _relay: relaying,
        }
    }

    /// Replaces them; connections to come meet the new rule.
    pub fn set(&self, rule: Rule) {
        self.rule
            .send_if_modified(|before| std::mem::replace(before, rule) != rule);
    }
}

async fn relay(
    cluster_ip: SocketAddr,
    mut endpoints: Vec<SocketAddr>,
    mut rules: watch::Receiver<Rule>,
) {
    let (mut listener, mut forwarded, mut lost) = (None, JoinSet::new(), Vec::new());
    loop {
        let rule = *rules.borrow_and_update();
        if rule == Rule::Refuse {
            listener = None;
        } else if listener.is_none() {
            listener = listen(cluster_ip).ok();
        }
        let is_missing = rule != Rule::Refuse && listener.is_none();
        let connections = async {
            let Some(listener) = &listener else {
                return std::future::pending().await;
            };
            loop {
                let Ok((connection, _)) = listener.accept().await else {
                    continue;
                };
                match rule {
                    Rule::Forward => {
                        endpoints.rotate_left(1);
                        forwarded.spawn(forward(connection, endpoints.clone()));
                    }
                    Rule::Reset => {
                        forwarded.spawn(reset(connection));
                    }
                    Rule::Drop | Rule::Refuse => lost.push(connection),
                }
                while forwarded.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            () = connections => {}
            // A process that is being started holds every socket until it runs its program.
            () = sleep(AGAIN), if is_missing => {}
            changed = rules.changed() => if changed.is_err() {
                return;
            },
        }
        lost.clear();
    }
}

/// Forwards to the first endpoint that responds: one that does not is soon no endpoint any more.
async fn forward(mut connection: TcpStream, endpoints: Vec<SocketAddr>) {
    for endpoint in endpoints {
        if let Ok(mut endpoint) = TcpStream::connect(endpoint).await {
            // Fails when either side is done.
            drop(copy_bidirectional(&mut connection, &mut endpoint).await);
            return;
        }
    }
}

/// Resets a connection without reading its request.
async fn reset(connection: TcpStream) {
    // With something unread, closing it resets it.
    if connection.readable().await.is_ok() {
        drop(connection);
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::port::{CLOSED, ReservedPort};

    /// Longer than a connection over loopback takes, on a busy machine too.
    const AMPLE: Duration = Duration::from_secs(30);

    /// Sends one byte, and returns the response.
    async fn exchange(address: SocketAddr) -> std::io::Result<Vec<u8>> {
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(b"?").await?;
        let mut read = Vec::new();
        connection.read_to_end(&mut read).await.map(|_| read)
    }

    /// Serves one byte to each client.
    async fn endpoint(listener: TcpListener) {
        while let Ok((mut connection, _)) = listener.accept().await {
            connection.read_u8().await.unwrap();
            connection.write_all(b"!").await.unwrap();
        }
    }

    /// Each rule looks to a client as on a node, and can be replaced.
    #[tokio::test]
    async fn every_rule_shows() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let alive = listener.local_addr().unwrap();
        let serving = tokio::spawn(endpoint(listener));
        let port = ReservedPort::reserve().unwrap();
        let rules = NodeRules::start(port.address(), vec![CLOSED, alive]);

        for (rule, expected) in [
            (Rule::Refuse, ErrorKind::ConnectionRefused),
            (Rule::Reset, ErrorKind::ConnectionReset),
        ] {
            forwards(port.address()).await;
            rules.set(rule);
            // The relay changes its rule a moment later, and resets connections that are open then.
            let shown = async {
                while exchange(port.address()).await.map_err(|error| error.kind()) != Err(expected)
                {
                }
            };
            timeout(AMPLE, shown).await.unwrap();
            rules.set(Rule::Forward);
        }
        serving.abort();
    }

    async fn forwards(address: SocketAddr) {
        let forwarded = async { while exchange(address).await.ok().as_deref() != Some(b"!") {} };
        timeout(AMPLE, forwarded).await.unwrap();
    }
}
