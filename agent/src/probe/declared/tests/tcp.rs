use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab_parts::port::CLOSED;
use serde_json::json;

use super::*;

async fn connect(address: &str) -> Result<(), Unmet> {
    observe(json!({ "tcp": { "address": address } })).await
}

/// A name stands for its addresses, and the message has the one that failed. While the port listens, the kernel accepts,
/// although the program does not. Case S9.
#[tokio::test]
async fn listening_port_succeeds() {
    let (listener, address) = listener().await;
    connect(&address.to_string()).await.unwrap();
    let named = format!("localhost:{}", address.port());
    connect(&named).await.unwrap();
    drop(listener);
    assert_failed(&connect(&named).await, "refused", address);
}

#[tokio::test]
async fn closed_port_is_refused() {
    let outcome = connect(&CLOSED.to_string()).await;
    assert_failed(&outcome, "refused", CLOSED);
}

#[tokio::test]
async fn unknown_name_has_no_address() {
    let outcome = connect("nowhere.invalid:80").await;
    let Err(Unmet::Failed { failure, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.to_string(), "no-address");
}

/// A name that leads to the credentials of the node is asked by nobody.
#[tokio::test]
async fn metadata_service_is_not_asked() {
    let mut node = node();
    node.addresses =
        Addresses::by(|_| std::future::ready(Ok(vec![[169, 254, 169, 254].into()])).boxed());
    let probe = probe(json!({ "tcp": { "address": "innocent.example:80" } }));
    let outcome = run_once(&probe, &node, PERIOD, AMPLE).await;
    assert_unobserved(&outcome, "metadata service");
}

/// A name is looked up now and then, and at once when nobody answers at its address: it may have moved.
#[tokio::test]
async fn moved_name_is_found() {
    let (first, address) = listener().await;
    let moved = SocketAddr::from(([127, 0, 0, 2], address.port()));
    let lookups = Arc::<AtomicUsize>::default();
    let (count, mut node) = (Arc::clone(&lookups), node());
    node.addresses = Addresses::by(move |_| {
        let ip = match count.fetch_add(1, Ordering::Relaxed) {
            0 => address.ip(),
            _ => moved.ip(),
        };
        std::future::ready(Ok(vec![ip])).boxed()
    });
    let name = format!("registry.example:{}", address.port());
    let probe = probe(json!({ "tcp": { "address": name } }));
    for _ in 0..3 {
        let outcome = run_once(&probe, &node, PERIOD, AMPLE).await;
        assert_eq!(outcome, Ok(()));
    }
    assert_eq!(lookups.load(Ordering::Relaxed), 1);
    drop(first);
    let _second = TcpListener::bind(moved).await.unwrap();
    let outcome = run_once(&probe, &node, PERIOD, AMPLE).await;
    assert_failed(&outcome, "refused", address);
    let outcome = run_once(&probe, &node, PERIOD, AMPLE).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(lookups.load(Ordering::Relaxed), 2);
}
