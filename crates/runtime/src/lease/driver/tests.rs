use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiserver::{ApiServer, Fault};
use axum::body::Body;
use http::{Method, Request};
use jiff::ToSpan;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use parking_lot::Mutex;
use tokio::time::sleep;
use tower::ServiceExt;

use super::super::election::RENEW_EVERY;
use super::*;

const LONG: Duration = Duration::from_hours(1);
/// More than an answer takes.
const MOMENT: Duration = Duration::from_secs(1);
const NAME: &str = "test";

/// The API server that holds the lease, and what the replicas ask of it.
struct Server {
    api: ApiServer,
    asked: Arc<Mutex<Vec<&'static str>>>,
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
            asked: Arc::default(),
            watches: Arc::default(),
        }
    }

    /// A client whose requests are noted.
    fn client(&self) -> Client {
        let (server, asked) = (self.api.service(), Arc::clone(&self.asked));
        let watches = Arc::clone(&self.watches);
        let noting = tower::service_fn(move |request: Request<kube::client::Body>| {
            let what = what(&request);
            asked.lock().push(what);
            let answer = server.clone().oneshot(request);
            let watches = Arc::clone(&watches);
            async move {
                let answer = answer.await?;
                if what != "watch" {
                    return std::io::Result::Ok(answer);
                }
                watches.fetch_add(1, Ordering::Relaxed);
                let open = Open(watches);
                let lines = |body: Body| body.into_data_stream().inspect(move |_| _ = &open);
                Ok(answer.map(|body| Body::from_stream(lines(body))))
            }
        });
        Client::new(noting, "default")
    }

    /// What was asked since the last call: `read`, `create`, `patch`, `list`, `watch`.
    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock())
    }

    /// How many watches are open.
    fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Somebody else holds the lease, or, without a name, has given it back, and says that this was
    /// its time.
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

    /// The lease goes, and no watch tells of it.
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

    /// The lease's holder, up to the `_` before what makes it unique.
    async fn holder(&self) -> Option<String> {
        let holder = self.lease().await?.holder_identity?;
        Some(holder.split('_').next()?.to_owned())
    }
}

fn what(request: &Request<kube::client::Body>) -> &'static str {
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
    seeking: watch::Sender<Seeking>,
}

impl Replica {
    fn start(server: &Server, host: &str, seeking: Seeking) -> Self {
        Self::start_with(Timestamp::now, server, host, seeking)
    }

    fn start_with(clock: fn() -> Timestamp, server: &Server, host: &str, seeking: Seeking) -> Self {
        let mut program = Program::new("test", SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        program.clock = clock;
        let (changed, seeking) = watch::channel(seeking);
        let own = Candidate {
            seeking,
            ..Candidate::always("default".to_owned(), NAME, host.to_owned())
        };
        Self {
            leadership: campaign(&mut program, server.client(), own),
            program,
            seeking: changed,
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
async fn one_that_does_not_seek_sends_nothing() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", Seeking::No);
    sleep(LONG).await;
    assert_eq!(server.asked(), [""; 0]);
    replica.stop().await;
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_that_finds_a_leader_costs_three_requests_and_then_none_while_it_watches() {
    let server = Server::new();
    let leader = Replica::start(&server, "a", Seeking::Eagerly);
    leader.leadership.acquired().await;
    sleep(MOMENT).await;
    let before = server.watches();
    server.asked();
    let replica = Replica::start(&server, "b", Seeking::Eagerly);
    sleep(Duration::from_mins(1)).await;
    let mut asked = server.asked();
    asked.retain(|what| *what != "patch");
    assert_eq!(asked, ["read", "list", "watch"]);
    assert_eq!(server.watches(), before + 1);
    replica.seeking.send_replace(Seeking::No);
    sleep(Duration::from_mins(1)).await;
    let mut asked = server.asked();
    asked.retain(|what| *what != "patch");
    assert_eq!((server.watches(), asked.len()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn one_that_leads_goes_on_leading_although_it_no_longer_seeks() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", Seeking::Eagerly);
    replica.leadership.acquired().await;
    replica.seeking.send_replace(Seeking::No);
    sleep(LONG).await;
    assert!(replica.leads());
    replica.stop().await;
    assert_eq!(server.holder().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_back_is_taken_in_the_same_moment() {
    let server = Server::new();
    let first = Replica::start(&server, "a", Seeking::Eagerly);
    first.leadership.acquired().await;
    let second = Replica::start(&server, "b", Seeking::Eagerly);
    let idle = Replica::start(&server, "c", Seeking::No);
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
    let first = Replica::start(&server, "a", Seeking::Eagerly);
    first.leadership.acquired().await;
    let second = Replica::start(&server, "b", Seeking::Eagerly);
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
        let replica = Replica::start(&server, "a", Seeking::Eagerly);
        replica.leadership.acquired().await;
        let cut_off = Instant::now();
        server.api.faults().inject(fault.clone());
        replica.leadership.lost().await;
        assert!(cut_off.elapsed() < DURATION, "{fault:?}");
        assert!(!replica.leads());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_an_hour_is_asked_every_two_seconds_and_found_at_once() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", Seeking::Eagerly);
    replica.leadership.acquired().await;
    server.api.faults().inject(Fault::Unavailable);
    server.asked();
    sleep(LONG).await;
    // The watch is tried again until the first renewal fails, after a random time each.
    let mut asked = server.asked();
    asked.retain(|what| *what != "watch");
    let asked = u64::try_from(asked.len()).unwrap();
    // At both ends of the hour a request may fall within it, depending on the spread.
    assert!(
        asked <= LONG.as_secs() / RETRY_EVERY.as_secs() + 2,
        "{asked}"
    );
    server.api.faults().clear();
    let back = Instant::now();
    replica.leadership.acquired().await;
    assert!(back.elapsed() <= RETRY_EVERY);
}

#[tokio::test(start_paused = true)]
async fn those_who_seek_together_spread_their_attempts() {
    let server = Server::new();
    server.api.faults().inject(Fault::Unavailable);
    let spread = Duration::from_mins(10);
    let replicas: Vec<_> = (0..100)
        .map(|_| Replica::start(&server, "a", Seeking::Spread(spread)))
        .collect();
    sleep(MOMENT).await;
    assert_eq!(server.asked().len(), replicas.len());
    // Every five minutes on average; a hundred replicas that ask every two seconds ask 180,000 times.
    sleep(LONG).await;
    let asked = server.asked().len();
    assert!((1_000..2_000).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn one_that_becomes_eager_no_longer_waits_its_turn() {
    let server = Server::new();
    server.api.faults().inject(Fault::Unavailable);
    let replica = Replica::start(&server, "a", Seeking::Spread(24 * LONG));
    sleep(MOMENT).await;
    server.api.faults().clear();
    replica.seeking.send_replace(Seeking::Eagerly);
    let eager = Instant::now();
    replica.leadership.acquired().await;
    assert!(eager.elapsed() <= RETRY_EVERY);
}

#[tokio::test(start_paused = true)]
async fn of_many_who_seek_at_once_exactly_one_leads() {
    let server = Server::new();
    let replicas: Vec<_> = (0..20)
        .map(|number| Replica::start(&server, &format!("host{number}"), Seeking::Eagerly))
        .collect();
    for _ in 0..100 {
        sleep(Duration::from_secs(7)).await;
        let leaders = replicas.iter().filter(|replica| replica.leads()).count();
        assert_eq!(leaders, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_deleted_unseen_is_made_again_and_leadership_goes_on() {
    let server = Server::new();
    let replica = Replica::start(&server, "a", Seeking::Eagerly);
    replica.leadership.acquired().await;
    // Between two renewals.
    sleep(LONG + MOMENT).await;
    server.delete_unseen().await;
    server.asked();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(server.asked(), ["patch", "read", "create"]);
    assert_eq!(server.holder().await.as_deref(), Some("a"));
    assert!(replica.leads());
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_waited_for() {
    let server = Server::new();
    let mut program = Program::new("test", SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let own = Candidate::always("late".to_owned(), NAME, "a".to_owned());
    let leadership = campaign(&mut program, server.client(), own);
    sleep(LONG).await;
    let asked = u64::try_from(server.asked().len()).unwrap();
    // It is read, found missing, and created in vain, each time.
    assert!(
        asked <= LONG.as_secs() / RETRY_EVERY.as_secs() + 2,
        "{asked}"
    );
    let late = json!({ "metadata": { "name": "late" } });
    let late: Namespace = serde_json::from_value(late).unwrap();
    let namespaces = Api::all(Client::new(server.api.service(), "default"));
    let parameters = PostParams::default();
    namespaces.create(&parameters, &late).await.unwrap();
    leadership.acquired().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_calls_every_write_a_conflict_is_not_asked_without_pause() {
    let server = Server::new();
    server.held_by(None, Timestamp::UNIX_EPOCH).await;
    server.api.faults().inject(Fault::Conflict);
    let _replica = Replica::start(&server, "a", Seeking::Eagerly);
    sleep(LONG).await;
    let asked = u64::try_from(server.asked().len()).unwrap();
    assert!(
        asked <= 4 * LONG.as_secs() / RETRY_EVERY.as_secs(),
        "{asked}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_given_its_whole_time_whatever_time_of_day_it_wrote() {
    for renewed in [
        Timestamp::UNIX_EPOCH,
        Timestamp::now() - 10.hours(),
        Timestamp::now() + 10.hours(),
        Timestamp::MAX,
    ] {
        let server = Server::new();
        server.held_by(Some("other_1"), renewed).await;
        let replica = Replica::start(&server, "a", Seeking::Eagerly);
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
    let replica = Replica::start(&server, "a", Seeking::Eagerly);
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

/// Goes on a little each time that somebody looks.
fn clock() -> Timestamp {
    CLOCK.set(CLOCK.get() + 1.second());
    CLOCK.get()
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_own_clock_jumps_goes_on_leading_and_writes_what_its_clock_says() {
    let server = Server::new();
    let began: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    CLOCK.set(began);
    let leader = Replica::start_with(clock, &server, "a", Seeking::Eagerly);
    leader.leadership.acquired().await;
    let standby = Replica::start(&server, "b", Seeking::Eagerly);
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
