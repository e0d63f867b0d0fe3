//! The connections of the programs to the APIs: each request is recorded, and a process may die at a write.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::Body;
use futures::TryStreamExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use karmada_runtime::client::{self, ClientError};
use kube::{Client, Config};
use parking_lot::Mutex;
use tower::{Service, service_fn};

use super::fault::Api;
use super::message::{Message, Process, Role};
use super::record::{Exchange, Record};

/// The fate of one process.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// The number of writes until it dies, and `true` if the last one is stored.
    crash: Option<(u8, bool)>,
    is_dead: bool,
}

/// The fate of one process, which its connections share.
pub(super) type SharedFate = Arc<Mutex<Fate>>;

impl Fate {
    /// Lets the process die at a write.
    pub(super) fn crash(&mut self, write: u8, stored: bool) {
        self.crash = Some((write, stored));
    }

    /// Lets the process live on.
    pub(super) fn spare(&mut self) {
        self.crash = None;
    }

    pub(super) fn is_dead(&self) -> bool {
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

/// The parts that the connections of one process share.
#[derive(Clone, Debug)]
pub struct Connections<R> {
    /// The process.
    pub process: Process<R>,
    pub(super) fate: SharedFate,
    record: Record<R>,
}

impl<R: Role> Connections<R> {
    pub(crate) fn new(process: Process<R>, record: Record<R>) -> Self {
        Self {
            process,
            fate: SharedFate::default(),
            record,
        }
    }

    /// Returns a client of an API that `service` serves.
    pub(crate) fn client<S>(&self, api: Api, service: S) -> Result<Client, ClientError>
    where
        S: Service<
                Request<Full<Bytes>>,
                Response = Response<Body>,
                Error = io::Error,
                Future: Send,
            > + Clone
            + Send
            + 'static,
    {
        let of = self.clone();
        let connection = service_fn(move |request| {
            let (service, of) = (service.clone(), of.clone());
            exchange(service, api, of, request)
        });
        let name = self.process.program.user_agent();
        client::with_service(connection, nowhere(), &name)
    }
}

/// Returns the configuration of a client of an embedded server.
pub(crate) fn nowhere() -> Config {
    Config::new(http::Uri::from_static("http://api"))
}

/// Sends a request of a process to an API, and records both directions.
async fn exchange<R: Role, S>(
    mut service: S,
    api: Api,
    of: Connections<R>,
    request: Request<kube::client::Body>,
) -> io::Result<Response<Body>>
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = io::Error>,
{
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let path = parts.uri.path_and_query().map(ToString::to_string);
    let path = path.unwrap_or_default();
    let watches = path.contains("watch=true");
    let Connections {
        process,
        fate,
        record,
    } = of;
    if fate.lock().is_dead || !record.admits(&format!("{process} {} {path}", parts.method)) {
        return std::future::pending().await;
    }
    let message = Message::Request {
        method: parts.method.clone(),
        path,
        body: body.clone(),
    };
    let is_write = message.written().is_some();
    let mut exchange = Exchange::begin(&record, process, api, message);
    let request = Request::from_parts(parts, Full::new(body));
    let last = if is_write { fate.lock().count() } else { None };
    if let Some(stored) = last {
        record.note(format!("{process} dies, stored: {stored}"));
        if stored {
            drop(service.call(request).await);
        }
        return std::future::pending().await;
    }
    travel::<R>().await;
    let response = service.call(request).await;
    travel::<R>().await;
    let response = match response {
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

/// Waits as long as a message may be on its way.
async fn travel<R: Role>() {
    if R::LATENCY > 0 {
        let millis = fastrand::u64(..R::LATENCY);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// Returns the frames of a watch, each recorded when the program takes it.
fn watched<R: Role>(body: Body, exchange: Exchange<R>) -> Body {
    let lines = futures::stream::unfold((body, exchange), |(mut body, mut exchange)| async move {
        if exchange.is_over() {
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
