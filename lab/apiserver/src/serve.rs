//! Serving over a socket.

use std::io;
use std::pin::pin;

use futures::FutureExt;
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
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

    /// Serves like [`Self::serve`], but refuses each request if `admit` returns `false` for its headers.
    ///
    /// # Errors
    /// Returns an error if the socket no longer accepts connections.
    pub async fn serve_only(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        admit: Admit,
    ) -> io::Result<()> {
        self.accept(listener, shutdown, |stream| {
            serve_http1(self.clone(), stream, admit)
        })
        .await
    }

    /// Serves on a socket by TLS until `shutdown`, and then closes all connections. A client that agrees to HTTP/2 may have
    /// `streams` open at once on each connection; kube-apiserver allows 100 (`--http2-max-streams-per-connection`).
    ///
    /// # Errors
    /// Returns an error if the socket no longer accepts connections.
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        tls: TlsAcceptor,
        streams: u32,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.accept(listener, shutdown, |stream| {
            serve_by_tls(self.clone(), stream, tls.clone(), streams)
        })
        .await
    }

    async fn accept<F>(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        serve: impl Fn(TcpStream) -> F,
    ) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
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
                        // Watch lines are small and must not wait for Nagle's algorithm.
                        if stream.set_nodelay(true).is_ok() {
                            connections.spawn(serve(stream));
                        }
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

async fn serve_http1(server: ApiServer, stream: TcpStream, admit: Admit) {
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
    note_end(ended.await);
}

async fn serve_by_tls(server: ApiServer, stream: TcpStream, tls: TlsAcceptor, streams: u32) {
    let stream = match tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "a client and its server do not agree on TLS"),
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let (stream, service) = (
        TokioIo::new(stream),
        TowerToHyperService::new(server.service()),
    );
    if is_http2 {
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams);
        note_end(http2.serve_connection(stream, service).await);
    } else {
        let mut http1 = http1::Builder::new();
        http1.timer(TokioTimer::new());
        note_end(http1.serve_connection(stream, service).await);
    }
}

fn note_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
