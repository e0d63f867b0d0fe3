//! Everything that a program asks of an API and is told, in the order in which it happened.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::ApiService;
use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;

use super::kinds::Side;
use super::program::Process;

/// The most requests that all programs may make in one instant. It takes some hundred to start, and to
/// move every ingress.
const MOST_AT_ONCE: usize = 2_000;

/// Something that happened on the way between a program and an API.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) process: Process,
    pub(crate) side: Side,
    /// The same for all that belongs to one request.
    pub(crate) request: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Asked {
        method: Method,
        /// With its query.
        path: String,
        body: Bytes,
    },
    /// The head of an answer; none: the connection was lost.
    Answered(Option<u16>),
    /// The whole body of an answer, or a piece of that of a watch.
    Told(Bytes),
    /// A watch ended, or was cut.
    Ended,
    /// The program stopped waiting for the answer, or does not listen to the watch any more.
    Left,
}

/// The record of one run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    entries: Vec<Entry>,
    requests: usize,
    /// The newest instant in which something was asked, and how often.
    instant: Option<(Instant, usize)>,
    /// The first request beyond the most that programs may make in an instant.
    too_many: Option<String>,
    /// Requests that are not answered yet.
    unanswered: usize,
    /// Writes that are under way and that nobody may wait for any more.
    late: usize,
}

impl Record {
    pub(crate) fn len(&self) -> usize {
        self.shared.lock().entries.len()
    }

    /// What happened, from the nth entry on.
    pub(crate) fn since(&self, nth: usize) -> Vec<Entry> {
        self.shared.lock().entries[nth..].to_vec()
    }

    /// A request that a program made without end and without a pause.
    pub(crate) fn without_pause(&self) -> Option<String> {
        self.shared.lock().too_many.clone()
    }

    /// Counts a request; false: there are too many in this instant.
    fn count(&self, method: &Method, path: &str) -> bool {
        let (mut shared, now) = (self.shared.lock(), Instant::now());
        let count = match shared.instant {
            Some((at, count)) if at == now => count + 1,
            _ => 1,
        };
        shared.instant = Some((now, count));
        if count > MOST_AT_ONCE {
            shared
                .too_many
                .get_or_insert_with(|| format!("{method} {path}"));
        }
        count <= MOST_AT_ONCE
    }

    /// Whether a program still waits for an answer, or a write is under way for which none waits.
    pub(crate) fn is_waiting(&self) -> bool {
        let shared = self.shared.lock();
        shared.unanswered + shared.late > 0
    }
}

/// An API as one process reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) inner: ApiService,
    pub(crate) record: Record,
    pub(crate) process: Process,
    pub(crate) side: Side,
    pub(crate) delays: Delays,
}

/// How late writes reach an API: each of these once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    waiting: Arc<Mutex<VecDeque<Duration>>>,
}

impl Delays {
    pub(crate) fn add(&self, delay: Duration) {
        self.waiting.lock().push_back(delay);
    }

    pub(crate) fn clear(&self) {
        self.waiting.lock().clear();
    }

    fn next(&self) -> Option<Duration> {
        self.waiting.lock().pop_front()
    }
}

/// A request that is under way, and says so when it is not any more.
#[derive(Debug)]
struct Exchange {
    record: Record,
    process: Process,
    side: Side,
    request: usize,
    is_answered: bool,
    is_over: bool,
}

impl Exchange {
    fn begin(recorded: &Recorded, what: What) -> Self {
        let request = {
            let mut shared = recorded.record.shared.lock();
            shared.requests += 1;
            shared.unanswered += 1;
            shared.requests
        };
        let exchange = Self {
            record: recorded.record.clone(),
            process: recorded.process,
            side: recorded.side,
            request,
            is_answered: false,
            is_over: false,
        };
        exchange.note(what);
        exchange
    }

    /// An answer came, or will not come any more.
    fn answered(&mut self) {
        if !self.is_answered {
            self.is_answered = true;
            self.record.shared.lock().unanswered -= 1;
        }
    }

    fn note(&self, what: What) {
        self.record.shared.lock().entries.push(Entry {
            at: Instant::now(),
            process: self.process,
            side: self.side,
            request: self.request,
            what,
        });
    }

    fn end(&mut self, what: What) {
        self.note(what);
        self.is_over = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.answered();
        if !self.is_over {
            self.note(What::Left);
        }
    }
}

impl Recorded {
    /// Whether a write may be stored when nobody knows of it any more. Not one of an ingress: if that
    /// is let go meanwhile, nobody looks at it again.
    fn may_be_late(&self, path: &str) -> bool {
        self.side == Side::Gateway || !path.contains("/multiclusteringresses/")
    }

    /// Sends a request; a late one goes on even when nobody waits for it any more.
    async fn send(mut self, request: Request<Body>) -> io::Result<Response<Body>> {
        let is_late = *request.method() != Method::GET && self.may_be_late(request.uri().path());
        let late = if is_late { self.delays.next() } else { None };
        let Some(late) = late else {
            return self.inner.call(request).await;
        };
        let shared = Arc::clone(&self.record.shared);
        shared.lock().late += 1;
        let sending = tokio::spawn(async move {
            tokio::time::sleep(late).await;
            let answer = self.inner.call(request).await;
            shared.lock().late -= 1;
            answer
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
        if !self.record.count(&method, &path) {
            return std::future::pending().await;
        }
        let asked = What::Asked {
            method,
            path,
            body: body.clone(),
        };
        let mut exchange = Exchange::begin(&self, asked);
        let answer = match self
            .send(Request::from_parts(parts, Body::from(body)))
            .await
        {
            Ok(answer) => answer,
            Err(error) => {
                exchange.end(What::Answered(None));
                return Err(error);
            }
        };
        exchange.answered();
        exchange.note(What::Answered(Some(answer.status().as_u16())));
        let (parts, body) = answer.into_parts();
        let body = if watches && parts.status.is_success() {
            watched(body, exchange)
        } else {
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            exchange.end(What::Told(body.clone()));
            Body::from(body)
        };
        Ok(Response::from_parts(parts, body))
    }
}

/// The lines of a watch, each noted when the program takes it.
fn watched(body: Body, exchange: Exchange) -> Body {
    let lines = futures::stream::unfold((body, exchange), |(mut body, mut exchange)| async move {
        if exchange.is_over {
            return None;
        }
        let piece = match body.frame().await {
            Some(Ok(frame)) => {
                let piece = frame.into_data().unwrap_or_default();
                exchange.note(What::Told(piece.clone()));
                Ok(piece)
            }
            Some(Err(error)) => {
                exchange.end(What::Ended);
                Err(error)
            }
            None => {
                exchange.end(What::Ended);
                return None;
            }
        };
        Some((piece, (body, exchange)))
    });
    Body::from_stream(lines)
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

/// An entry on one line.
pub(crate) fn shown(entry: &Entry) -> String {
    let Process {
        program,
        replica,
        life,
    } = entry.process;
    let what = match &entry.what {
        What::Asked { method, path, body } => {
            format!("{method} {path} {}", normal(path, body))
        }
        What::Answered(Some(status)) => format!("{status}"),
        What::Answered(None) => "connection lost".to_owned(),
        What::Told(bytes) => normal("", bytes),
        What::Ended => "ended".to_owned(),
        What::Left => "left".to_owned(),
    };
    let (side, request) = (entry.side, entry.request);
    format!(
        "{}-{replica}.{life} {side:?} {request}: {what}",
        program.name()
    )
}

/// What was said, but for what a clock or a dice says: when a lease was renewed or an Event
/// happened, and how a replica and an Event are called.
fn normal(path: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_dated = path.contains("/events") || text.contains("\"kind\":\"Event\"");
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(&text) else {
        return text.into_owned();
    };
    blank(&mut value, is_dated);
    value.to_string()
}

fn blank(value: &mut serde_json::Value, is_event: bool) {
    const CHANCE: [&str; 5] = [
        "renewTime",
        "acquireTime",
        "holderIdentity",
        "eventTime",
        "firstTimestamp",
    ];
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if CHANCE.contains(&key.as_str()) || is_event && key == "name" {
                    *value = serde_json::Value::Null;
                } else {
                    blank(value, is_event);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(|value| blank(value, is_event)),
        _ => {}
    }
}

/// The whole record, a line for each entry, with the virtual time of each since the first.
pub(crate) fn log(entries: &[Entry]) -> String {
    let begun = entries.first().map(|entry| entry.at);
    let mut log = String::new();
    for entry in entries {
        let at = begun
            .map(|begun| entry.at.duration_since(begun))
            .unwrap_or_default();
        log.extend([format!("{at:?} {}\n", shown(entry))]);
    }
    log
}
