//! The way to an API on which a write may come late.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiService, Body};
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tower::Service;

use super::model;
use super::program::CONTROLLER;
use crate::harness::access::USER_AGENT;

/// An API as a program reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) service: ApiService,
    pub(crate) delays: Delays,
}

/// Delays of future writes, each of one write. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    next: VecDeque<Duration>,
    /// The number of writes that were delayed.
    hits: u64,
    /// The number of delayed writes that are on their way, abandoned or not.
    on_their_way: usize,
}

impl Delays {
    pub(crate) fn add(&self, delay: Duration) {
        self.shared.lock().next.push_back(delay);
    }

    pub(crate) fn clear(&self) {
        self.shared.lock().next.clear();
    }

    fn begin(&self) -> Option<Duration> {
        let mut shared = self.shared.lock();
        let delay = shared.next.pop_front()?;
        shared.hits += 1;
        shared.on_their_way += 1;
        Some(delay)
    }

    /// Returns the number of writes that were delayed.
    pub(crate) fn hits(&self) -> u64 {
        self.shared.lock().hits
    }

    /// Returns `true` while a delayed write is on its way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.shared.lock().on_their_way > 0
    }
}

impl Late {
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
        let request = request.map_err(io::Error::other)?;
        let response = self.service.call(request).await?;
        let body = response.into_body().collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        let ingress = serde_json::from_slice(&body)?;
        Ok(!model::carries(&ingress, CONTROLLER))
    }

    /// Sends a request. A delayed one is sent even if the program has abandoned it.
    pub(crate) async fn send(
        mut self,
        request: Request<Full<Bytes>>,
    ) -> io::Result<Response<Body>> {
        let late = match *request.method() {
            Method::GET => None,
            _ => self.delays.begin(),
        };
        let Some(late) = late else {
            return self.service.call(request).await;
        };
        // A task of its own outlives this future, which an abandoning program drops.
        let sending = tokio::spawn(async move {
            tokio::time::sleep(late).await;
            let response = match self.is_released(request.uri().path()).await {
                Ok(false) => self.service.call(request).await,
                Ok(true) => Err(io::ErrorKind::ConnectionReset.into()),
                Err(error) => Err(error),
            };
            self.delays.shared.lock().on_their_way -= 1;
            response
        });
        sending.await.map_err(io::Error::other)?
    }
}
