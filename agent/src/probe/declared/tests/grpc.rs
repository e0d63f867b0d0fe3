use std::convert::Infallible;
use std::fs;

use ::http::{HeaderMap, HeaderValue, Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lab_parts::tls::Authority;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::*;

/// What a server says of each service: a status in a message, or a code without one.
#[derive(Clone, Copy)]
enum Says {
    Status(u8),
    Code(&'static str),
}

/// Serves the health service on one connection: `shop` is as `says`, and no other is known.
async fn serve(connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, says: Says) {
    let service = service_fn(move |request: Request<Incoming>| async move {
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        assert_eq!(request.headers()["te"], "trailers");
        let message = request.into_body().collect().await.unwrap().to_bytes();
        let says = match &*message {
            [0, 0, 0, 0, 6, 0x0a, 4, b's', b'h', b'o', b'p'] => says,
            _ => Says::Code("5"),
        };
        let (body, code) = match says {
            Says::Status(status) => (vec![0, 0, 0, 0, 2, 8, status], "0"),
            Says::Code(code) => (Vec::new(), code),
        };
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(code));
        let body =
            Full::new(Bytes::from(body))
                .with_trailers(std::future::ready(Some(Ok::<_, Infallible>(trailers))));
        let response = Response::builder().header("content-type", "application/grpc");
        Ok::<_, Infallible>(response.body(body).unwrap())
    });
    let serving = http2::Builder::new(TokioExecutor::new());
    // The client closes as it likes.
    drop(
        serving
            .serve_connection(TokioIo::new(connection), service)
            .await,
    );
}

async fn saying(says: Says) -> SocketAddr {
    server(move |connection| serve(connection, says)).await
}

async fn check(server: SocketAddr, service: &str) -> Result<(), Unmet> {
    let address = server.to_string();
    observe(json!({ "grpc": { "address": address, "service": service } })).await
}

#[tokio::test]
async fn serving_succeeds() {
    let server = saying(Says::Status(1)).await;
    assert_eq!(check(server, "shop").await, Ok(()));
}

/// What the server says decides: its status, and its code where there is none.
#[tokio::test]
async fn anything_else_fails() {
    for (says, class) in [
        (Says::Status(2), "not-serving"),
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
    let server = saying(Says::Status(1)).await;
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
                serve(secured, Says::Status(1)).await;
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
