//! A proxy in front of an API that refuses requests on demand, for one client of several.

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use kube::Client;
use lab_parts::kubeconfig::{self, Access};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{control_plane::ControlPlane, scratch};

/// Larger than any object of a test.
const MOST: usize = 1 << 20;

/// A proxy with every right in its API. Dropping it ends it.
pub struct Refusals {
    /// The part of refused paths; empty while nothing is refused.
    refused: Arc<watch::Sender<&'static str>>,
    folder: TempDir,
    serving: JoinHandle<()>,
}

impl Refusals {
    /// Starts a proxy that refuses nothing yet.
    pub async fn before(api: &ControlPlane) -> Result<Self> {
        let refused = Arc::new(watch::Sender::new(""));
        let state = (api.client(), Arc::clone(&refused));
        let routes = Router::new().fallback(forward).with_state(state);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            // It never ends by itself.
            drop(axum::serve(listener, routes).await);
        });
        let proxy = Self {
            refused,
            folder: scratch::folder("proxy")?,
            serving,
        };
        kubeconfig::write(&proxy.kubeconfig(), &[&Access::open("proxied", address)])?;
        Ok(proxy)
    }

    /// Returns a kubeconfig that leads through the proxy.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Responds 403 to requests with `part` in their path, and ends open watches. `None` refuses
    /// nothing any more.
    pub fn refuse(&self, part: Option<&'static str>) {
        self.refused.send_replace(part.unwrap_or_default());
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn forward(
    State((client, refused)): State<(Client, Arc<watch::Sender<&'static str>>)>,
    request: Request,
) -> Response {
    let mut refused = refused.subscribe();
    let path = request.uri().path().to_owned();
    let concerns = move |part: &&str| !part.is_empty() && path.contains(part);
    if concerns(&refused.borrow()) {
        let status = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": "Forbidden", "message": "refused by the test", "code": 403 });
        let json = [(header::CONTENT_TYPE, "application/json")];
        return (StatusCode::FORBIDDEN, json, status.to_string()).into_response();
    }
    let until = async move { drop(refused.wait_for(concerns).await) };
    pass_on(&client, request).await.map(|body| {
        let body = body.into_data_stream();
        Body::from_stream(body.take_until(Box::pin(until)))
    })
}

/// Passes a request on, with the rights of `client`.
async fn pass_on(client: &Client, request: Request) -> Response {
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
