//! A relay in front of a server, which can become a black hole.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The most bytes that are passed on at once.
const CHUNK: usize = 16 * 1024;

/// A relay. Dropping it ends it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    silent: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Starts to relay connections to `server`.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), server).await
    }

    /// Starts to relay connections that are made to an address of this machine.
    pub async fn start_at(address: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (silent, is_silent) = watch::channel(false);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, is_silent.clone()));
            }
        });
        Ok(Self {
            address,
            silent,
            accepting,
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Relays nothing in either direction any longer, without closing a connection, or relays again.
    pub fn set_silent(&self, silent: bool) {
        self.silent.send_replace(silent);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Relays one connection until either side closes it.
async fn relay(client: TcpStream, server: SocketAddr, silent: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pass(from_client, to_server, silent.clone()) => {}
        () = pass(from_server, to_client, silent) => {}
    }
}

/// Passes on the bytes of one side, and holds them back while the relay is silent.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut silent: watch::Receiver<bool>) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if silent.wait_for(|silent| !silent).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Ample for a byte over loopback, on a busy machine too.
    const AMPLE: Duration = Duration::from_secs(30);

    /// A silent relay holds back the bytes of either side, and passes them on afterwards.
    #[tokio::test]
    async fn silence_holds_both_sides() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay::start(listener.local_addr().unwrap()).await.unwrap();
        let mut client = TcpStream::connect(relay.address()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        relay.set_silent(true);
        client.write_all(b"?").await.unwrap();
        server.write_all(b"!").await.unwrap();
        let a_moment = Duration::from_millis(200);
        assert!(timeout(a_moment, server.read_u8()).await.is_err());
        assert!(timeout(a_moment, client.read_u8()).await.is_err());
        relay.set_silent(false);
        assert_eq!(
            timeout(AMPLE, server.read_u8()).await.unwrap().unwrap(),
            b'?'
        );
        assert_eq!(
            timeout(AMPLE, client.read_u8()).await.unwrap().unwrap(),
            b'!'
        );
    }
}
