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
                let response = response.await?;
                if verb != "watch" {
                    return std::io::Result::Ok(response);
                }
                watches.fetch_add(1, Ordering::Relaxed);
                let open = Open(watches);
                let lines = |body: Body| body.into_data_stream().inspect(move |_| _ = &open);
                Ok(response.map(|body| Body::from_stream(lines(body))))
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

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_campaign_sends_nothing() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Off);
    sleep(LONG).await;
    assert_eq!(server.requests(), [""; 0]);
    replica.stop().await;
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_finds_a_leader_sends_three_requests_and_then_none_while_it_watches() {
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

#[tokio::test(start_paused = true)]
async fn a_leader_keeps_leading_although_it_no_longer_campaigns() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", CampaignMode::Eager);
    replica.leadership.acquired().await;
    replica.mode.send_replace(CampaignMode::Off);
    sleep(LONG).await;
    assert!(replica.leads());
    replica.stop().await;
    assert_eq!(server.holder().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_in_the_same_moment() {
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

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dead_leader_is_taken_as_soon_as_it_has_run_out() {
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

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_leading_before_another_may_begin() {
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

#[tokio::test(start_paused = true)]
async fn a_server_unavailable_for_an_hour_is_queried_every_two_seconds_and_found_at_once() {
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

#[tokio::test(start_paused = true)]
async fn replicas_that_campaign_together_spread_their_attempts() {
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

#[tokio::test(start_paused = true)]
async fn a_replica_that_becomes_eager_no_longer_waits_its_turn() {
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

#[tokio::test(start_paused = true)]
async fn of_many_replicas_that_campaign_at_once_exactly_one_leads() {
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

#[tokio::test(start_paused = true)]
async fn a_lease_deleted_unseen_is_created_again_and_leadership_continues() {
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

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_waited_for() {
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

#[tokio::test(start_paused = true)]
async fn a_server_that_calls_every_write_a_conflict_is_not_queried_without_pause() {
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

#[tokio::test(start_paused = true)]
async fn a_lease_is_held_for_its_whole_duration_whatever_its_timestamps() {
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

#[tokio::test(start_paused = true)]
async fn a_holder_whose_clock_jumps_keeps_the_lease_while_it_renews() {
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

#[tokio::test(start_paused = true)]
async fn a_leader_whose_own_clock_jumps_keeps_leading_and_writes_the_time_of_its_clock() {
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

/// A conflict, or an event out of order, leaves the state of the lease unknown.
#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_although_its_state_is_unknown() {
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
