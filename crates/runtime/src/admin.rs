//! The admin server: `/livez` (and its older name `/healthz`), `/readyz`, `/metrics`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::error::BoxError;
use crate::readiness::Readiness;

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

/// Serves `routes` until `drained` is cancelled.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    drained: CancellationToken,
) -> Result<(), BoxError> {
    axum::serve(listener, routes)
        .with_graceful_shutdown(drained.cancelled_owned())
        .await
        .map_err(Into::into)
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

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn every_address_of_ipv6_includes_those_of_ipv4() {
        let listener = listen((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        // A host without IPv6 has no such address.
        let has_ipv6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let over_ipv6 = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await;
        assert_eq!(over_ipv6.is_ok(), has_ipv6);
    }

    #[test]
    fn without_ipv6_every_address_is_one_of_ipv4() {
        /// The error of `socket` on a host with `ipv6.disable=1` (Linux).
        const EAFNOSUPPORT: i32 = 97;
        let without = |error: fn() -> io::Error| {
            move |address: SocketAddr| match address {
                SocketAddr::V4(_) => Ok(address),
                SocketAddr::V6(_) => Err(error()),
            }
        };
        let unsupported = without(|| io::Error::from_raw_os_error(EAFNOSUPPORT));
        let any: SocketAddr = "[::]:8080".parse().unwrap();
        let bound = listen_by(unsupported, any).unwrap();
        assert_eq!(bound, "0.0.0.0:8080".parse().unwrap());
        // One address is what the user means.
        let one: SocketAddr = "[fd00::7]:8080".parse().unwrap();
        listen_by(unsupported, one).unwrap_err();
        let taken = without(|| io::ErrorKind::AddrInUse.into());
        let error = listen_by(taken, any).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
