//! A proxy in front of an API, for one client of several.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use kube::Client;
use lab_parts::kubeconfig::{self, Access};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::scratch;

/// Larger than any object of a test.
const MOST: usize = 1 << 20;

/// A proxy that lets everybody in. Dropping it ends it.
pub(crate) struct Proxy {
    address: SocketAddr,
    folder: TempDir,
    serving: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy that treats requests so.
    pub(crate) async fn start(routes: Router) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            // It never ends by itself.
            drop(axum::serve(listener, routes).await);
        });
        let folder = scratch::folder("proxy")?;
        let path = folder.path().join("kubeconfig");
        kubeconfig::write(&path, &[&Access::open("proxied", address)])?;
        Ok(Self {
            address,
            folder,
            serving,
        })
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a kubeconfig that leads through it.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes a request on, with the rights of `client`.
pub(crate) async fn forward(client: &Client, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    // The client sets its own for the API.
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::AUTHORIZATION);
    let Ok(body) = to_bytes(body, MOST).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    match client.send(Request::from_parts(parts, body.into())).await {
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
