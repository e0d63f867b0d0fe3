//! The backend of a member cluster: an HTTP server that responds with the name of its cluster.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use axum::{Router, response::IntoResponse, routing::get};
use http::{HeaderName, StatusCode};
use tokio::{net::TcpListener, sync::oneshot, time::sleep};

use crate::coredns::{PROBE, query};

/// The header of every response with the name of the cluster.
pub const CLUSTER: HeaderName = HeaderName::from_static("x-cluster");

/// The path of requests whose response takes [`HELD`].
pub const HELD_PATH: &str = "/held";

/// The time that such a response takes.
pub const HELD: Duration = Duration::from_secs(3);

/// The body of a response whose request needed a name that does not resolve.
pub const UNRESOLVED: &str = "a name does not resolve";

/// The number of queries after which a name without a response does not resolve: glibc's `attempts`, and
/// one more for a busy machine.
const ATTEMPTS: u32 = 3;

/// A running backend. Dropping it closes its port and its idle connections.
#[derive(Debug)]
pub struct HttpBackend {
    _running: oneshot::Sender<()>,
}

impl HttpBackend {
    /// Serves `address`. The response to every request is 200 with the cluster's name.
    pub async fn start(address: SocketAddr, cluster: &str) -> Result<Self> {
        Self::serve(address, cluster, None).await
    }

    /// Serves `address` and resolves a name with the server `dns` for every request, as a program
    /// does that calls another Service. If that fails, the response is 503.
    pub async fn resolving(address: SocketAddr, cluster: &str, dns: SocketAddr) -> Result<Self> {
        Self::serve(address, cluster, Some(dns)).await
    }

    async fn serve(address: SocketAddr, cluster: &str, dns: Option<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("the backend of {cluster} cannot listen on {address}"))?;
        let cluster = cluster.to_owned();
        let respond = async move || {
            let body = match dns {
                Some(dns) if !resolves(dns).await => {
                    (StatusCode::SERVICE_UNAVAILABLE, UNRESOLVED.to_owned())
                }
                _ => (StatusCode::OK, cluster.clone()),
            };
            ([(CLUSTER, cluster)], body).into_response()
        };
        let later = respond.clone();
        let held = async move || {
            sleep(HELD).await;
            later().await
        };
        let router = Router::new().route(HELD_PATH, get(held)).fallback(respond);
        let (running, stopped) = oneshot::channel::<()>();
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(async move { drop(stopped.await) });
        tokio::spawn(server.into_future());
        Ok(Self { _running: running })
    }
}

/// Resolves a name of the cluster, as glibc does: a lost query is repeated, a refused one is not.
async fn resolves(dns: SocketAddr) -> bool {
    for _ in 0..ATTEMPTS {
        match query(dns, PROBE).await {
            Ok(response) => return !response.addresses.is_empty(),
            Err(error) if error.is::<std::io::Error>() => return false,
            Err(_) => {}
        }
    }
    false
}
