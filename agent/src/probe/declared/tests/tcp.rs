use lab_parts::port::CLOSED;
use serde_json::json;

use super::*;

async fn connect(address: &str) -> Result<(), Unmet> {
    observe(json!({ "tcp": { "address": address } })).await
}

/// A name stands for its addresses, and the message has the one that failed.
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
