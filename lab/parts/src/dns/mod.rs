//! A scripted DNS server over UDP and TCP, whose behaviour changes while it runs.

mod response;
mod serve;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Query, ResponseCode};
use karmada_rules::health::diagnosis::Transport;
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use self::serve::Server;
use crate::port::{ReservedPort, listen};

/// The name that every cluster's DNS knows: that of its own API server.
pub const KUBERNETES: &str = "kubernetes.default.svc.cluster.local.";
/// The address of that API server in a cluster with kubeadm's default Service range.
pub const KUBERNETES_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// Bounds the record, so that a server that runs for long holds no more memory than at first.
const RECORDED: usize = 256;

/// A response to a query.
#[derive(Clone, Debug)]
pub enum Response {
    /// `127.0.0.1` or `::1`, whichever has the queried type.
    Loopback,
    /// This address if the query is for type A, else an empty answer section.
    Ipv4(Ipv4Addr),
    /// An alias and the loopback address of its target, the address first.
    Alias,
    /// The loopback address of another name.
    Foreign,
    /// An empty answer section.
    NoData,
    /// A response code without records.
    Code(ResponseCode),
    /// A response code in a message that does not repeat the question.
    BareCode(ResponseCode),
    /// Nothing, over TCP neither until the client gives up.
    Drop,
    /// Nothing; a TCP connection is closed.
    Close,
    /// [`Self::Loopback`] with the id of another message.
    WrongId,
    /// [`Self::Loopback`] for another question.
    WrongQuestion,
    /// Bytes that are no DNS message.
    Garbage,
    /// Over UDP a message with the TC bit and no records (RFC 1035, section 4.1.1); over TCP this
    /// response.
    Truncated(Box<Self>),
    /// This response after a while.
    Delayed(Duration, Box<Self>),
    /// Each of these responses, one after the other.
    Each(Vec<Self>),
}

/// A query that the server received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The transport it came over.
    pub transport: Transport,
    /// The id of the message.
    pub id: u16,
    /// The question.
    pub query: Query,
    /// Set if the same question came before.
    pub repeated: bool,
}

/// The choice of a response to each query.
#[derive(Clone)]
pub struct Behaviour(Arc<dyn Fn(&Received) -> Response + Send + Sync>);

impl Behaviour {
    /// Responds to each query with what `choose` returns for it.
    pub fn new(choose: impl Fn(&Received) -> Response + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    /// Returns the response to a query.
    pub fn response_to(&self, received: &Received) -> Response {
        (self.0)(received)
    }

    /// Responds so to queries for these full names, and with NXDOMAIN to all others.
    ///
    /// ```
    /// # use lab_parts::dns::{Behaviour, KUBERNETES, KUBERNETES_IP, Response};
    /// let cluster = Behaviour::zone([KUBERNETES], Response::Ipv4(KUBERNETES_IP));
    /// ```
    pub fn zone<'a>(names: impl IntoIterator<Item = &'a str>, response: Response) -> Self {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Self::new(move |received| {
            // Names compare without regard to case (RFC 4343).
            let name = received.query.name().to_ascii();
            if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                response.clone()
            } else {
                Response::Code(ResponseCode::NXDomain)
            }
        })
    }
}

impl From<Response> for Behaviour {
    /// Responds to all queries alike.
    fn from(response: Response) -> Self {
        Self::new(move |_| response.clone())
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviour").finish_non_exhaustive()
    }
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

#[derive(Debug)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    received: Mutex<VecDeque<Received>>,
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
            shared: Arc::new(Shared {
                behaviour: Mutex::new(behaviour),
                received: Mutex::default(),
            }),
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

impl Shared {
    /// Records a query, and chooses the response to it.
    fn receive(&self, transport: Transport, id: u16, query: Query) -> Response {
        let received = {
            let mut all = self.received.lock();
            let repeated = all.iter().any(|before| before.query == query);
            let received = Received {
                transport,
                id,
                query,
                repeated,
            };
            if all.len() == RECORDED {
                all.pop_front();
            }
            all.push_back(received.clone());
            received
        };
        // The lock is not held while the behaviour runs, so it may use the server.
        let behaviour = self.behaviour.lock().clone();
        behaviour.response_to(&received)
    }
}

#[cfg(test)]
mod tests;
