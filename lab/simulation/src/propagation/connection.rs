//! The connections of the programs to the APIs: each request is logged, and a program may die at a write.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use embedded_apiserver::{ApiService, Body};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use karmada_runtime::client::{self, ClientError};
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;

use super::role::Role;
use crate::harness::Log;
use crate::harness::pace::Pace;

/// The name of the fleet's API.
pub(crate) const FLEET: &str = "fleet";

/// A message takes less time than this.
const LATENCY_MILLIS: u64 = 20;

/// The requests of all programs. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    begun: Instant,
    shared: Arc<Mutex<Requests>>,
}

#[derive(Debug, Default)]
struct Requests {
    log: Vec<String>,
    count: u64,
    writes: Vec<String>,
    pace: Pace,
    /// The number of writes without a response.
    pending: usize,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            shared: Arc::default(),
        }
    }

    /// Adds a line to the log.
    pub(crate) fn note(&self, line: &str) {
        let at = self.begun.elapsed().as_millis();
        self.shared.lock().log.push(format!("{at} ms: {line}"));
    }

    pub(crate) fn requests(&self) -> u64 {
        self.shared.lock().count
    }

    /// Returns the writes from the `nth` on, each by its method and path.
    pub(crate) fn writes_since(&self, nth: usize) -> Vec<String> {
        self.shared.lock().writes[nth..].to_vec()
    }

    pub(crate) fn writes(&self) -> usize {
        self.shared.lock().writes.len()
    }

    /// Returns `true` while a write is in flight.
    pub(crate) fn is_waiting(&self) -> bool {
        self.shared.lock().pending > 0
    }

    /// Returns a request that exceeded the limit of one instant.
    pub(crate) fn without_pause(&self) -> Option<String> {
        self.shared.lock().pace.exceeded()
    }

    /// Counts a request. Returns `false` if this instant has too many.
    fn count(&self, line: &str) -> bool {
        let mut shared = self.shared.lock();
        shared.count += 1;
        shared.pace.admits(line)
    }
}

impl Log for Traffic {
    /// Has the response to each request but watches.
    fn text(&self) -> String {
        self.shared.lock().log.join("\n")
    }
}

/// A write in flight.
struct Pending(Traffic);

impl Pending {
    fn begin(traffic: &Traffic, line: &str) -> Self {
        let mut shared = traffic.shared.lock();
        shared.pending += 1;
        shared.writes.push(line.to_owned());
        Self(traffic.clone())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.shared.lock().pending -= 1;
    }
}

/// The fate of one process.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// The number of writes until it dies, and `true` if the last one is stored.
    crash: Option<(u8, bool)>,
    is_dead: bool,
}

/// The fate of one process, which its connections share.
pub(crate) type SharedFate = Arc<Mutex<Fate>>;

impl Fate {
    /// Lets the process die at a write.
    pub(crate) fn crash(&mut self, write: u8, stored: bool) {
        self.crash = Some((write, stored));
    }

    /// Lets the process live on.
    pub(crate) fn spare(&mut self) {
        self.crash = None;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// Counts a write. Returns, if it is the last, `true` if it is still stored.
    fn count(&mut self) -> Option<bool> {
        let (left, stored) = self.crash.take()?;
        if let Some(left) = left.checked_sub(1) {
            self.crash = Some((left, stored));
            return None;
        }
        self.is_dead = true;
        Some(stored)
    }
}

/// The connection of one process to an API.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) service: ApiService,
    pub(crate) api: String,
    pub(crate) program: Role,
    pub(crate) fate: SharedFate,
    pub(crate) traffic: Traffic,
    /// Set once the API of the fleet shows Deployments with a further default.
    pub(crate) is_upgraded: Arc<AtomicBool>,
}

impl Connection {
    /// Returns a client on this connection.
    pub(crate) fn client(self) -> Result<Client, ClientError> {
        let name = self.program.name();
        let config = Config::new(http::Uri::from_static("http://api"));
        client::with_service(self, config, name)
    }

    async fn exchange(
        mut self,
        request: Request<kube::client::Body>,
    ) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let path = parts.uri.path_and_query().map(ToString::to_string);
        let line = format!(
            "{} {} {} {}",
            self.program.name(),
            self.api,
            parts.method,
            path.unwrap_or_default()
        );
        if self.fate.lock().is_dead || !self.traffic.count(&line) {
            return std::future::pending().await;
        }
        self.traffic
            .note(&format!("{line} {}", String::from_utf8_lossy(&body)));
        let is_write = parts.method != Method::GET;
        let is_of_deployments = self.api == FLEET && parts.uri.path().contains("/deployments");
        let _pending = is_write.then(|| Pending::begin(&self.traffic, &line));
        let request = Request::from_parts(parts, Full::new(body));
        let last = if is_write {
            self.fate.lock().count()
        } else {
            None
        };
        if let Some(stored) = last {
            self.traffic
                .note(&format!("{} dies, stored: {stored}", self.program.name()));
            if stored {
                drop(self.service.call(request).await);
            }
            return std::future::pending().await;
        }
        travel().await;
        let response = self.service.call(request).await;
        travel().await;
        let outcome = match &response {
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        };
        self.traffic.note(&format!("{line}: {outcome}"));
        if is_of_deployments && self.is_upgraded.load(Ordering::Relaxed) {
            return response.map(|response| response.map(with_default));
        }
        response
    }
}

/// Adds a default to the Deployments in a response.
fn with_default(body: Body) -> Body {
    let (before, after) = (
        r#""containers":["#,
        r#""enableServiceLinks":true,"containers":["#,
    );
    // Each object is in one frame.
    body.map_frame(move |frame| {
        frame.map_data(|data| match str::from_utf8(&data) {
            Ok(text) => text.replace(before, after).into(),
            Err(_) => data,
        })
    })
    .boxed_unsync()
}

/// Waits as long as a message may be on its way, so that requests overtake each other.
async fn travel() {
    let millis = fastrand::u64(..LATENCY_MILLIS);
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

impl Service<Request<kube::client::Body>> for Connection {
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
