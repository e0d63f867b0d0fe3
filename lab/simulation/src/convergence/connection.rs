//! The connections of the programs to the APIs: each request is recorded, and a write may come late.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiService, Body};
use futures::TryStreamExt;
use http::{Method, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;

use super::kinds::Side;
use super::model;
use super::program::{CONTROLLER, Process};
use super::record::{Entry, Message, Record};
use crate::harness::access::USER_AGENT;

/// The connection of one process to an API.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) inner: ApiService,
    pub(crate) record: Record,
    pub(crate) process: Process,
    pub(crate) side: Side,
    pub(crate) delays: Delays,
}

/// Delays of future writes, each of one write. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    waiting: Arc<Mutex<VecDeque<Duration>>>,
    hits: Arc<AtomicU64>,
}

impl Delays {
    pub(crate) fn add(&self, delay: Duration) {
        self.waiting.lock().push_back(delay);
    }

    pub(crate) fn clear(&self) {
        self.waiting.lock().clear();
    }

    fn next(&self) -> Option<Duration> {
        let delay = self.waiting.lock().pop_front()?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(delay)
    }

    /// Returns the number of writes that were delayed.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

/// A request in flight, which records its end when it is dropped.
#[derive(Debug)]
struct Exchange {
    record: Record,
    process: Process,
    side: Side,
    request: usize,
    has_response: bool,
    is_over: bool,
}

impl Exchange {
    fn begin(recorded: &Recorded, message: Message) -> Self {
        let request = {
            let mut shared = recorded.record.shared.lock();
            shared.requests += 1;
            shared.pending += 1;
            shared.requests
        };
        let exchange = Self {
            record: recorded.record.clone(),
            process: recorded.process,
            side: recorded.side,
            request,
            has_response: false,
            is_over: false,
        };
        exchange.record(message);
        exchange
    }

    /// Marks the response as arrived, or as lost.
    fn response_arrived(&mut self) {
        if !self.has_response {
            self.has_response = true;
            self.record.shared.lock().pending -= 1;
        }
    }

    fn record(&self, message: Message) {
        self.record.shared.lock().entries.push(Entry {
            at: Instant::now(),
            process: self.process,
            side: self.side,
            request: self.request,
            message,
        });
    }

    fn end(&mut self, message: Message) {
        self.record(message);
        self.is_over = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.response_arrived();
        if !self.is_over {
            self.record(Message::Abandoned);
        }
    }
}

impl Recorded {
    /// Returns `true` if a late write must not be stored: one of the status of an ingress without our
    /// finalizer. No controller reconciles such an ingress again, so nothing would undo the write;
    /// docs/failures.md names this exception.
    async fn is_released(&mut self, path: &str) -> io::Result<bool> {
        let ingress = path.strip_suffix("/status");
        let Some(ingress) = ingress.filter(|path| path.contains("/multiclusteringresses/")) else {
            return Ok(false);
        };
        let request = Request::get(ingress)
            // Faults are limited to the user agents of the controllers.
            .header(header::USER_AGENT, USER_AGENT)
            .body(Full::<Bytes>::default());
        let response = self.inner.call(request.map_err(io::Error::other)?).await?;
        let body = response.into_body().collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        let ingress = serde_json::from_slice(&body)?;
        Ok(!model::carries(&ingress, CONTROLLER))
    }

    /// Sends a request. A delayed one is sent even if the program has abandoned it.
    async fn send(mut self, request: Request<Full<Bytes>>) -> io::Result<Response<Body>> {
        let late = match *request.method() {
            Method::GET => None,
            _ => self.delays.next(),
        };
        let Some(late) = late else {
            return self.inner.call(request).await;
        };
        let shared = Arc::clone(&self.record.shared);
        shared.lock().late += 1;
        // A task of its own outlives this future, which an abandoning program drops.
        let sending = tokio::spawn(async move {
            tokio::time::sleep(late).await;
            let response = match self.is_released(request.uri().path()).await {
                Ok(false) => self.inner.call(request).await,
                Ok(true) => Err(io::ErrorKind::ConnectionReset.into()),
                Err(error) => Err(error),
            };
            shared.lock().late -= 1;
            response
        });
        sending.await.map_err(io::Error::other)?
    }

    async fn exchange(self, request: Request<kube::client::Body>) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let path = parts
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default();
        let watches = path.contains("watch=true");
        let method = parts.method.clone();
        let line = format!("{method} {path}");
        if !self.record.admits(&line) {
            return std::future::pending().await;
        }
        let message = Message::Request {
            method,
            path,
            body: body.clone(),
        };
        let mut exchange = Exchange::begin(&self, message);
        let response = match self.send(Request::from_parts(parts, Full::new(body))).await {
            Ok(response) => response,
            Err(error) => {
                exchange.end(Message::Response(None));
                return Err(error);
            }
        };
        exchange.response_arrived();
        exchange.record(Message::Response(Some(response.status().as_u16())));
        let (parts, body) = response.into_parts();
        let body = if watches && parts.status.is_success() {
            watched(body, exchange)
        } else {
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            exchange.end(Message::Body(body.clone()));
            let body = Full::new(body).map_err(|never| match never {});
            body.boxed_unsync()
        };
        Ok(Response::from_parts(parts, body))
    }
}

/// Returns the frames of a watch, each recorded when the program takes it.
fn watched(body: Body, exchange: Exchange) -> Body {
    let lines = futures::stream::unfold((body, exchange), |(mut body, mut exchange)| async move {
        if exchange.is_over {
            return None;
        }
        let piece = match body.frame().await {
            Some(Ok(frame)) => {
                let piece = frame.into_data().unwrap_or_default();
                exchange.record(Message::Body(piece.clone()));
                Ok(piece)
            }
            Some(Err(error)) => {
                exchange.end(Message::Ended);
                Err(error)
            }
            None => {
                exchange.end(Message::Ended);
                return None;
            }
        };
        Some((piece, (body, exchange)))
    });
    StreamBody::new(lines.map_ok(Frame::data)).boxed_unsync()
}

impl Service<Request<kube::client::Body>> for Recorded {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.clone().exchange(request))
    }
}
