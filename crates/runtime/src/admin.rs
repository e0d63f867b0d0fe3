//! The admin server: `/livez` (and its older name `/healthz`), `/readyz`, `/metrics`.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics::{Format, Registry};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::error::{BoxError, Chain};
use crate::readiness::Readiness;

/// The most connections at once. Usual are one each of the kubelet, a scraper and, on an agent, its leader.
/// Beyond that the oldest one gives way.
const MOST_CONNECTIONS: usize = 64;
/// The time for the head of a request, from the start of the connection or the end of the last response.
/// An agent's leader closes its idle connections sooner.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The largest head of a request, in bytes: hyper's least.
const LARGEST_HEAD: usize = 8192;
/// The pause after a failure to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Returns the routes common to all programs.
pub(crate) fn routes(readiness: Readiness, registry: Registry) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(metrics).with_state(Arc::new(registry)))
}

/// The connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens on `address`. Every address of IPv6 includes those of IPv4 and, on a host without IPv6, is
/// every address of IPv4.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    listen_by(bind, address)
}

fn listen_by<L>(bind: impl Fn(SocketAddr) -> io::Result<L>, address: SocketAddr) -> io::Result<L> {
    match bind(address) {
        // Another server's port is no lack of IPv6: to share it would leave half of the clients to each.
        Err(error)
            if address.ip() == Ipv6Addr::UNSPECIFIED
                && error.kind() != io::ErrorKind::AddrInUse =>
        {
            bind((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        bound => bound,
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restarted program must not wait for connections of the one before to time out.
    socket.set_reuseaddr(true)?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // Otherwise the sysctl net.ipv6.bindv6only decides whether IPv4 is included.
        SockRef::from(&socket).set_only_v6(false)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The address of the client of a request, and the one that it was sent to; an extension of every request.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The client's address.
    pub from: IpAddr,
    /// The address that it connected to; `None` if the connection is gone already.
    pub to: Option<IpAddr>,
}

/// Serves `routes` until `drained` is cancelled.
///
/// Anyone who reaches the port can connect, so everything that they can hold is bounded: the number of connections,
/// the time without a whole request, and the size of its head.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    drained: CancellationToken,
) -> Result<(), BoxError> {
    let mut connections = JoinSet::new();
    // The oldest first.
    let mut handles: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let (stream, from) = tokio::select! {
            biased;
            () = drained.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {
                handles.retain(|handle| !handle.is_finished());
                continue;
            }
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // A connection that ended before it was accepted, or no free file descriptor.
                    tracing::debug!(error = %error, "Could not accept a connection");
                    sleep(ACCEPT_RETRY).await;
                    continue;
                }
            },
        };
        // Idle connections must not keep out the leader or the kubelet, whose requests take no time.
        if handles.len() >= MOST_CONNECTIONS
            && let Some(oldest) = handles.pop_front()
        {
            oldest.abort();
        }
        let caller = Caller {
            from: from.ip().to_canonical(),
            to: stream.local_addr().ok().map(|to| to.ip().to_canonical()),
        };
        let connection = connection(stream, caller, routes.clone(), drained.clone());
        handles.push_back(connections.spawn(connection));
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Serves one connection until the client closes it or leaves it idle, or until `drained` is cancelled.
async fn connection(stream: TcpStream, caller: Caller, routes: Router, drained: CancellationToken) {
    let routes = routes.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller);
        request
    });
    // Responses are small; an error only means that they may be a little later.
    drop(stream.set_nodelay(true));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_LIMIT)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = drained.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %Chain(&error), "A connection failed");
    }
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let closed = readiness.closed();
    if closed.is_empty() {
        "ok\n".into_response()
    } else {
        let waiting = format!("waiting for: {}\n", closed.join(", "));
        (StatusCode::SERVICE_UNAVAILABLE, waiting).into_response()
    }
}

async fn metrics(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    let format = Format::asked_for(accepted.unwrap_or_default());
    match format.encode(&registry) {
        Ok(text) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests;
