//! The connections to an API.
//!
//! A server allows so many streams on an HTTP/2 connection (kube-apiserver 100), and a watch is one that stays open: on
//! one connection for everything, the watches of a hundred kinds leave none for the renewal of a lease. So each purpose
//! has connections of its own, and one more as soon as these are full:
//!
//! ```text
//! request → purpose → the first of its connections that has room, or a new one → stream
//! ```
//!
//! - `purpose` tells the purpose of a request,
//! - `group` has the connections of a purpose, opens them one at a time, and closes those that are idle,
//! - `connection` is one of them, with its streams,
//! - `metrics` shows how many there are of both.
//!
//! HTTP/1.1 has a connection for each request that is open, and needs none of this.

mod connection;
mod error;
mod group;
mod metrics;
mod purpose;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::uri::Scheme;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::Body;
use tower::Service;

use self::connection::Stream;
use self::error::SendError;
use self::group::{Group, Sent};
pub(crate) use self::metrics::CONNECTIONS;
use self::metrics::Counted;
use self::purpose::Purpose;
use super::error::ClientError;
use super::tls::{Versions, connector_of, tls_of};
use super::transport::Transport;

/// A service that sends requests to an API.
#[derive(Clone)]
pub(super) struct Connections(Arc<Api>);

struct Api {
    name: &'static str,
    http2: [Arc<Group>; Purpose::ALL.len()],
    http1: HttpClient<HttpsConnector<Transport>, Body>,
    /// True without TLS, with which alone HTTP/2 is agreed on.
    is_plain: bool,
    /// True once the server has chosen HTTP/1.1, until that fails: the one in its place may choose otherwise.
    chose_http1: AtomicBool,
}

impl Connections {
    /// Creates the connections to the server of `config`, which metrics call `name`. None is opened before it is needed.
    ///
    /// # Errors
    /// Fails if the credentials of `config` are invalid.
    pub(super) fn new(
        config: &Config,
        transport: &Transport,
        name: &'static str,
    ) -> Result<Self, ClientError> {
        let tls = tls_of(config)?;
        let [any, http1] = [Versions::Any, Versions::Http1]
            .map(|versions| connector_of(config, tls.clone(), transport.clone(), versions));
        let any = any?;
        let http2 = Purpose::ALL
            .map(|purpose| Group::new(any.clone(), config.cluster_url.clone(), name, purpose));
        let http1 = HttpClient::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .build(http1?);
        Ok(Self(Arc::new(Api {
            name,
            http2,
            http1,
            is_plain: config.cluster_url.scheme() == Some(&Scheme::HTTP),
            chose_http1: AtomicBool::new(false),
        })))
    }
}

impl Api {
    async fn send(&self, request: Request<Body>) -> Result<Response<OpenBody>, SendError> {
        let purpose = Purpose::of(request.method(), request.uri());
        let counted = CONNECTIONS.count_stream(self.name, purpose);
        let request = match self.send_over_http2(purpose, request).await? {
            Sent::Answered(response, stream) => {
                return Ok(response.map(|body| OpenBody::new(body, Some(stream), counted)));
            }
            Sent::NotHttp2(request) => request,
        };
        let response = self.http1.request(request).await;
        self.chose_http1.store(response.is_ok(), Ordering::Relaxed);
        Ok(response?.map(|body| OpenBody::new(body, None, counted)))
    }

    async fn send_over_http2(
        &self,
        purpose: Purpose,
        request: Request<Body>,
    ) -> Result<Sent, SendError> {
        if self.is_plain || self.chose_http1.load(Ordering::Relaxed) {
            return Ok(Sent::NotHttp2(request));
        }
        self.http2[purpose as usize].send(request).await
    }
}

impl Service<Request<Body>> for Connections {
    type Response = Response<OpenBody>;
    type Error = SendError;
    type Future = BoxFuture<'static, Result<Self::Response, SendError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let api = Arc::clone(&self.0);
        async move { api.send(request).await }.boxed()
    }
}

/// The body of a response. Its stream is free for another request once it is dropped.
pub(super) struct OpenBody {
    // Dropped in this order: the connection's task is to know that a stream has ended before another takes its place.
    body: Incoming,
    _stream: Option<Stream>,
    _counted: Counted,
}

impl OpenBody {
    fn new(body: Incoming, stream: Option<Stream>, counted: Counted) -> Self {
        Self {
            body,
            _stream: stream,
            _counted: counted,
        }
    }
}

impl http_body::Body for OpenBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
