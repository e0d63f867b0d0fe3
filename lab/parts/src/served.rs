//! An embedded API on a socket, for programs that reach it by its address.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test that calls it fails by panicking"
)]

use std::future::pending;
use std::net::SocketAddr;

use embedded_apiserver::ApiServer;
use http::HeaderMap;
use tokio::task::JoinHandle;

use crate::port::ReservedPort;

/// An API that is served on a port of its own. Dropped, it is dead.
#[derive(Debug)]
pub struct ServedApi {
    /// The server.
    pub server: ApiServer,
    port: ReservedPort,
    admit: fn(&HeaderMap) -> bool,
    serving: JoinHandle<()>,
}

impl ServedApi {
    /// Serves the requests with headers that `admit` lets pass.
    pub fn start(server: ApiServer, admit: fn(&HeaderMap) -> bool) -> Self {
        let port = ReservedPort::reserve().unwrap();
        let serving = serve(&server, &port, admit);
        Self {
            server,
            port,
            admit,
            serving,
        }
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Closes all connections. What is stored stays.
    pub async fn stop(&mut self) {
        self.serving.abort();
        assert!((&mut self.serving).await.unwrap_err().is_cancelled());
    }

    /// Serves again at the same address.
    pub fn restart(&mut self) {
        self.serving = serve(&self.server, &self.port, self.admit);
    }
}

impl Drop for ServedApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn serve(server: &ApiServer, port: &ReservedPort, admit: fn(&HeaderMap) -> bool) -> JoinHandle<()> {
    let (server, listener) = (server.clone(), port.listen().unwrap());
    tokio::spawn(async move {
        server.serve_only(listener, pending(), admit).await.unwrap();
    })
}
