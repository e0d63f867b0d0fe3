//! The backend of a member cluster: an HTTP server that responds with the name of its cluster.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use axum::Router;
use tokio::{net::TcpListener, sync::oneshot};

/// A running backend. Dropping it closes its port and its idle connections.
#[derive(Debug)]
pub struct HttpBackend {
    _running: oneshot::Sender<()>,
}

impl HttpBackend {
    /// Serves `address`. The response to every request is 200 with the cluster's name.
    pub async fn start(address: SocketAddr, cluster: &str) -> Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("the backend of {cluster} cannot listen on {address}"))?;
        let cluster = cluster.to_owned();
        let router = Router::new().fallback(async move || cluster);
        let (running, stopped) = oneshot::channel::<()>();
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(async move { drop(stopped.await) });
        tokio::spawn(server.into_future());
        Ok(Self { _running: running })
    }
}
