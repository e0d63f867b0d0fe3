//! The addresses of names: those in DNS or, while DNS fails, the last ones it returned. A program that
//! reports a dead DNS must not depend on it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use hyper_util::client::legacy::connect::dns::Name;
use parking_lot::Mutex;
use tokio::time::timeout;
use tower::Service;

use super::resolver::Files;

/// The longest a new connection waits for the lookup of a name without known addresses. A slower lookup
/// continues, and later connections wait for the same one.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);
/// The longest a new connection waits for a lookup while addresses are known: far less than any request
/// may take, so that a dead DNS costs none of them its deadline.
const SERVE_STALE_AFTER: Duration = Duration::from_millis(500);

/// A lookup of a name.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// The last good addresses of names, shared by its clones.
#[derive(Clone)]
pub struct Addresses(Arc<Origin>);

enum Origin {
    Fixed(Vec<SocketAddr>),
    LookedUp {
        lookup: Box<Lookup>,
        names: Mutex<BTreeMap<String, State>>,
    },
}

/// The result of a lookup; all who wait for it share the error.
type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// The state of one name.
#[derive(Default)]
struct State {
    in_flight: Option<Shared<BoxFuture<'static, Found>>>,
    last_good: Vec<SocketAddr>,
    /// Set if the last lookup failed and a warning was logged.
    failing: bool,
}

impl Addresses {
    /// Returns fixed addresses, whatever the name.
    pub(super) fn fixed(addresses: &[IpAddr]) -> Self {
        Self(Arc::new(Origin::Fixed(
            addresses.iter().copied().map(any_port).collect(),
        )))
    }

    /// Returns addresses by the files of this system, `/etc/hosts` and `/etc/resolv.conf`.
    pub fn by_system() -> Self {
        let files = Files::of_system();
        Self::by(move |name| {
            let files = files.clone();
            async move { files.look_up(&name).await }.boxed()
        })
    }

    /// Returns addresses from `lookup`.
    pub fn by(
        lookup: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Origin::LookedUp {
            lookup: Box::new(lookup),
            names: Mutex::default(),
        }))
    }

    /// Adds a name to [those](Self::kept) whose addresses must be known before they are needed.
    pub fn keep(&self, name: &str) {
        if let Origin::LookedUp { names, .. } = &*self.0 {
            names.lock().entry(name.to_owned()).or_default();
        }
    }

    /// Returns the names that were added, and those that connections have needed.
    pub fn kept(&self) -> Vec<String> {
        match &*self.0 {
            Origin::Fixed(_) => Vec::new(),
            Origin::LookedUp { names, .. } => names.lock().keys().cloned().collect(),
        }
    }

    /// Returns the last good addresses of a name, without a lookup.
    pub fn known(&self, name: &str) -> Vec<IpAddr> {
        let addresses = match &*self.0 {
            Origin::Fixed(addresses) => addresses.clone(),
            Origin::LookedUp { names, .. } => {
                let names = names.lock();
                let state = names.get(name);
                state.map_or_else(Vec::new, |state| state.last_good.clone())
            }
        };
        let ips = addresses.iter().map(|address| address.ip().to_canonical());
        ips.collect()
    }

    /// Looks a name up, however long it takes, and keeps its addresses. Returns `true` if any are known
    /// now, from this lookup or from an earlier one.
    pub async fn refresh(&self, name: &str) -> bool {
        self.find(name, None).await.is_ok()
    }

    /// Looks a name up and keeps nothing, for who must know when it moves.
    ///
    /// # Errors
    /// The lookup fails, with `NotFound` if the name has no address.
    pub async fn look_up_anew(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        match &*self.0 {
            Origin::Fixed(addresses) => Ok(addresses.iter().map(SocketAddr::ip).collect()),
            Origin::LookedUp { lookup, .. } => lookup(name.to_owned()).await,
        }
    }

    /// Returns the addresses of a name. `limit` bounds the lookup, for a name with and without known
    /// addresses.
    async fn find(
        &self,
        name: &str,
        limit: Option<(Duration, Duration)>,
    ) -> io::Result<Vec<SocketAddr>> {
        let names = match &*self.0 {
            Origin::Fixed(addresses) => return Ok(addresses.clone()),
            Origin::LookedUp { names, .. } => names,
        };
        let (in_flight, limit) = {
            let mut names = names.lock();
            let state = names.entry(name.to_owned()).or_default();
            let limit = limit.map(|(known, unknown)| {
                if state.last_good.is_empty() {
                    unknown
                } else {
                    known
                }
            });
            let in_flight =
                (state.in_flight).get_or_insert_with(|| self.clone().look_up(name.to_owned()));
            (in_flight.clone(), limit)
        };
        let found = match limit {
            Some(limit) => timeout(limit, in_flight).await.map_err(|_| limit),
            None => Ok(in_flight.await),
        };
        let error = match found {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => io::Error::new(error.kind(), error.to_string()),
            Err(limit) => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer from DNS within {limit:?}"),
            ),
        };
        let mut names = names.lock();
        let state = names.entry(name.to_owned()).or_default();
        if state.last_good.is_empty() {
            let error = format!("cannot resolve {name}: {error}");
            return Err(io::Error::other(error));
        }
        if !std::mem::replace(&mut state.failing, true) {
            tracing::warn!(name, %error, addresses = ?state.last_good, "The name does not resolve, using its last addresses");
        }
        Ok(state.last_good.clone())
    }

    /// Starts a lookup, which keeps its result whether or not anyone still waits for it.
    fn look_up(self, name: String) -> Shared<BoxFuture<'static, Found>> {
        // Nobody stops this task: every lookup has a deadline of its own.
        let task = tokio::spawn(async move {
            let Origin::LookedUp { lookup, names } = &*self.0 else {
                return Ok(Vec::new());
            };
            // A task of its own, so that a lookup that panics is not in flight for ever.
            let found = tokio::spawn(lookup(name.clone())).await;
            let found = found.unwrap_or_else(|error| Err(io::Error::other(error)));
            let mut names = names.lock();
            let state = names.entry(name.clone()).or_default();
            state.in_flight = None;
            let found = found.map_err(Arc::new)?;
            if found.is_empty() {
                let error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                return Err(Arc::new(error));
            }
            if std::mem::take(&mut state.failing) {
                tracing::info!(name, "The name resolves again");
            }
            state.keep(found.into_iter().map(any_port).collect());
            Ok(state.last_good.clone())
        });
        task.map(|ended| ended.unwrap_or_else(|error| Err(Arc::new(io::Error::other(error)))))
            .boxed()
            .shared()
    }
}

impl State {
    /// Keeps the addresses of a response. Those of a family that it has none of stay behind them: most
    /// likely that family's query was lost, and one dead address more costs a connection little.
    fn keep(&mut self, found: Vec<SocketAddr>) {
        let before = std::mem::replace(&mut self.last_good, found);
        for family in [SocketAddr::is_ipv4, SocketAddr::is_ipv6] {
            if !self.last_good.iter().any(family) {
                let rest = before.iter().copied().filter(family);
                self.last_good.extend(rest);
            }
        }
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses").finish_non_exhaustive()
    }
}

/// The connector replaces port 0 with the port of the URL.
fn any_port(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 0)
}

impl Service<Name> for Addresses {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let addresses = self.clone();
        async move {
            let limit = Some((SERVE_STALE_AFTER, LOOKUP_LIMIT));
            Ok(addresses.find(name.as_str(), limit).await?.into_iter())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
