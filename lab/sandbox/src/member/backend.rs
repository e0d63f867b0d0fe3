//! A member's instance of the Service: over HTTP it says which member it is, if it can resolve a
//! name of its cluster as every request makes it do.

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

/// A backend, and its cluster's other pods. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Backend {
    pub(super) async fn start(lookup: Lookup) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let routes = Router::new().fallback(answer).with_state(lookup.clone());
        let mut tasks = JoinSet::new();
        let server = axum::serve(listener, routes).into_future();
        tasks.spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "A backend ended");
            }
        });
        tasks.spawn(lookup.pulse());
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }
}

async fn answer(State(lookup): State<Lookup>) -> Response {
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
