//! Serving over a socket.

use std::io;
use std::pin::pin;

use futures::FutureExt;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::ApiServer;

impl ApiServer {
    /// Serves HTTP/1.1 on a socket until `shutdown`, and then closes all connections. The server
    /// has neither encryption nor authentication: bind it to loopback.
    ///
    /// # Errors
    /// Returns an error if the socket no longer accepts connections.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown.fuse());
        loop {
            tokio::select! {
                // Shutdown first: a steady stream of connections must not delay it.
                biased;
                () = &mut shutdown => {
                    connections.shutdown().await;
                    return Ok(());
                }
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) if !self.faults().refuses_connections() => {
                        connections.spawn(connection(self.clone(), stream));
                    }
                    // A dropped stream is closed: the fault refuses connections.
                    Ok(_) => {}
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => return Err(error),
                },
            }
        }
    }
}

/// Returns `true` for errors of a client that was gone before its connection was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

async fn connection(server: ApiServer, stream: TcpStream) {
    // Watch lines are small and must not wait for Nagle's algorithm.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(server.service()),
        );
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a connection ended early");
    }
}
