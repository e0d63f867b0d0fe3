//! The admin server: `/livez` (and its older name `/healthz`), `/readyz`, `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
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
