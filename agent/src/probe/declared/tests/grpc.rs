use std::fs;

use lab_parts::grpc::{Says, serve};
use lab_parts::tls::Authority;
use serde_json::json;

use super::*;

async fn saying(says: Says) -> SocketAddr {
    server(move |connection| serve(connection, says)).await
}

async fn check(server: SocketAddr, service: &str) -> Result<(), Unmet> {
    let address = server.to_string();
    observe(json!({ "grpc": { "address": address, "service": service } })).await
}

#[tokio::test]
async fn serving_succeeds() {
    let server = saying(Says::SERVING).await;
    assert_eq!(check(server, "shop").await, Ok(()));
}

/// The server's answer decides: its status, and its code where there is none.
#[tokio::test]
async fn anything_else_fails() {
    for (says, class) in [
        (Says::NOT_SERVING, "not-serving"),
        (Says::Status(0), "not-serving"),
        (Says::Status(3), "unknown-service"),
        (Says::Code("12"), "unimplemented"),
        (Says::Code("14"), "error-code"),
        // It says that all is well, and sends no message.
        (Says::Code("0"), "malformed"),
    ] {
        let server = saying(says).await;
        assert_failed(&check(server, "shop").await, class, server);
    }
    let server = saying(Says::SERVING).await;
    let outcome = check(server, "typo").await;
    assert_failed(&outcome, "unknown-service", server);
}

/// A server of something else has no code of gRPC, and the probe's own timeout is one: no client invents a code for them.
/// Case S7.
#[tokio::test]
async fn others_have_no_code() {
    let website = website(Router::new()).await;
    let outcome = check(website, "shop").await;
    let Err(Unmet::Failed { failure, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    let class = failure.class.as_str();
    assert!(["reset", "malformed"].contains(&class), "{failure}");
    let silent = server(hang).await;
    let grpc = json!({ "grpc": { "address": silent.to_string(), "service": "shop" } });
    assert_failed(&observe_shortly(grpc).await, "timeout", silent);
}

/// By TLS, and to a server that has it alone.
#[tokio::test]
async fn tls_is_spoken_with_authority() {
    let authority = Authority::generate();
    let acceptor = authority.acceptor(&["localhost"], &["h2"]);
    let server = server(move |connection| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(secured) = acceptor.accept(connection).await {
                serve(secured, Says::SERVING).await;
            }
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    fs::write(&ca, authority.pem()).unwrap();
    let address = format!("localhost:{}", server.port());
    let secured = json!({ "grpc": { "address": address, "service": "shop", "ca": ca } });
    assert_eq!(observe(secured).await, Ok(()));
    let plain = json!({ "grpc": { "address": address, "service": "shop" } });
    observe(plain).await.unwrap_err();
}
