//! A relay in front of a server, which can become a black hole.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// A relay. Dropping it ends it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    silent: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Starts to relay connections to `server`.
    pub async fn start(server: SocketAddr) -> Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), server).await
    }

    /// Starts to relay connections that are made to an address of this machine.
    pub async fn start_at(address: SocketAddr, server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.context("cannot start a relay")?;
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

    /// Relays nothing any longer, without closing a connection, or relays again.
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
async fn relay(client: TcpStream, server: SocketAddr, mut silent: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
            if silent.wait_for(|silent| !silent).await.is_err() {
                return;
            }
            if to_server.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = requests => {}
        _ = copy(&mut from_server, &mut to_client) => {}
    }
}
