//! Tests of the provider: its contract on a program in this process, on the example of the documentation and on any other;
//! and programs that misbehave.

mod answers;
#[cfg(feature = "provider-contract")]
mod at_url;
mod credentials;
mod in_process;
mod stage;
mod with_python;

use std::net::SocketAddr;

use axum::Router;
use axum::serve::Listener;
use karmada_runtime::client::{Server, Source, connect};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::fixtures::writer;
use crate::provider::contract;

const CONTROLLER: &str = "example.com/ours";

/// A server that ends when it is dropped.
struct Serving {
    address: SocketAddr,
    _task: JoinSet<()>,
}

impl Serving {
    /// Serves the routes by plain HTTP.
    async fn start(routes: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener.local_addr().unwrap(), listener, routes)
    }

    fn on(
        address: SocketAddr,
        listener: impl Listener<Addr: std::fmt::Debug>,
        routes: Router,
    ) -> Self {
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            address,
            _task: task,
        }
    }

    /// Returns the server, as flags name it.
    fn source(&self) -> Source {
        source(format!("http://{}", self.address))
    }
}

fn source(url: String) -> Source {
    Source {
        server: Some(Server {
            url,
            ..Server::default()
        }),
        ..Source::default()
    }
}

async fn client(source: &Source) -> Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    connect(source, "tests").await.unwrap()
}

/// Returns a provider that has not listed yet.
async fn provider(source: &Source) -> Webhook {
    Webhook::new(
        client(source).await,
        &writer(),
        &CONTROLLER.parse().unwrap(),
    )
}
