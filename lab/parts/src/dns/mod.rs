//! A scripted DNS server over UDP and TCP. Its behaviour changes while it runs.

mod behaviour;
mod record;
mod response;
mod serve;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use health::diagnosis::Transport;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

pub use self::behaviour::{Behaviour, Received, Response};
use self::record::Shared;
use self::serve::Server;
use crate::port::{ReservedPort, listen};

/// The name that every cluster's DNS knows: that of its own API server.
pub const KUBERNETES: &str = "kubernetes.default.svc.cluster.local.";
/// The address of that API server in a cluster with kubeadm's default Service range.
pub const KUBERNETES_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// Returns the behaviour of a cluster's server, which knows its API server as a pod asks for it and as a machine without a
/// search list does.
pub fn cluster() -> Behaviour {
    let names = [KUBERNETES, "kubernetes.default."];
    Behaviour::zone(names, Response::Ipv4(KUBERNETES_IP))
}

/// A DNS server. Dropping it ends it.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    udp: Arc<UdpSocket>,
    shared: Arc<Shared>,
    serving: tokio::sync::Mutex<JoinSet<()>>,
    /// Keeps the TCP port while the server is stopped; the UDP socket keeps itself.
    _port: Option<ReservedPort>,
}

impl DnsServer {
    /// Starts a server on a free port of 127.0.0.1.
    pub async fn start(behaviour: impl Into<Behaviour>) -> io::Result<Self> {
        let (port, udp) = ReservedPort::reserve_with_udp().await?;
        Self::new(port.address(), udp, Some(port), behaviour.into()).await
    }

    /// Starts a server at an address of this machine.
    pub async fn start_at(
        address: SocketAddr,
        behaviour: impl Into<Behaviour>,
    ) -> io::Result<Self> {
        let udp = UdpSocket::bind(address).await?;
        Self::new(address, udp, None, behaviour.into()).await
    }

    async fn new(
        address: SocketAddr,
        udp: UdpSocket,
        port: Option<ReservedPort>,
        behaviour: Behaviour,
    ) -> io::Result<Self> {
        let server = Self {
            address,
            udp: Arc::new(udp),
            shared: Arc::new(Shared::new(behaviour)),
            serving: tokio::sync::Mutex::default(),
            _port: port,
        };
        server.spawn(&mut *server.serving.lock().await)?;
        Ok(server)
    }

    /// Returns the address at which the server responds.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the response to every query from now on.
    pub fn set(&self, behaviour: impl Into<Behaviour>) {
        *self.shared.behaviour.lock() = behaviour.into();
    }

    /// Returns the newest queries, the oldest first.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().iter().cloned().collect()
    }

    /// Counts the newest queries over a transport.
    pub fn count(&self, transport: Transport) -> usize {
        let received = self.shared.received.lock();
        let over = received.iter().filter(|it| it.transport == transport);
        over.count()
    }

    /// Stops the server, which keeps its port. Until it [restarts](Self::restart), queries find the
    /// port unreachable and connections are refused.
    pub async fn stop(&self) -> io::Result<()> {
        let mut serving = self.serving.lock().await;
        serving.shutdown().await;
        // A connected UDP socket receives from its peer alone, so the system responds to all others
        // that the port is unreachable. Nothing sends from the discard port (RFC 863).
        self.udp.connect((self.address.ip(), 9)).await
    }

    /// Starts the server again after [`Self::stop`]; a running one is left as it is.
    pub async fn restart(&self) -> io::Result<()> {
        let mut serving = self.serving.lock().await;
        if serving.is_empty() {
            rustix::net::connect_unspec(&*self.udp)?;
            self.spawn(&mut serving)?;
        }
        Ok(())
    }

    fn spawn(&self, serving: &mut JoinSet<()>) -> io::Result<()> {
        let listener = listen(self.address)?;
        let (udp, tcp) = (Server::new(&self.shared), Server::new(&self.shared));
        serving.spawn(udp.over_udp(Arc::clone(&self.udp)));
        serving.spawn(tcp.over_tcp(listener));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
