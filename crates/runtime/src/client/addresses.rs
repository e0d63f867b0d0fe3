//! The addresses of a server: those of its name in DNS or, while DNS fails, the last ones it returned.
//! A program that reports a dead DNS must not depend on it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use hyper_util::client::legacy::connect::dns::Name;
use parking_lot::Mutex;
use tokio::time::timeout;
use tower::Service;

/// The longest a new connection waits for DNS. A slower lookup continues, and later connections wait
/// for the same one.
const LOOKUP_LIMIT: Duration = Duration::from_secs(2);

/// The addresses of the server of one client, shared by its clones.
#[derive(Clone)]
pub(super) struct Addresses(Arc<Origin>);

enum Origin {
    Fixed(Vec<SocketAddr>),
    LookedUp { lookup: Lookup, state: Mutex<State> },
}

/// The result of a lookup; all who wait for it share the error.
type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;

type Lookup = Box<dyn Fn(Name) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

#[derive(Default)]
struct State {
    in_flight: Option<Shared<BoxFuture<'static, Found>>>,
    last_good: Vec<SocketAddr>,
    /// Set if the last lookup failed and a warning was logged.
    failing: bool,
}

impl Addresses {
    /// Returns fixed addresses.
    pub(super) fn fixed(addresses: &[IpAddr]) -> Self {
        // The connector replaces port 0 with the port of the URL.
        let any_port = |ip: &IpAddr| SocketAddr::new(*ip, 0);
        Self(Arc::new(Origin::Fixed(
            addresses.iter().map(any_port).collect(),
        )))
    }

    /// Returns addresses from the system's resolver.
    pub(super) fn looked_up() -> Self {
        Self::by(Box::new(|name| {
            async move {
                // getaddrinfo blocks, possibly for long.
                let lookup = move || (name.as_str(), 0).to_socket_addrs().map(Iterator::collect);
                tokio::task::spawn_blocking(lookup).await?
            }
            .boxed()
        }))
    }

    fn by(lookup: Lookup) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Origin::LookedUp { lookup, state }))
    }

    async fn find(self, name: Name) -> io::Result<Vec<SocketAddr>> {
        let (lookup, state) = match &*self.0 {
            Origin::Fixed(addresses) => return Ok(addresses.clone()),
            Origin::LookedUp { lookup, state } => (lookup, state),
        };
        let in_flight = {
            let mut state = state.lock();
            match &state.in_flight {
                Some(in_flight) => in_flight.clone(),
                None => state
                    .in_flight
                    .insert(
                        lookup(name.clone())
                            .map(|found| found.map_err(Arc::new))
                            .boxed()
                            .shared(),
                    )
                    .clone(),
            }
        };
        let found = timeout(LOOKUP_LIMIT, in_flight).await;
        let mut state = state.lock();
        if state
            .in_flight
            .as_ref()
            .is_some_and(|lookup| lookup.peek().is_some())
        {
            state.in_flight = None;
        }
        let error = match found {
            Ok(Ok(found)) if !found.is_empty() => {
                if std::mem::take(&mut state.failing) {
                    tracing::info!(%name, "The API server's name resolves again");
                }
                state.last_good.clone_from(&found);
                return Ok(found);
            }
            Ok(Ok(_)) => io::Error::new(io::ErrorKind::NotFound, "the name has no address"),
            Ok(Err(error)) => io::Error::new(error.kind(), error.to_string()),
            Err(_) => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer from DNS within {LOOKUP_LIMIT:?}"),
            ),
        };
        if state.last_good.is_empty() {
            let error = format!("cannot resolve {name}: {error}");
            return Err(io::Error::other(error));
        }
        if !std::mem::replace(&mut state.failing, true) {
            tracing::warn!(%name, %error, addresses = ?state.last_good, "The API server's name does not resolve, using its last addresses");
        }
        Ok(state.last_good.clone())
    }
}

impl Service<Name> for Addresses {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let found = self.clone().find(name);
        async { Ok(found.await?.into_iter()) }.boxed()
    }
}

#[cfg(test)]
mod tests;
