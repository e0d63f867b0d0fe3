//! The server as a [`tower::Service`], for clients in process and for the socket.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::BoxError;

use crate::ApiServer;
use crate::response::Body;

/// Handles requests in process; see [`ApiServer::service`].
#[derive(Clone, Debug)]
pub struct ApiService {
    server: ApiServer,
}

impl ApiServer {
    /// Returns the server as a service. Every request gets a response, however malformed it is. An
    /// error is a lost connection, which only a [`Fault`](crate::Fault) causes.
    pub fn service(&self) -> ApiService {
        ApiService {
            server: self.clone(),
        }
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.server.clone();
        let (parts, body) = request.into_parts();
        let body = body.map_err(io::Error::other).boxed_unsync();
        Box::pin(async move { server.respond(parts, body).await })
    }
}
