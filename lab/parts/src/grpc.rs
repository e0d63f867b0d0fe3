//! The health service of gRPC, `grpc.health.v1.Health`, by its bytes.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test that calls it fails by panicking"
)]

use std::convert::Infallible;
use std::future::ready;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

/// The answer of a server about a service.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    /// A status in a message.
    Status(u8),
    /// A code without a message.
    Code(&'static str),
}

impl Says {
    /// The service serves.
    pub const SERVING: Self = Self::Status(1);
    /// The service does not serve.
    pub const NOT_SERVING: Self = Self::Status(2);
}

/// Serves the health service on one connection: `shop` is as `says`, and no other is known.
pub async fn serve(connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, says: Says) {
    let service = service_fn(move |request: Request<Incoming>| async move {
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        assert_eq!(request.headers()["te"], "trailers");
        let message = request.into_body().collect().await?.to_bytes();
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
        let trailers = ready(Some(Ok::<_, Infallible>(trailers)));
        let body = Full::new(Bytes::from(body)).with_trailers(trailers);
        let response = Response::builder().header("content-type", "application/grpc");
        Ok::<_, hyper::Error>(response.body(body).unwrap())
    });
    let serving = http2::Builder::new(TokioExecutor::new());
    let served = serving.serve_connection(TokioIo::new(connection), service);
    // The client closes as it likes.
    drop(served.await);
}
