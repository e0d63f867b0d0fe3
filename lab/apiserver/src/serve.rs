//! Serving over a socket.

use std::io;
use std::pin::pin;

use futures::FutureExt;
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::Service;

use crate::ApiServer;
use crate::error::ApiError;
use crate::response::failure;

/// The test of a request by its headers.
type Admit = fn(&HeaderMap) -> bool;

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
        self.serve_only(listener, shutdown, |_| true).await
    }

    /// Serves like [`Self::serve`], but refuses each request whose headers `admit` returns `false` for.
    ///
    /// # Errors
    /// Returns an error if the socket no longer accepts connections.
    pub async fn serve_only(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        admit: Admit,
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
                        connections.spawn(connection(self.clone(), stream, admit));
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

async fn connection(server: ApiServer, stream: TcpStream, admit: Admit) {
    // Watch lines are small and must not wait for Nagle's algorithm.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(async |request: Request<Incoming>| {
        if admit(request.headers()) {
            server.service().call(request).await
        } else {
            let why = "this server refuses requests of this host name or origin";
            let refused = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", why);
            Ok(failure(&refused))
        }
    });
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a connection ended early");
    }
}
