//! The connections of the programs to the APIs: each request is logged, and a program may die at a write.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use embedded_apiserver::{ApiService, Body};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use karmada_runtime::client::{self, ClientError};
use kube::{Client, Config};
use parking_lot::Mutex;
use tower::Service;

use super::traffic::{Pending, Traffic};

/// A message takes less time than this.
const LATENCY_MILLIS: u64 = 20;

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
    /// The name of the API in the log.
    pub(crate) api: String,
    /// The name of the program in the log.
    pub(crate) program: String,
    pub(crate) fate: SharedFate,
    pub(crate) traffic: Traffic,
}

/// Returns a client of the program `name` on a connection.
pub(crate) fn client<S>(connection: S, name: &str) -> Result<Client, ClientError>
where
    S: Service<Request<kube::client::Body>, Response = Response<Body>, Error = io::Error>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let config = Config::new(http::Uri::from_static("http://api"));
    client::with_service(connection, config, name)
}

impl Connection {
    async fn exchange(
        mut self,
        request: Request<kube::client::Body>,
    ) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let path = parts.uri.path_and_query().map(ToString::to_string);
        let line = format!(
            "{} {} {} {}",
            self.program,
            self.api,
            parts.method,
            path.unwrap_or_default()
        );
        if self.fate.lock().is_dead || !self.traffic.count(&line) {
            return std::future::pending().await;
        }
        self.traffic
            .note(&format!("{line} {}", String::from_utf8_lossy(&body)));
        let is_dry = parts
            .uri
            .query()
            .is_some_and(|query| query.contains("dryRun=All"));
        let is_write = parts.method != Method::GET && !is_dry;
        let _pending = is_write.then(|| Pending::begin(&self.traffic, &line));
        let request = Request::from_parts(parts, Full::new(body));
        let last = if is_write {
            self.fate.lock().count()
        } else {
            None
        };
        if let Some(stored) = last {
            self.traffic
                .note(&format!("{} dies, stored: {stored}", self.program));
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
        response
    }
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
