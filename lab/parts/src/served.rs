//! An embedded API on a socket, for programs that reach it by its address.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test that calls it fails by panicking"
)]

use std::fmt;
use std::future::pending;
use std::net::SocketAddr;

use embedded_apiserver::ApiServer;
use http::HeaderMap;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::port::ReservedPort;

/// An API that is served on a port of its own. Dropped, it is dead.
pub struct ServedApi {
    /// The server.
    pub server: ApiServer,
    port: ReservedPort,
    protocol: Protocol,
    serving: JoinHandle<()>,
}

/// How it is reached.
#[derive(Clone)]
enum Protocol {
    /// In plaintext, with headers that are admitted.
    Plain(fn(&HeaderMap) -> bool),
    /// By TLS, with so many streams on each connection of HTTP/2.
    Tls(TlsAcceptor, u32),
}

impl ServedApi {
    /// Serves the requests with headers that `admit` lets pass.
    pub fn start(server: ApiServer, admit: fn(&HeaderMap) -> bool) -> Self {
        Self::start_by(server, Protocol::Plain(admit))
    }

    /// Serves by TLS, on each connection of HTTP/2 so many `streams`.
    pub fn start_tls(server: ApiServer, tls: TlsAcceptor, streams: u32) -> Self {
        Self::start_by(server, Protocol::Tls(tls, streams))
    }

    fn start_by(server: ApiServer, protocol: Protocol) -> Self {
        let port = ReservedPort::reserve().unwrap();
        let serving = serve(&server, &port, protocol.clone());
        Self {
            server,
            port,
            protocol,
            serving,
        }
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Closes all connections. Stored objects stay.
    pub async fn stop(&mut self) {
        self.serving.abort();
        assert!((&mut self.serving).await.unwrap_err().is_cancelled());
    }

    /// Serves again at the same address.
    pub fn restart(&mut self) {
        self.serving = serve(&self.server, &self.port, self.protocol.clone());
    }

    /// Serves again at the same address, by TLS as in [`Self::start_tls`].
    pub fn restart_tls(&mut self, tls: TlsAcceptor, streams: u32) {
        self.protocol = Protocol::Tls(tls, streams);
        self.restart();
    }
}

impl Drop for ServedApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl fmt::Debug for ServedApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedApi")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

fn serve(server: &ApiServer, port: &ReservedPort, protocol: Protocol) -> JoinHandle<()> {
    let (server, listener) = (server.clone(), port.listen().unwrap());
    tokio::spawn(async move {
        let ended = match protocol {
            Protocol::Plain(admit) => server.serve_only(listener, pending(), admit).await,
            Protocol::Tls(tls, streams) => {
                server.serve_tls(listener, tls, streams, pending()).await
            }
        };
        ended.unwrap();
    })
}
