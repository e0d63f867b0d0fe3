//! A steady stream of HTTP requests, with a record of the cluster that responded to each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use http::{Request, StatusCode, header::HOST};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::{
    client::legacy::Client, client::legacy::connect::HttpConnector, rt::TokioExecutor,
};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::backend::{CLUSTER, HELD, HELD_PATH};

/// Successive requests that must go elsewhere before a cluster counts as left.
pub const LEFT_AFTER: usize = 200;

/// Requests per second, over all connections, unless a test asks for more.
const RATE: u32 = 200;

/// Requests per second over one connection, on which they follow each other.
const RATE_OF_EACH: u32 = 50;

/// The interval between two requests to a proxy that does not know the route yet.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// A request without a response for so long has failed.
// Long enough for a machine on which the proxy gets no CPU for seconds: how fast it responds is no
// matter of a test.
const RESPONSE_WITHIN: Duration = Duration::from_secs(30);

/// The longest wait for a change of the responding clusters.
const CHANGE_WITHIN: Duration = Duration::from_mins(3);

/// The load of a proxy.
#[derive(Clone, Debug)]
pub struct Load {
    /// The hosts that are asked in turn.
    pub hosts: Vec<String>,
    /// Requests per second, over all connections.
    pub rate: u32,
    /// Connections beside them, on which each request takes [`HELD`].
    pub held: u32,
}

/// The requests over one connection.
struct Connection {
    hosts: Vec<String>,
    path: &'static str,
    /// The time from one request to the next, if the response is there by then.
    every: Duration,
}

/// A request and its outcome.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The time at which it was sent.
    pub sent: Instant,
    /// The time at which its response was complete, or it failed.
    pub ended: Instant,
    /// The cluster that responded, if a response of one arrived.
    pub cluster: Option<String>,
    /// The reason, if it failed.
    pub failure: Option<String>,
}

/// The number of responses of each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Successful responses by cluster.
    pub clusters: BTreeMap<String, u64>,
    /// Failures by reason, which names the cluster if one responded.
    pub failures: BTreeMap<String, u64>,
}

/// Running traffic. Dropping it ends it.
#[derive(Debug)]
pub struct Traffic {
    record: Arc<Record>,
    _connections: JoinSet<()>,
}

/// All exchanges so far, in the order they ended.
#[derive(Debug)]
struct Record {
    exchanges: Mutex<Vec<Exchange>>,
    grown: watch::Sender<()>,
}

// === impl Traffic ===

impl Traffic {
    /// Sends 200 requests a second to `http://<address>/` with that `Host` header.
    pub fn start(address: SocketAddr, host: &str) -> Self {
        let load = Load {
            hosts: vec![host.to_owned()],
            rate: RATE,
            held: 0,
        };
        Self::under(address, &load)
    }

    /// Sends these requests to `address`.
    pub fn under(address: SocketAddr, load: &Load) -> Self {
        let record = Arc::new(Record {
            exchanges: Mutex::new(Vec::new()),
            grown: watch::Sender::new(()),
        });
        let mut connections = JoinSet::new();
        for connection in load.connections() {
            let record = Arc::clone(&record);
            connections.spawn(async move { send(address, &connection, &record).await });
        }
        Self {
            record,
            _connections: connections,
        }
    }

    /// Counts all requests so far.
    pub fn counts(&self) -> Counts {
        Counts::of(&*self.record.exchanges.lock())
    }

    /// Counts the requests sent after `since` that have ended.
    pub fn counts_since(&self, since: Instant) -> Counts {
        Counts::of(sent_after(&self.record.exchanges.lock(), since))
    }

    /// Returns the time of the last response of `cluster`.
    pub fn last_to(&self, cluster: &str) -> Option<Instant> {
        let exchanges = self.record.exchanges.lock();
        let last = exchanges.iter().rfind(|exchange| exchange.is_by(cluster))?;
        Some(last.ended)
    }

    /// Waits until `cluster` responds to a request sent after `since`, and returns the time of that.
    pub async fn first_to(&self, cluster: &str, since: Instant) -> Result<Instant> {
        self.until(|exchanges| {
            let first = sent_after(exchanges, since).find(|exchange| exchange.is_by(cluster))?;
            Some(first.ended)
        })
        .await
        .with_context(|| format!("no response of {cluster}"))
    }

    /// Counts the requests that ended before `until`.
    pub fn counts_until(&self, until: Instant) -> Counts {
        let exchanges = self.record.exchanges.lock();
        Counts::of(
            exchanges
                .iter()
                .take_while(|exchange| exchange.ended < until),
        )
    }

    /// Counts the requests sent after `since` that ended before `until`.
    pub fn counts_between(&self, since: Instant, until: Instant) -> Counts {
        let exchanges = self.record.exchanges.lock();
        let sent = sent_after(&exchanges, since);
        Counts::of(sent.take_while(|exchange| exchange.ended < until))
    }

    /// Counts the requests that take long and were under way at `at`.
    pub fn held_at(&self, at: Instant) -> Counts {
        let exchanges = self.record.exchanges.lock();
        let ended = exchanges.partition_point(|exchange| exchange.ended <= at);
        Counts::of(exchanges[ended..].iter().filter(|exchange: &&Exchange| {
            exchange.sent < at && exchange.ended.duration_since(exchange.sent) >= HELD
        }))
    }

    /// Waits until `count` requests sent after `since` have ended, and counts them.
    pub async fn next(&self, count: usize, since: Instant) -> Result<Counts> {
        self.until(|exchanges| {
            let enough = sent_after(exchanges, since)
                .nth(count.checked_sub(1)?)
                .is_some();
            enough.then(|| Counts::of(sent_after(exchanges, since)))
        })
        .await
        .with_context(|| format!("fewer than {count} requests have ended"))
    }

    /// Waits until the newest `count` of the requests sent after `since` went elsewhere than to
    /// `cluster`.
    pub async fn left(&self, cluster: &str, count: usize, since: Instant) -> Result<()> {
        self.until(|exchanges| {
            let elsewhere = sent_after(exchanges, since)
                .rev()
                .take_while(|exchange| !exchange.is_by(cluster))
                .take(count)
                .count();
            (elsewhere == count).then_some(())
        })
        .await
        .with_context(|| format!("{cluster} still responds"))
    }

    /// Waits until `find` returns a value for the exchanges.
    async fn until<T>(&self, find: impl Fn(&[Exchange]) -> Option<T>) -> Result<T> {
        let mut grown = self.record.grown.subscribe();
        let waiting = async {
            loop {
                grown.mark_unchanged();
                let found = find(&self.record.exchanges.lock());
                if let Some(found) = found {
                    return Ok(found);
                }
                grown.changed().await?;
            }
        };
        timeout(CHANGE_WITHIN, waiting).await.with_context(|| {
            format!(
                "gave up after {} s; all requests so far: {}",
                CHANGE_WITHIN.as_secs(),
                self.counts()
            )
        })?
    }
}

/// Waits until requests reach each of these clusters. A proxy does not report that it has read a
/// route, so this retries.
pub async fn reaches(address: SocketAddr, host: &str, clusters: &[String]) -> Result<()> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut missing: BTreeSet<&String> = clusters.iter().collect();
    let requests = async {
        while !missing.is_empty() {
            match exchange(&client, address, host, "/").await {
                Ok((Some(cluster), None)) => drop(missing.remove(&cluster)),
                _ => sleep(BETWEEN_ATTEMPTS).await,
            }
        }
    };
    let reached = timeout(CHANGE_WITHIN, requests).await;
    reached.with_context(|| format!("requests to {host} never reach {missing:?}"))
}

/// Sends one connection's share of the requests, one after the other.
async fn send(address: SocketAddr, connection: &Connection, record: &Record) {
    let Connection { hosts, path, every } = connection;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut ticks = interval(*every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for host in hosts.iter().cycle() {
        ticks.tick().await;
        let sent = Instant::now();
        let outcome = timeout(RESPONSE_WITHIN, exchange(&client, address, host, path)).await;
        let (cluster, failure) = match outcome {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => (None, Some(format!("{error:#}"))),
            Err(_) => {
                let within = RESPONSE_WITHIN.as_secs();
                (None, Some(format!("no response within {within} s")))
            }
        };
        record.exchanges.lock().push(Exchange {
            sent,
            ended: Instant::now(),
            cluster,
            failure,
        });
        record.grown.send_replace(());
    }
}

/// Returns the cluster that responded, and the reason if its response is a failure.
async fn exchange(
    client: &Client<HttpConnector, Empty<&'static [u8]>>,
    address: SocketAddr,
    host: &str,
    path: &str,
) -> Result<(Option<String>, Option<String>)> {
    let request = Request::get(format!("http://{address}{path}"))
        .header(HOST, host)
        .body(Empty::new())?;
    let response = client.request(request).await?;
    let status = response.status();
    let cluster = response.headers().get(CLUSTER);
    let cluster = cluster.and_then(|name| Some(name.to_str().ok()?.to_owned()));
    let body = Limited::new(response.into_body(), 1024).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("incomplete response: {error}"))?;
    let failure = (status != StatusCode::OK).then(|| {
        let by = cluster.as_deref().unwrap_or("the proxy");
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        format!("{by}: status {status}, {body}")
    });
    Ok((cluster, failure))
}

/// Returns the exchanges sent after `since`. Exchanges are in the order in which they ended, so none
/// of these precedes the first one that ended after `since`.
fn sent_after(
    exchanges: &[Exchange],
    since: Instant,
) -> impl DoubleEndedIterator<Item = &Exchange> {
    let start = exchanges.partition_point(|exchange| exchange.ended <= since);
    exchanges[start..]
        .iter()
        .filter(move |exchange| exchange.sent > since)
}

// === impl Load ===

impl Load {
    /// Divides the requests among connections, each of which begins with another host.
    fn connections(&self) -> impl Iterator<Item = Connection> {
        let quick = (self.rate / RATE_OF_EACH).max(1);
        let of_each = Duration::from_secs(1) * quick / self.rate.max(1);
        let quick = (0..quick).map(move |_| ("/", of_each));
        let held = (0..self.held).map(|_| (HELD_PATH, HELD));
        quick.chain(held).enumerate().map(|(nth, (path, every))| {
            let mut hosts = self.hosts.clone();
            // Coprime to a hundred hosts, so that no two connections begin alike.
            let first = nth * 7 % hosts.len().max(1);
            hosts.rotate_left(first);
            Connection { hosts, path, every }
        })
    }
}

// === impl Exchange ===

impl Exchange {
    /// Returns `true` if `cluster` responded, with success or not.
    fn is_by(&self, cluster: &str) -> bool {
        self.cluster.as_deref() == Some(cluster)
    }
}

// === impl Counts ===

impl Counts {
    fn of<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Self {
        let mut counts = Self::default();
        for exchange in exchanges {
            let (map, key) = match (&exchange.failure, &exchange.cluster) {
                (Some(why), _) => (&mut counts.failures, why.as_str()),
                (None, Some(cluster)) => (&mut counts.clusters, cluster.as_str()),
                (None, None) => (&mut counts.failures, "a response of no cluster"),
            };
            *map.entry(key.to_owned()).or_default() += 1;
        }
        counts
    }

    /// Returns the number of successful responses of `cluster`.
    pub fn to(&self, cluster: &str) -> u64 {
        self.clusters.get(cluster).copied().unwrap_or_default()
    }

    /// Returns the number of failed requests.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

impl fmt::Display for Counts {
    /// Formats as `member1 12, member2 11, failed 1 (status 503 Service Unavailable)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (cluster, count) in &self.clusters {
            write!(formatter, "{cluster} {count}, ")?;
        }
        write!(formatter, "failed {}", self.failed())?;
        for (why, count) in &self.failures {
            write!(formatter, "; {count} × {why}")?;
        }
        Ok(())
    }
}
