//! Each kind of probe on a server of its kind, and the file while it changes.

mod dns;
mod follow;
mod grpc;
mod http;
mod nodes;
mod prometheus;
mod tcp;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use health::failure::FailureClass;
use health::observation::{Failure, Observation};
use karmada_runtime::client::Addresses;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use super::network::Node;
use super::probe::Probe;
use super::round::run_once;
use super::unmet::Unmet;

/// Long enough for an exchange on a busy machine.
const AMPLE: Duration = Duration::from_secs(10);
/// The deadline of a round that is to miss it.
const SHORT: Duration = Duration::from_millis(300);
const PERIOD: Duration = Duration::from_secs(5);

/// A node where `localhost` has its address, and no other name has one.
fn node() -> Node {
    let addresses = Addresses::by(|name| {
        let known = name == "localhost";
        let found = known.then(|| [127, 0, 0, 1].into()).into_iter();
        std::future::ready(Ok(found.collect())).boxed()
    });
    Node::new(addresses, None, None)
}

/// Reads a probe as the file has it.
fn probe(value: Value) -> Probe {
    let probe: Probe = serde_json::from_value(value).unwrap();
    probe.kind().check().unwrap();
    probe
}

/// Runs a round with ample time.
async fn observe(value: Value) -> Result<(), Unmet> {
    run_once(&probe(value), &node(), PERIOD, AMPLE).await
}

/// Runs a round that is to be late.
async fn observe_shortly(value: Value) -> Result<(), Unmet> {
    run_once(&probe(value), &node(), PERIOD, SHORT).await
}

/// Asserts that a round has failed so, at this server, and that the kind knows the class.
fn assert_failed(outcome: &Result<(), Unmet>, class: &str, server: SocketAddr) {
    let Err(unmet) = outcome else {
        panic!("the round succeeds, and should fail as {class}");
    };
    let Observation::Failed(failure) = unmet.observation() else {
        panic!("{unmet:?}");
    };
    assert_eq!(failure.class.as_str(), class, "{unmet:?}");
    assert_eq!(failure, Failure::new(failure.class, server), "{unmet:?}");
}

/// Asserts that a round has observed nothing, for a reason with this part.
fn assert_unobserved(outcome: &Result<(), Unmet>, part: &str) {
    match outcome {
        Err(Unmet::Unobserved(reason)) => assert!(reason.contains(part), "{reason}"),
        other => panic!("{other:?}"),
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Starts a server that does this with each connection.
async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection));
        }
    });
    address
}

/// Starts a server over HTTP.
async fn website(router: Router) -> SocketAddr {
    let (listener, address) = listener().await;
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Keeps the connection open and says nothing.
async fn hang(connection: TcpStream) {
    std::future::pending::<()>().await;
    drop(connection);
}

/// The classes of every kind are ordered, and their names are there once: votes tell them by name.
#[test]
fn classes_are_ordered_by_severity() {
    use serde_json::json;
    for value in [
        json!({ "http": { "url": "http://localhost/" } }),
        json!({ "tcp": { "address": "localhost:1" } }),
        json!({ "grpc": { "address": "localhost:1" } }),
        json!({ "dns": { "name": "localhost" } }),
        json!({ "prometheus": { "url": "http://localhost", "query": "up", "holds": "value > 0" } }),
        json!({ "nodes": { "readyShare": 0.5 } }),
    ] {
        let probe = probe(value);
        let classes: Vec<FailureClass> = probe.kind().classes().to_vec();
        assert!(classes.is_sorted(), "{probe:?}");
        let mut names: Vec<_> = classes.iter().map(|class| class.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), classes.len(), "{probe:?}");
    }
}
