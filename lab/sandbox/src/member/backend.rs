//! A member's instances of the two websites, each an HTTP server that returns the member's name: that of the shop
//! if it can resolve a name of its cluster, which it does for each request; that of the store, with its version,
//! if its pods are ready. Both respond to a health check, whatever else is wrong.

use std::future::IntoFuture;
use std::io;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use lab_parts::relay::Relay;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::lookup::Lookup;
use crate::member_controllers::ReadyImage;
use crate::network::HEALTHZ;
use crate::rollout::version;

/// A backend of a cluster, and its companions. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Backend {
    /// The way to it.
    pub(super) relay: Relay,
    tasks: JoinSet<()>,
}

impl Backend {
    /// Starts that of the shop, and the cluster's other pods.
    pub(super) async fn of_shop(lookup: Lookup) -> io::Result<Self> {
        let routes = Router::new().fallback(shop).with_state(lookup.clone());
        let mut backend = Self::start(routes).await?;
        backend.tasks.spawn(lookup.repeat());
        Ok(backend)
    }

    /// Starts that of the store.
    pub(super) async fn of_store(
        cluster: &str,
        ready: watch::Receiver<ReadyImage>,
    ) -> io::Result<Self> {
        let cluster = cluster.to_owned();
        let routes =
            Router::new().fallback(async move || store(&cluster, ready.borrow().as_deref()));
        Self::start(routes).await
    }

    async fn start(routes: Router) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let relay = Relay::start(listener.local_addr()?).await?;
        let routes = routes.route(HEALTHZ, get(async || "ok\n"));
        let mut tasks = JoinSet::new();
        let server = axum::serve(listener, routes).into_future();
        tasks.spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "A backend ended");
            }
        });
        Ok(Self { relay, tasks })
    }
}

async fn shop(State(lookup): State<Lookup>) -> Response {
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

fn store(cluster: &str, ready: Option<&str>) -> Response {
    match ready {
        Some(image) => format!("{cluster} {}\n", version(image)).into_response(),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("no pod of {cluster} is ready\n"),
        )
            .into_response(),
    }
}
