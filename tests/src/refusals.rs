//! A proxy in front of an API that refuses requests on demand, for one client of several.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use kube::Client;
use tokio::sync::watch;

use crate::{
    control_plane::ControlPlane,
    proxy::{self, Proxy},
};

/// A proxy with every right in its API. Dropping it ends it.
pub struct Refusals {
    /// The part of refused paths; empty while nothing is refused.
    refused: Arc<watch::Sender<&'static str>>,
    proxy: Proxy,
}

impl Refusals {
    /// Starts a proxy that refuses nothing yet.
    pub async fn before(api: &ControlPlane) -> Result<Self> {
        let refused = Arc::new(watch::Sender::new(""));
        let state = (api.client(), Arc::clone(&refused));
        let routes = Router::new().fallback(forward).with_state(state);
        let proxy = Proxy::start(routes).await?;
        Ok(Self { refused, proxy })
    }

    /// Returns a kubeconfig that leads through the proxy.
    pub fn kubeconfig(&self) -> PathBuf {
        self.proxy.kubeconfig()
    }

    /// Responds 403 to requests with `part` in their path, and ends open watches. `None` refuses
    /// nothing any more.
    pub fn refuse(&self, part: Option<&'static str>) {
        self.refused.send_replace(part.unwrap_or_default());
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
    proxy::forward(&client, request).await.map(|body| {
        let body = body.into_data_stream();
        Body::from_stream(body.take_until(Box::pin(until)))
    })
}
