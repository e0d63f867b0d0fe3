//! The connections of one purpose.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::connection::{Connection, Driver, Stream};
use super::error::{OpenError, SendError};
use super::metrics::CONNECTIONS;
use super::purpose::Purpose;
use crate::client::transport::Transport;

/// The longest that it takes to open a connection, look-up, proxy and TLS included. A request has half a minute.
const OPEN_LIMIT: Duration = Duration::from_secs(20);
/// The time after which an unused connection is closed, as by Go's client and by kube-apiserver.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// The number of connections from which on one purpose has so many that the server, or a proxy before it, probably allows
/// too few streams: by kube-apiserver's own limit they carry 750.
const MANY: usize = 10;

/// The connections to one server for one purpose.
pub(super) struct Group {
    connector: HttpsConnector<Transport>,
    server: Uri,
    api: &'static str,
    purpose: Purpose,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first that has room gets the next stream, so that those at the end become idle.
    connections: Vec<Used>,
    /// The connection that is being opened, as long as somebody waits for it.
    opening: Option<WeakShared<BoxFuture<'static, Opened>>>,
}

struct Used {
    connection: Arc<Connection>,
    /// The time of its last new stream.
    last: Instant,
}

/// Whether the server chose HTTP/2.
type Opened = Result<bool, OpenError>;

/// The end of a request.
pub(super) enum Sent {
    /// It was answered on this stream.
    Answered(Response<Incoming>, Stream),
    /// It was not sent, because the server does not choose HTTP/2.
    NotHttp2(Request<Body>),
}

impl Group {
    pub(super) fn new(
        connector: HttpsConnector<Transport>,
        server: Uri,
        api: &'static str,
        purpose: Purpose,
    ) -> Arc<Self> {
        Arc::new(Self {
            connector,
            server,
            api,
            purpose,
            state: Mutex::default(),
        })
    }

    /// Sends a request on the first connection that has room, or else on a new one.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
    ) -> Result<Sent, SendError> {
        let mut is_new = false;
        loop {
            let mut stream = match self.take() {
                Ok(stream) => stream,
                Err(opening) => {
                    if !opening.await? {
                        return Ok(Sent::NotHttp2(request));
                    }
                    is_new = true;
                    continue;
                }
            };
            let sent = stream.send(request).await;
            let mut error = match sent {
                Ok(response) => return Ok(Sent::Answered(response, stream)),
                Err(error) => error,
            };
            // A server may end a connection just then. One that ends each at once is not to be asked without a pause.
            match error.take_message().filter(|_| !is_new) {
                Some(unsent) => request = unsent,
                None => return Err(error.into_error().into()),
            }
        }
    }

    /// Takes a stream on the first connection that has room.
    ///
    /// # Errors
    /// Fails with one that is being opened if none has.
    fn take(self: &Arc<Self>) -> Result<Stream, Shared<BoxFuture<'static, Opened>>> {
        let mut state = self.state.lock();
        state
            .connections
            .retain(|used| !used.connection.is_closed());
        let mut connections = state.connections.iter_mut();
        if let Some(used) = connections.find(|used| used.connection.has_room()) {
            used.last = Instant::now();
            return Ok(Stream::on(&used.connection, self.purpose));
        }
        // One at a time: of those that need one, most find room on it. One that has ended stays as long as somebody
        // has it, and says nothing of the next.
        let opening = state.opening.as_ref().and_then(WeakShared::upgrade);
        let opening = opening.filter(|opening| opening.peek().is_none());
        Err(opening.unwrap_or_else(|| {
            let opening = Arc::clone(self).open().boxed().shared();
            state.opening = opening.downgrade();
            opening
        }))
    }

    async fn open(self: Arc<Self>) -> Opened {
        let counted = CONNECTIONS.count_connection(self.api, self.purpose);
        let opening = Connection::open(self.connector.clone(), self.server.clone(), counted);
        let opened = timeout(OPEN_LIMIT, opening).await;
        let opened = opened.map_err(|_| OpenError::TimedOut)?;
        let opened = opened.map_err(|error| OpenError::Failed(error.into()))?;
        let Some((connection, driver)) = opened else {
            return Ok(false);
        };
        let allowed = connection.allowed();
        tokio::spawn(drive(driver, Arc::downgrade(&self)));
        let mut state = self.state.lock();
        state.connections.push(Used {
            connection: Arc::new(connection),
            last: Instant::now(),
        });
        let connections = state.connections.len();
        drop(state);
        if connections == MANY {
            let (api, purpose) = (self.api, self.purpose.label());
            tracing::warn!(
                api, server = %self.server, purpose, connections, streams_allowed = allowed,
                "Needs many connections: raise --http2-max-streams-per-connection of this kube-apiserver, or the streams that a proxy before it allows"
            );
        }
        Ok(true)
    }

    /// Forgets the connections of a group that have ended, and closes those that are idle.
    fn tidy(group: &Weak<Self>) {
        let Some(group) = group.upgrade() else {
            return;
        };
        group.state.lock().connections.retain(|used| {
            let is_idle = used.connection.is_idle() && used.last.elapsed() >= IDLE_LIMIT;
            !is_idle && !used.connection.is_closed()
        });
    }
}

/// Drives a connection to its end, which also comes once neither its group nor a stream has it.
async fn drive(mut driver: Driver, group: Weak<Group>) {
    loop {
        tokio::select! {
            ended = &mut driver => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                break;
            }
            () = sleep(IDLE_LIMIT) => Group::tidy(&group),
        }
    }
    // Only then is it known to be closed.
    drop(driver);
    Group::tidy(&group);
}
