//! A member's instance of the Service: an HTTP server that returns the member's name, if it can
//! resolve a name of its cluster, which it does for each request.

use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::lookup::Lookup;

/// The backend of a cluster, and its other pods. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Backend {
    pub(super) async fn start(lookup: Lookup) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let routes = Router::new().fallback(respond).with_state(lookup.clone());
        let mut tasks = JoinSet::new();
        let server = axum::serve(listener, routes).into_future();
        tasks.spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "A backend ended");
            }
        });
        tasks.spawn(lookup.repeat());
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }
}

async fn respond(State(lookup): State<Lookup>) -> Response {
    let cluster = &lookup.cluster;
    match lookup.resolve().await {
        Ok(()) => format!("{cluster}\n").into_response(),
        Err(failure) => (
            StatusCode::BAD_GATEWAY,
            format!("{cluster} cannot resolve the name it needs: {failure}\n"),
        )
            .into_response(),
    }
}
