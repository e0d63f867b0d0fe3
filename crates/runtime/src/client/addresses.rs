//! Where a server is: what DNS says, or, when it says nothing, what it said last. A program that
//! reports that DNS is dead must not need it.

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

/// The longest a new connection waits for DNS. A lookup that takes longer goes on, and the connections
/// after this one wait for the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// The addresses of the one server of a client. Clones are one.
#[derive(Clone)]
pub(super) struct Addresses(Arc<Source>);

enum Source {
    Fixed(Vec<SocketAddr>),
    LookedUp { lookup: Lookup, state: Mutex<State> },
}

/// What a lookup finds; the error is shared by those who wait for it.
type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;

type Lookup = Box<dyn Fn(Name) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

#[derive(Default)]
struct State {
    under_way: Option<Shared<BoxFuture<'static, Found>>>,
    last_good: Vec<SocketAddr>,
    /// Whether the last lookup failed, and that was told.
    failing: bool,
}

impl Addresses {
    /// These, whatever DNS says.
    pub(super) fn fixed(addresses: &[IpAddr]) -> Self {
        let any_port = |ip: &IpAddr| SocketAddr::new(*ip, 0);
        Self(Arc::new(Source::Fixed(
            addresses.iter().map(any_port).collect(),
        )))
    }

    /// As the system resolves the server's name.
    pub(super) fn looked_up() -> Self {
        Self::by(Box::new(|name| {
            async move {
                let ask = move || (name.as_str(), 0).to_socket_addrs().map(Iterator::collect);
                tokio::task::spawn_blocking(ask).await?
            }
            .boxed()
        }))
    }

    fn by(lookup: Lookup) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Source::LookedUp { lookup, state }))
    }

    async fn find(self, name: Name) -> io::Result<Vec<SocketAddr>> {
        let (lookup, state) = match &*self.0 {
            Source::Fixed(addresses) => return Ok(addresses.clone()),
            Source::LookedUp { lookup, state } => (lookup, state),
        };
        let under_way = {
            let mut state = state.lock();
            match &state.under_way {
                Some(under_way) => under_way.clone(),
                None => state
                    .under_way
                    .insert(
                        lookup(name.clone())
                            .map(|found| found.map_err(Arc::new))
                            .boxed()
                            .shared(),
                    )
                    .clone(),
            }
        };
        let found = timeout(PATIENCE, under_way).await;
        let mut state = state.lock();
        if state
            .under_way
            .as_ref()
            .is_some_and(|lookup| lookup.peek().is_some())
        {
            state.under_way = None;
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
                format!("no answer from DNS within {PATIENCE:?}"),
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
