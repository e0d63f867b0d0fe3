//! The server on a socket.

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
    /// Answers HTTP/1.1 on a socket until `shutdown`, and then closes what is open. There is neither
    /// encryption nor authentication: bind it to loopback.
    ///
    /// # Errors
    /// When the socket does not accept any more.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown.fuse());
        loop {
            tokio::select! {
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
                    Ok(_) => {}
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => return Err(error),
                },
            }
        }
    }
}

/// A client that is gone before it is accepted.
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
    // Watch lines are small and wanted at once.
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
