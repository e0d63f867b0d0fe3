use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use embedded_apiserver::{ApiServer, Fault};
use http::{Method, Request};
use jiff::ToSpan;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;
use tower::ServiceExt;

use super::super::election::RENEW_EVERY;
use super::*;
use crate::program::Identity;

const LONG: Duration = Duration::from_hours(1);
/// Longer than a response takes.
const MOMENT: Duration = Duration::from_secs(1);
const NAME: &str = "test";

/// The API server that holds the lease, with a log of requests.
struct Server {
    api: ApiServer,
    requests: Arc<Mutex<Vec<&'static str>>>,
    watches: Arc<AtomicUsize>,
    leases: Api<Lease>,
}

/// A watch that is open.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    fn new() -> Self {
        let server = ApiServer::new();
        Self {
            leases: Api::default_namespaced(Client::new(server.service(), "default")),
            api: server,
            requests: Arc::default(),
            watches: Arc::default(),
        }
    }

    /// Returns a client whose requests are logged.
    fn client(&self) -> Client {
        let (server, requests) = (self.api.service(), Arc::clone(&self.requests));
        let watches = Arc::clone(&self.watches);
        let noting = tower::service_fn(move |request: Request<kube::client::Body>| {
            let verb = verb(&request);
            requests.lock().push(verb);
            let response = server.clone().oneshot(request);
            let watches = Arc::clone(&watches);
            async move {
                let response = response.await?.map(Body::new);
                if verb != "watch" {
                    return std::io::Result::Ok(response);
                }
                watches.fetch_add(1, Ordering::Relaxed);
                let open = Open(watches);
                Ok(response.map(|body| {
                    Body::from_stream(body.into_data_stream().inspect(move |_| _ = &open))
                }))
            }
        });
        Client::new(noting, "default")
    }

    /// Returns the requests since the last call: `read`, `create`, `patch`, `list`, `watch`.
    fn requests(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.requests.lock())
    }

    /// Returns the number of open watches.
    fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Writes the lease as another replica does that holds it, or has released it, with the renew time
    /// `renewed`.
    async fn held_by(&self, holder: Option<&str>, renewed: Timestamp) {
        let lease = json!({
            "metadata": { "name": NAME },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": DURATION.as_secs(),
                "renewTime": MicroTime(renewed),
            },
        });
        if self.leases.get_opt(NAME).await.unwrap().is_some() {
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(lease));
            self.leases.patch(NAME, &parameters, &patch).await.unwrap();
        } else {
            let lease = serde_json::from_value(lease).unwrap();
            let parameters = PostParams::default();
            self.leases.create(&parameters, &lease).await.unwrap();
        }
    }

    /// Deletes the lease without an event of a watch.
    async fn delete_unseen(&self) {
        self.api.faults().inject(Fault::DelayEvents {
            by: LONG,
            coalesce: false,
        });
        let parameters = DeleteParams::default();
        self.leases.delete(NAME, &parameters).await.unwrap();
    }

    async fn lease(&self) -> Option<LeaseSpec> {
        self.leases.get_opt(NAME).await.unwrap()?.spec
    }

    /// Returns the lease's holder without its unique suffix.
    async fn holder(&self) -> Option<String> {
        let holder = self.lease().await?.holder_identity?;
        Some(holder.split('_').next()?.to_owned())
    }
}

fn verb(request: &Request<kube::client::Body>) -> &'static str {
    let listing = request.uri().path().ends_with("/leases");
    let query = request.uri().query().unwrap_or_default();
    match *request.method() {
        Method::POST => "create",
        Method::PATCH => "patch",
        _ if listing && query.contains("watch=true") => "watch",
        _ if listing => "list",
        _ => "read",
    }
}

/// A replica that campaigns for the lease.
struct Replica {
    program: Program,
    leadership: Leadership,
    mode: watch::Sender<CampaignMode>,
}

impl Replica {
    fn start(server: &Server, host: &str, mode: CampaignMode) -> Self {
        Self::start_with(Timestamp::now, server, host, mode)
    }

    fn start_with(
        clock: fn() -> Timestamp,
        server: &Server,
        host: &str,
        mode: CampaignMode,
    ) -> Self {
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        program.clock = clock;
        let (changed, mode) = watch::channel(mode);
        let config = LeaseConfig {
            mode,
            ..LeaseConfig::eager("default".to_owned(), NAME, host.to_owned())
        };
        Self {
            leadership: campaign(&mut program, server.client(), config),
            program,
            mode: changed,
        }
    }

    fn leads(&self) -> bool {
        self.leadership.held_until().is_some()
    }

    async fn stop(mut self) {
        self.program.stopping.cancel();
        assert!(self.program.tasks.drain(LONG).await);
    }
}

/// A replica that does not campaign sends nothing.
#[tokio::test(start_paused = true)]
async fn idle_replica_sends_nothing() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Off);
    sleep(LONG).await;
    assert_eq!(server.requests(), [""; 0]);
    replica.stop().await;
    assert_eq!(server.requests(), [""; 0]);
}

/// A replica that finds a leader sends three requests and then none while it watches.
#[tokio::test(start_paused = true)]
async fn follower_watches_without_requests() {
    let server = Server::new();
    let leader = Replica::start(&server, "a", CampaignMode::Eager);
    leader.leadership.acquired().await;
    sleep(MOMENT).await;
    let before = server.watches();
    server.requests();
    let replica = Replica::start(&server, "b", CampaignMode::Eager);
    sleep(Duration::from_mins(1)).await;
    let mut requests = server.requests();
    requests.retain(|verb| *verb != "patch");
    assert_eq!(requests, ["read", "list", "watch"]);
    assert_eq!(server.watches(), before + 1);
    replica.mode.send_replace(CampaignMode::Off);
    sleep(Duration::from_mins(1)).await;
    let mut requests = server.requests();
    requests.retain(|verb| *verb != "patch");
    assert_eq!((server.watches(), requests.len()), (before, 0));
}

/// A leader keeps leading although it no longer campaigns.
#[tokio::test(start_paused = true)]
async fn leader_outlasts_its_campaign() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Eager);
    replica.leadership.acquired().await;
    replica.mode.send_replace(CampaignMode::Off);
    sleep(LONG).await;
    assert!(replica.leads());
    replica.stop().await;
    assert_eq!(server.holder().await, None);
}

/// A released lease is taken in the same moment.
#[tokio::test(start_paused = true)]
async fn released_lease_is_taken_instantly() {
    let server = Server::new();
    let first = Replica::start(&server, "a", CampaignMode::Eager);
    first.leadership.acquired().await;
    let second = Replica::start(&server, "b", CampaignMode::Eager);
    let idle = Replica::start(&server, "c", CampaignMode::Off);
    sleep(LONG).await;
    let released = Instant::now();
    first.stop().await;
    second.leadership.acquired().await;
    assert_eq!(released.elapsed(), Duration::ZERO);
    assert!(!idle.leads());
}

/// The lease of a dead leader is taken as soon as it has run out.
#[tokio::test(start_paused = true)]
async fn expired_lease_is_taken() {
    let server = Server::new();
    let first = Replica::start(&server, "a", CampaignMode::Eager);
    first.leadership.acquired().await;
    let second = Replica::start(&server, "b", CampaignMode::Eager);
    sleep(LONG).await;
    let killed = Instant::now();
    drop(first);
    second.leadership.acquired().await;
    assert!(killed.elapsed() <= DURATION, "{:?}", killed.elapsed());
    assert_eq!(server.holder().await.as_deref(), Some("b"));
}

/// A leader that cannot renew stops leading before another may begin.
#[tokio::test(start_paused = true)]
async fn unrenewed_leadership_ends_first() {
    for fault in [Fault::Unavailable, Fault::Disconnect, Fault::Silence] {
        let server = Server::new();
        let replica = Replica::start(&server, "a", CampaignMode::Eager);
        replica.leadership.acquired().await;
        let cut_off = Instant::now();
        server.api.faults().inject(fault.clone());
        replica.leadership.lost().await;
        assert!(cut_off.elapsed() < DURATION, "{fault:?}");
        assert!(!replica.leads());
    }
}

/// A server unavailable for an hour is queried every two seconds and found at once.
#[tokio::test(start_paused = true)]
async fn unavailable_server_is_retried_steadily() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Eager);
    replica.leadership.acquired().await;
    server.api.faults().inject(Fault::Unavailable);
    server.requests();
    sleep(LONG).await;
    // The watch is tried again until the first renewal fails, after a random time each.
    let mut requests = server.requests();
    requests.retain(|verb| *verb != "watch");
    let requests = u64::try_from(requests.len()).unwrap();
    // At both ends of the hour a request may fall within it, depending on the spread.
    assert!(
        requests <= LONG.as_secs() / RETRY_EVERY.as_secs() + 2,
        "{requests}"
    );
    server.api.faults().clear();
    let back = Instant::now();
    replica.leadership.acquired().await;
    assert!(back.elapsed() <= RETRY_EVERY);
}

/// Replicas that campaign together spread their attempts.
#[tokio::test(start_paused = true)]
async fn many_replicas_spread_attempts() {
    let server = Server::new();
    server.api.faults().inject(Fault::Unavailable);
    let spread = Duration::from_mins(10);
    let replicas: Vec<_> = (0..100)
        .map(|_| Replica::start(&server, "a", CampaignMode::Spread(spread)))
        .collect();
    sleep(MOMENT).await;
    assert_eq!(server.requests().len(), replicas.len());
    // Every five minutes on average; a hundred replicas that ask every two seconds ask 180,000 times.
    sleep(LONG).await;
    let requests = server.requests().len();
    assert!((1_000..2_000).contains(&requests), "{requests}");
}

/// A replica that becomes eager no longer waits its turn.
#[tokio::test(start_paused = true)]
async fn eager_replica_retries_soon() {
    let server = Server::new();
    server.api.faults().inject(Fault::Unavailable);
    let replica = Replica::start(&server, "a", CampaignMode::Spread(24 * LONG));
    sleep(MOMENT).await;
    server.api.faults().clear();
    replica.mode.send_replace(CampaignMode::Eager);
    let eager = Instant::now();
    replica.leadership.acquired().await;
    assert!(eager.elapsed() <= RETRY_EVERY);
}

/// Of many replicas that campaign at once exactly one leads.
#[tokio::test(start_paused = true)]
async fn one_of_many_leads() {
    let server = Server::new();
    let replicas: Vec<_> = (0..20)
        .map(|number| Replica::start(&server, &format!("host{number}"), CampaignMode::Eager))
        .collect();
    for _ in 0..100 {
        sleep(Duration::from_secs(7)).await;
        let leaders = replicas.iter().filter(|replica| replica.leads()).count();
        assert_eq!(leaders, 1);
    }
}

/// A lease deleted unseen is created again and leadership continues.
#[tokio::test(start_paused = true)]
async fn deleted_lease_is_recreated() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Eager);
    replica.leadership.acquired().await;
    // Between two renewals.
    sleep(LONG + MOMENT).await;
    server.delete_unseen().await;
    server.requests();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(server.requests(), ["patch", "read", "create"]);
    assert_eq!(server.holder().await.as_deref(), Some("a"));
    assert!(replica.leads());
}

/// A missing namespace is waited for.
#[tokio::test(start_paused = true)]
async fn missing_namespace_is_awaited() {
    let server = Server::new();
    let mut program = Program::new(
        Identity::for_tests(),
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    );
    let config = LeaseConfig::eager("late".to_owned(), NAME, "a".to_owned());
    let leadership = campaign(&mut program, server.client(), config);
    sleep(LONG).await;
    let requests = u64::try_from(server.requests().len()).unwrap();
    // It is read, found missing, and created in vain, each time.
    assert!(
        requests <= LONG.as_secs() / RETRY_EVERY.as_secs() + 2,
        "{requests}"
    );
    let late = json!({ "metadata": { "name": "late" } });
    let late: Namespace = serde_json::from_value(late).unwrap();
    let namespaces = Api::all(Client::new(server.api.service(), "default"));
    let parameters = PostParams::default();
    namespaces.create(&parameters, &late).await.unwrap();
    leadership.acquired().await;
}

/// A server that calls every write a conflict is not queried without pause.
#[tokio::test(start_paused = true)]
async fn endless_conflicts_are_paced() {
    let server = Server::new();
    server.held_by(None, Timestamp::UNIX_EPOCH).await;
    server.api.faults().inject(Fault::Conflict);
    let _replica = Replica::start(&server, "a", CampaignMode::Eager);
    sleep(LONG).await;
    let requests = u64::try_from(server.requests().len()).unwrap();
    assert!(
        requests <= 4 * LONG.as_secs() / RETRY_EVERY.as_secs(),
        "{requests}"
    );
}

/// A lease is held for its whole duration whatever its timestamps.
#[tokio::test(start_paused = true)]
async fn timestamps_do_not_matter() {
    for renewed in [
        Timestamp::UNIX_EPOCH,
        Timestamp::now() - 10.hours(),
        Timestamp::now() + 10.hours(),
        Timestamp::MAX,
    ] {
        let server = Server::new();
        server.held_by(Some("other_1"), renewed).await;
        let replica = Replica::start(&server, "a", CampaignMode::Eager);
        let found = Instant::now();
        replica.leadership.acquired().await;
        assert_eq!(found.elapsed(), DURATION, "{renewed}");
    }
}

/// A holder whose clock jumps keeps the lease while it renews.
#[tokio::test(start_paused = true)]
async fn jumping_holder_keeps_lease() {
    let server = Server::new();
    let now = Timestamp::now();
    server.held_by(Some("other_1"), now).await;
    let replica = Replica::start(&server, "a", CampaignMode::Eager);
    for hours in [5, -7, 0, 48, -48].into_iter().cycle().take(100) {
        sleep(RENEW_EVERY).await;
        server.held_by(Some("other_1"), now + hours.hours()).await;
        assert!(!replica.leads());
    }
    let last = Instant::now();
    replica.leadership.acquired().await;
    assert_eq!(last.elapsed(), DURATION);
}

thread_local! {
    /// The system's clock of a replica.
    static CLOCK: Cell<Timestamp> = const { Cell::new(Timestamp::UNIX_EPOCH) };
}

/// Advances by a second with each reading.
fn clock() -> Timestamp {
    CLOCK.set(CLOCK.get() + 1.second());
    CLOCK.get()
}

/// A leader whose own clock jumps keeps leading and writes the time of its clock.
#[tokio::test(start_paused = true)]
async fn own_clock_may_jump() {
    let server = Server::new();
    let began: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    CLOCK.set(began);
    let leader = Replica::start_with(clock, &server, "a", CampaignMode::Eager);
    leader.leadership.acquired().await;
    let standby = Replica::start(&server, "b", CampaignMode::Eager);
    for hours in [5, -7, 0, 48, -48] {
        CLOCK.set(began + hours.hours());
        for _ in 0..20 {
            sleep(RENEW_EVERY).await;
            assert!(leader.leads() && !standby.leads());
        }
        let lease = server.lease().await.unwrap();
        assert_eq!(lease.renew_time.unwrap().0, CLOCK.get());
        assert_eq!(lease.lease_transitions, Some(0));
    }
}

/// Each write of the lease names the program, whatever the lease is called: `kubectl remedy check` tells by that which
/// program leads.
#[tokio::test(start_paused = true)]
async fn lease_names_its_writer() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Eager);
    replica.leadership.acquired().await;
    sleep(2 * RENEW_EVERY).await;
    replica.stop().await;
    let lease = server.leases.get(NAME).await.unwrap();
    let entries = lease.metadata.managed_fields.unwrap_or_default();
    let managers: Vec<_> = entries
        .into_iter()
        .filter_map(|entry| entry.manager)
        .collect();
    assert_eq!(managers, [Identity::for_tests().name]);
}

/// A lease is given back although its state is unknown.
/// A conflict, or an event out of order, leaves the state of the lease unknown.
#[tokio::test(start_paused = true)]
async fn unknown_lease_is_given_back() {
    for mode in [Some(CampaignMode::Withdrawn), None] {
        let server = Server::new();
        let replica = Replica::start(&server, "a", CampaignMode::Eager);
        replica.leadership.acquired().await;
        sleep(MOMENT).await;
        // The renewals fail from here on, and so do the reads that would clear it up.
        server.api.faults().inject(Fault::Conflict);
        sleep(RENEW_EVERY).await;
        assert!(replica.leads());
        server.api.faults().clear();
        match mode {
            Some(mode) => {
                replica.mode.send_replace(mode);
                sleep(Duration::from_secs(3)).await;
            }
            None => replica.stop().await,
        }
        assert_eq!(server.holder().await, None);
    }
}
