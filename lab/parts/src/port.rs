//! Ports that stay reserved whether a server listens on them or not.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket, UdpSocket};

/// A loopback address on which no server listens: nothing here binds privileged ports of it.
pub const CLOSED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 99, 99, 99)), 1);

const BACKLOG: u32 = 128;
/// A port that is free for TCP is rarely taken for UDP.
const ATTEMPTS: usize = 100;

/// A reserved TCP port. While no server listens on it, connections to it are refused.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _held: Option<TcpSocket>,
}

impl ReservedPort {
    /// Reserves a free port of 127.0.0.1.
    pub fn reserve() -> io::Result<Self> {
        let held = bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self {
            address: held.local_addr()?,
            // Bound but not listening: Linux lets one other socket listen beside it if both set
            // SO_REUSEADDR, as servers do in Go and on tokio, and picks the port for no socket that
            // binds port 0. Other systems refuse the second bind.
            _held: cfg!(target_os = "linux").then_some(held),
        })
    }

    /// Reserves a port that is free for UDP as well, and binds a UDP socket to it.
    pub(crate) async fn reserve_with_udp() -> io::Result<(Self, UdpSocket)> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let port = Self::reserve()?;
            match UdpSocket::bind(port.address).await {
                Ok(socket) => return Ok((port, socket)),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
    }

    /// Returns the reserved address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens on the port until the listener is dropped.
    pub fn listen(&self) -> io::Result<TcpListener> {
        listen(self.address)
    }
}

/// Listens on an address that this process may have [reserved](ReservedPort).
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    bind(address)?.listen(BACKLOG)
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_reserved_port_refuses_connections_until_a_server_listens_again_and_again() {
        let port = ReservedPort::reserve().unwrap();
        for _ in 0..3 {
            assert!(TcpStream::connect(port.address()).await.is_err());
            let listener = port.listen().unwrap();
            TcpStream::connect(port.address()).await.unwrap();
            drop(listener);
        }
        assert!(TcpStream::connect(port.address()).await.is_err());
    }

    #[tokio::test]
    async fn the_closed_address_refuses_connections() {
        let error = TcpStream::connect(CLOSED).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
