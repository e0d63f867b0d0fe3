//! A port of this machine that stays ours whether anybody listens on it or not.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket, UdpSocket};

const BACKLOG: u32 = 128;
const ATTEMPTS: usize = 100;

/// A TCP port on 127.0.0.1. While nobody listens, connections to it are refused.
#[derive(Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    /// Bound but not listening. Linux lets one other socket listen beside it when both say that
    /// addresses may be reused, and gives the port to nobody who does not name it.
    _held: Option<TcpSocket>,
}

impl Port {
    /// A free port.
    pub(crate) fn reserve() -> io::Result<Self> {
        let held = bound((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self {
            address: held.local_addr()?,
            _held: cfg!(target_os = "linux").then_some(held),
        })
    }

    /// A port that is free for UDP as well, and a UDP socket on it.
    pub(crate) async fn reserve_with_udp() -> io::Result<(Self, UdpSocket)> {
        let mut refused = None;
        for _ in 0..ATTEMPTS {
            let port = Self::reserve()?;
            match UdpSocket::bind(port.address).await {
                Ok(socket) => return Ok((port, socket)),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens, until what is returned is dropped.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        bound(self.address)?.listen(BACKLOG)
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_port_refuses_while_nobody_listens_and_can_be_listened_on_again_and_again() {
        let port = Port::reserve().unwrap();
        for _ in 0..3 {
            assert!(TcpStream::connect(port.address()).await.is_err());
            let listener = port.listen().unwrap();
            TcpStream::connect(port.address()).await.unwrap();
            drop(listener);
        }
        assert!(TcpStream::connect(port.address()).await.is_err());
    }
}
