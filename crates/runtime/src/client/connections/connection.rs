//! One connection over HTTP/2, and the streams on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::Body;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tower::ServiceExt;

use super::metrics::Counted;
use super::purpose::Purpose;
use crate::client::transport::Transport;
use crate::error::BoxError;

const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_LIMIT: Duration = Duration::from_secs(5);
/// The interval between two looks for the settings of a server.
const SETTINGS_INTERVAL: Duration = Duration::from_millis(1);
/// The most streams that count of those that a server allows, as many as kube-apiserver does: with one connection, no
/// more watches are to break than that.
const MOST_ALLOWED: usize = 100;

/// The engine of a connection. Driven, it returns when the connection has ended.
pub(super) type Driver =
    http2::Connection<MaybeHttpsStream<TokioIo<TcpStream>>, Body, TokioExecutor>;

/// A connection over HTTP/2.
pub(super) struct Connection {
    sender: SendRequest<Body>,
    /// The streams that the server allows.
    allowed: usize,
    streams: AtomicUsize,
    /// True once somebody has given up on it.
    is_given_up: AtomicBool,
    _counted: Counted,
}

#[derive(Debug, thiserror::Error)]
#[error("the server ended the connection before it sent its settings")]
struct EndedAtOnce;

impl Connection {
    /// Connects to `server`; returns `None` if it chose HTTP/1.1.
    pub(super) async fn open(
        connector: HttpsConnector<Transport>,
        server: Uri,
        counted: Counted,
    ) -> Result<Option<(Self, Driver)>, BoxError> {
        let socket = connector.oneshot(server).await?;
        if !socket.connected().is_negotiated_h2() {
            return Ok(None);
        }
        let (sender, mut driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            // A watch without events is idle: without pings a dead connection would look like silence.
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_LIMIT)
            .keep_alive_while_idle(true)
            .initial_max_send_streams(0_usize)
            .handshake(socket)
            .await?;
        // The limit of the server is in the first frame that it sends, of which nothing tells. Streams that were opened
        // before would wait for each other if it allows fewer.
        while driver.current_max_send_streams() == 0 {
            tokio::select! {
                ended = &mut driver => return Err(ended.map_or_else(BoxError::from, |()| EndedAtOnce.into())),
                () = sleep(SETTINGS_INTERVAL) => {}
            }
        }
        let connection = Self {
            sender,
            allowed: driver.current_max_send_streams(),
            streams: AtomicUsize::new(0),
            is_given_up: AtomicBool::new(false),
            _counted: counted,
        };
        Ok(Some((connection, driver)))
    }

    /// Returns the streams that the server allows.
    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// Returns `true` once no stream is to be opened any more; those that are open may go on.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.is_given_up.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0
    }

    /// Returns `true` if another stream may be opened.
    pub(super) fn has_room(&self) -> bool {
        self.streams.load(Ordering::Relaxed) < room(self.allowed)
    }
}

/// Returns the number of streams that are used where a server allows `allowed`. It may count one that has ended here.
fn room(allowed: usize) -> usize {
    (allowed.min(MOST_ALLOWED) * 3 / 4).max(1)
}

/// A stream on a connection, until it is dropped.
pub(super) struct Stream {
    connection: Arc<Connection>,
    /// True if the connection is given up with the request on this stream.
    gives_up: bool,
}

impl Stream {
    /// Takes one of the streams for which the connection has room.
    pub(super) fn on(connection: &Arc<Connection>, purpose: Purpose) -> Self {
        connection.streams.fetch_add(1, Ordering::Relaxed);
        Self {
            connection: Arc::clone(connection),
            // Dropped before its answer, its time is over. The connection may be silent, and pings tell that too late for
            // the next attempt to hold the lease.
            gives_up: purpose == Purpose::Lease,
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Fails with the request if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Body>>> {
        let sent = self.connection.sender.clone().try_send_request(request);
        let result = sent.await;
        self.gives_up = false;
        result
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Connection {
            streams,
            is_given_up,
            ..
        } = &*self.connection;
        streams.fetch_sub(1, Ordering::Relaxed);
        is_given_up.fetch_or(self.gives_up, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some streams stay free, of few as of many.
    #[test]
    fn room_is_below_limit() {
        let rooms = [1, 2, 10, 100, 250, usize::MAX].map(room);
        assert_eq!(rooms, [1, 1, 7, 75, 75, 75]);
    }
}
