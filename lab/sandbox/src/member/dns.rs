//! A member cluster's DNS server: over UDP and TCP on one port, with faults on demand.

mod answer;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub(super) use self::answer::KUBERNETES;
use self::answer::{Reply, reply};
use crate::facts::DnsFault;
use crate::port::Port;

/// The longest question over UDP.
const LONGEST: usize = 1232;
/// How long a TCP connection may be idle.
const IDLE: Duration = Duration::from_secs(10);
/// Nobody sends from here: a UDP socket connected to it hears nobody, and the system answers for it
/// that its port is unreachable.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

/// A DNS server of one cluster. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct DnsServer {
    address: SocketAddr,
    fault: watch::Sender<DnsFault>,
    _serving: JoinSet<()>,
}

/// How the server behaves now.
#[derive(Clone, Debug)]
struct Conduct {
    fault: watch::Receiver<DnsFault>,
    too_late: Duration,
    asked: Arc<AtomicUsize>,
}

impl DnsServer {
    /// A healthy server; what is slow comes after `too_late`.
    pub(crate) async fn start(too_late: Duration) -> io::Result<Self> {
        let (sender, fault) = watch::channel(DnsFault::None);
        let conduct = Conduct {
            fault,
            too_late,
            asked: Arc::default(),
        };
        let (port, socket) = Port::reserve_with_udp().await?;
        let address = port.address();
        let listener = port.listen()?;
        let (udp, tcp) = (conduct.clone(), conduct);
        let mut serving = JoinSet::new();
        serving.spawn(async move { told(udp.serve_udp(socket).await) });
        serving.spawn(async move { told(tcp.serve_tcp(port, listener).await) });
        Ok(Self {
            address,
            fault: sender,
            _serving: serving,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks the server in this way, or mends it.
    pub(crate) fn set(&self, fault: DnsFault) {
        self.fault.send_replace(fault);
    }
}

fn told(ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::error!(%error, "A DNS server ended");
    }
}

impl Conduct {
    async fn serve_udp(mut self, socket: UdpSocket) -> io::Result<()> {
        let mut late = JoinSet::new();
        let socket = Arc::new(socket);
        let mut buffer = [0; LONGEST];
        loop {
            if self.stopped() {
                socket.connect(NOBODY).await?;
                if self.restarted().await.is_none() {
                    return Ok(());
                }
                rustix::net::connect_unspec(&socket)?;
            }
            let (length, from) = tokio::select! {
                biased;
                changed = self.fault.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Ok(()),
                },
                received = socket.recv_from(&mut buffer) => received?,
            };
            while late.try_join_next().is_some() {}
            match self.reply(&buffer[..length]) {
                Reply::Nothing => {}
                // The asker may have gone: that is its affair.
                Reply::Now(bytes) => drop(socket.send_to(&bytes, from).await),
                Reply::Late(bytes) => {
                    let (socket, delay) = (Arc::clone(&socket), self.too_late);
                    late.spawn(async move {
                        sleep(delay).await;
                        drop(socket.send_to(&bytes, from).await);
                    });
                }
            }
        }
    }

    async fn serve_tcp(mut self, port: Port, mut listener: TcpListener) -> io::Result<()> {
        loop {
            let mut connections = JoinSet::new();
            while !self.stopped() {
                tokio::select! {
                    biased;
                    changed = self.fault.changed() => if changed.is_err() {
                        return Ok(());
                    },
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        connections.spawn(timeout(IDLE, self.clone().converse(stream)));
                    },
                }
                while connections.try_join_next().is_some() {}
            }
            drop((listener, connections));
            if self.restarted().await.is_none() {
                return Ok(());
            }
            listener = port.listen()?;
        }
    }

    /// Answers one question after the other, each led by its length in two bytes (RFC 1035, section
    /// 4.2.2).
    async fn converse(self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let length = stream.read_u16().await?;
            let mut question = vec![0; usize::from(length)];
            stream.read_exact(&mut question).await?;
            let bytes = match self.reply(&question) {
                Reply::Nothing => continue,
                Reply::Now(bytes) => bytes,
                Reply::Late(bytes) => {
                    sleep(self.too_late).await;
                    bytes
                }
            };
            let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
            stream.write_u16(length).await?;
            stream.write_all(&bytes).await?;
        }
    }

    fn reply(&self, question: &[u8]) -> Reply {
        let nth = self.asked.fetch_add(1, Ordering::Relaxed);
        reply(question, *self.fault.borrow(), nth)
    }

    fn stopped(&mut self) -> bool {
        *self.fault.borrow_and_update() == DnsFault::Stop
    }

    /// None: the server has ended.
    async fn restarted(&mut self) -> Option<()> {
        let restarted = self.fault.wait_for(|fault| *fault != DnsFault::Stop).await;
        restarted.is_ok().then_some(())
    }
}

#[cfg(test)]
mod tests;
