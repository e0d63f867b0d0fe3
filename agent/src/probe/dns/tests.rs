mod families;
mod load;
mod options;
mod outages;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use health::dns::DnsClass;
use health::observation::{Failure, Observation, Partial};
use health::resolvers::Judge;
use health::threshold::Round;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RecordType};
use karmada_runtime::metrics::Registry;
use lab_parts::dns::{Behaviour, DnsServer, KUBERNETES, Received, Response};
use lab_parts::port::CLOSED;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

use super::direct_checks::{AddressSource, DirectServers, DirectTargets};
use super::exchange::ProbeError;
use super::round::{RoundResult, both};
use super::*;

/// A deadline that a round over loopback meets on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);
/// The deadline of rounds that are to run out of time.
const SHORT: Duration = Duration::from_millis(400);

const POD: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local\n\
                   nameserver 192.0.2.1\noptions ndots:5\n";

/// A probe of `kubernetes.default` with a resolv.conf of its own.
struct Location {
    folder: TempDir,
    probe: DnsProbe,
    period: Duration,
}

impl Location {
    fn new(resolv_conf: &str, nameservers: &[SocketAddr], timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolv.conf");
        std::fs::write(&path, resolv_conf).unwrap();
        let probe = DnsProbe {
            names: vec![Name::from_ascii("kubernetes.default").unwrap()],
            expected: Vec::new(),
            api: None,
            judge: Judge::default(),
            uncached: false,
            nameservers: nameservers.to_vec(),
            timeout,
            resolv_conf: path,
            direct: DirectTargets {
                service: AddressSource::None,
                pods: AddressSource::None,
                dns_service: (String::new(), String::new()),
            },
        };
        Self {
            folder,
            probe,
            period: 2 * timeout,
        }
    }

    fn prober(&self, direct: DirectServers) -> Prober<Network> {
        self.prober_with(Network, direct)
    }

    fn prober_with<C: DnsClient>(&self, client: C, direct: DirectServers) -> Prober<C> {
        let (_changed, direct) = watch::channel(direct);
        let metrics = DnsMetrics::register(&mut Registry::default());
        let random = Rng::with_seed(7);
        Prober::new(self.probe.clone(), client, direct, metrics, random)
    }

    async fn observe(&self) -> Observation {
        self.prober(DirectServers::default())
            .round()
            .await
            .observation()
    }
}

fn failed(class: DnsClass, server: SocketAddr) -> Observation {
    Observation::Failed(Failure::new(class, server))
}

fn code(code: ResponseCode) -> Response {
    Response::Code(code)
}

async fn serving(behaviour: impl Into<Behaviour>) -> DnsServer {
    DnsServer::start(behaviour).await.unwrap()
}

/// Starts a server that knows this name and denies all others.
async fn knowing(name: &str) -> DnsServer {
    serving(Behaviour::zone([name], Response::Loopback)).await
}

#[tokio::test]
async fn a_healthy_round_sends_the_queries_of_a_pod() {
    let server = knowing(KUBERNETES).await;
    let place = Location::new(POD, &[server.address()], AMPLE);
    assert_eq!(place.observe().await, Observation::Success);
    let asked = server.received();
    let names: Vec<_> = asked
        .iter()
        .map(|asked| asked.query.name.to_string())
        .collect();
    let (first, second) = names.split_at(2);
    assert_eq!(first, ["kubernetes.default.shop.svc.cluster.local."; 2]);
    assert_ne!(asked[0].query.query_type, asked[1].query.query_type);
    // One address suffices; the query for the other family may still be on its way.
    assert!(!second.is_empty() && second.len() <= 2);
    assert!(
        second
            .iter()
            .all(|name| name == "kubernetes.default.svc.cluster.local.")
    );
}

/// Returns a resolv.conf with so many suffixes.
fn searching(suffixes: usize) -> String {
    let search: Vec<_> = (0..suffixes)
        .map(|place| format!("s{place}.local"))
        .collect();
    format!("options ndots:5\nsearch {}\n", search.join(" "))
}

/// Replies that make a round fail in each class; none where nobody listens.
fn failures() -> [(Option<Response>, DnsClass); 9] {
    let truncated = Response::Truncated(Box::new(Response::Close));
    [
        (Some(Response::Drop), DnsClass::Timeout),
        (None, DnsClass::Unreachable),
        (Some(code(ResponseCode::ServFail)), DnsClass::ServFail),
        (Some(code(ResponseCode::Refused)), DnsClass::Refused),
        (Some(code(ResponseCode::FormErr)), DnsClass::Refused),
        (Some(truncated), DnsClass::Truncated),
        (Some(Response::Foreign), DnsClass::Mismatch),
        (Some(code(ResponseCode::NXDomain)), DnsClass::NxDomain),
        (Some(Response::NoData), DnsClass::NoData),
    ]
}

/// Runs a round with so many suffixes at so many servers, all of which fail alike.
async fn a_failing_round(
    (reply, class): (Option<Response>, DnsClass),
    (suffixes, servers): (usize, usize),
) {
    let mut listening = Vec::new();
    for reply in std::iter::repeat_n(reply, servers).flatten() {
        listening.push(serving(reply).await);
    }
    let mut addresses: Vec<_> = listening.iter().map(DnsServer::address).collect();
    addresses.resize(servers, CLOSED);
    let silent = class == DnsClass::Timeout;
    // All shapes run at once, and each must send every query before its deadline on a busy machine.
    let limit = if silent { 5 * SHORT } else { AMPLE };
    let place = Location::new(&searching(suffixes), &addresses, limit);
    let case = format!("{class}, {suffixes} suffixes, {servers} servers");
    let expected = failed(class, addresses[0]);
    assert_eq!(place.observe().await, expected, "{case}");
    for server in listening {
        // Two families; a query without a response is sent again once, if there is time.
        let (asked, once) = (server.count(Transport::Udp), 2 * (suffixes + 1));
        let copies = if silent { 2 } else { 1 };
        assert!((once..=copies * once).contains(&asked), "{case}: {asked}");
    }
}

#[tokio::test]
async fn a_failed_round_has_the_class_and_the_server_for_any_number_of_suffixes_and_servers() {
    let classes: BTreeSet<_> = failures().into_iter().map(|(_, class)| class).collect();
    assert_eq!(classes.into_iter().collect::<Vec<_>>(), DnsClass::ALL);
    for failure in failures() {
        let shapes = (0..=6).flat_map(|suffixes| (1..=3).map(move |servers| (suffixes, servers)));
        join_all(shapes.map(|shape| a_failing_round(failure.clone(), shape))).await;
    }
}

#[tokio::test]
async fn a_server_that_loses_a_share_of_its_responses_or_is_slow_resolves() {
    let lossy = |received: &Received| match received.query.name.to_string().as_str() {
        "kubernetes.default.s1.local." if received.repeated => Response::Loopback,
        "kubernetes.default.s1.local." => Response::Drop,
        _ => code(ResponseCode::NXDomain),
    };
    let slow = Response::Delayed(SHORT / 8, Box::new(Response::Loopback));
    let servers = [serving(Behaviour::new(lossy)).await, serving(slow).await];
    for server in servers {
        let place = Location::new(&searching(3), &[server.address()], AMPLE / 10);
        assert_eq!(place.observe().await, Observation::Success);
    }
}

#[tokio::test]
async fn each_round_observes_a_flapping_server_as_it_is_now() {
    let server = knowing(KUBERNETES).await;
    let place = Location::new(POD, &[server.address()], AMPLE);
    let mut prober = place.prober(DirectServers::default());
    for _ in 0..3 {
        server.set(Behaviour::zone([KUBERNETES], Response::Loopback));
        assert_eq!(prober.round().await.observation(), Observation::Success);
        server.set(code(ResponseCode::ServFail));
        let down = failed(DnsClass::ServFail, server.address());
        assert_eq!(prober.round().await.observation(), down);
    }
}

#[tokio::test]
async fn a_closed_port_is_unreachable_at_once() {
    let server = CLOSED;
    let started = Instant::now();
    let place = Location::new(POD, &[server], AMPLE);
    assert_eq!(place.observe().await, failed(DnsClass::Unreachable, server));
    assert!(started.elapsed() < AMPLE);
}

#[tokio::test]
async fn no_search_list_makes_a_silent_round_longer_than_its_deadline() {
    for suffixes in [0, 3, 5, 6] {
        let server = serving(Response::Drop).await;
        let place = Location::new(&searching(suffixes), &[server.address()], SHORT);
        let started = Instant::now();
        assert_eq!(
            place.observe().await,
            failed(DnsClass::Timeout, server.address())
        );
        let took = started.elapsed();
        assert!(
            took >= SHORT && took < SHORT + AMPLE,
            "{suffixes}: {took:?}"
        );
        // Two families, each sent at most twice.
        let queries = server.count(Transport::Udp);
        assert!(queries <= 4 * (suffixes + 1), "{suffixes}: {queries}");
    }
}

#[tokio::test]
async fn one_good_server_among_bad_ones_resolves() {
    let good = knowing(KUBERNETES).await;
    let bad = [
        serving(Response::Drop).await,
        serving(code(ResponseCode::ServFail)).await,
        serving(code(ResponseCode::NXDomain)).await,
    ];
    for bad in bad {
        let place = Location::new(POD, &[bad.address(), good.address()], AMPLE / 10);
        assert_eq!(place.observe().await, Observation::Success);
    }
}

#[tokio::test]
async fn every_name_must_resolve() {
    let server = knowing(KUBERNETES).await;
    let mut place = Location::new(POD, &[server.address()], AMPLE);
    place
        .probe
        .names
        .push(Name::from_ascii("other.default").unwrap());
    assert_eq!(
        place.observe().await,
        failed(DnsClass::NxDomain, server.address())
    );
}

#[tokio::test]
async fn a_round_that_cannot_send_a_query_is_no_observation() {
    let unreadable = Location::new(POD, &[], AMPLE);
    let path = unreadable.folder.path().join("resolv.conf");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(unreadable.observe().await, Observation::Internal);
}

/// A file without a server, and none at all, mean the server on this host, as for every resolver.
#[tokio::test]
async fn without_a_server_this_host_is_queried() {
    let case =
        "search default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";
    let mut place = Location::new(case, &[], AMPLE);
    place.probe.api = Some([10, 96, 0, 1].into());
    for here in ["127.0.0.1:53", "[::1]:53"] {
        let here = Only(here.parse().unwrap());
        let mut prober = place.prober_with(here, DirectServers::default());
        assert_eq!(prober.round().await.observation(), Observation::Success);
    }
    std::fs::remove_file(&place.probe.resolv_conf).unwrap();
    let here = Only("127.0.0.1:53".parse().unwrap());
    let mut prober = place.prober_with(here, DirectServers::default());
    assert_eq!(prober.round().await.observation(), Observation::Success);
}

#[tokio::test]
async fn resolv_conf_is_read_anew_for_every_round() {
    let server = knowing("kubernetes.default.b.local.").await;
    let place = Location::new(
        "search a.local\noptions ndots:5\n",
        &[server.address()],
        AMPLE,
    );
    assert_eq!(
        place.observe().await,
        failed(DnsClass::NxDomain, server.address())
    );
    std::fs::write(
        &place.probe.resolv_conf,
        "search b.local\noptions ndots:5\n",
    )
    .unwrap();
    assert_eq!(place.observe().await, Observation::Success);
}

/// One server that knows every name; all others refuse.
struct Only(SocketAddr);

impl DnsClient for Only {
    async fn query(
        &self,
        server: SocketAddr,
        _transport: Transport,
        query: Query,
        _deadline: Instant,
    ) -> io::Result<exchange::Response> {
        if server == self.0 {
            return Ok(exchange::Response::known(query));
        }
        Ok(exchange::Response::of(DnsClass::Refused))
    }
}

#[tokio::test]
async fn a_name_server_that_replaces_another_is_queried_from_the_next_round_on() {
    let [old, new] = [10, 11].map(|last| SocketAddr::from(([10, 96, 0, last], 53)));
    let place = Location::new(&format!("nameserver {}\n", old.ip()), &[], AMPLE);
    let mut prober = place.prober_with(Only(new), DirectServers::default());
    let refused = failed(DnsClass::Refused, old);
    assert_eq!(prober.round().await.observation(), refused);
    // Renamed into place, as the kubelet and NetworkManager do: no reader sees half a file.
    let next = place.folder.path().join("next");
    std::fs::write(&next, format!("nameserver {}\n", new.ip())).unwrap();
    std::fs::rename(&next, &place.probe.resolv_conf).unwrap();
    let resolved = Observation::Success;
    assert_eq!(prober.round().await.observation(), resolved);
    std::fs::remove_file(&place.probe.resolv_conf).unwrap();
    let here = failed(DnsClass::Refused, "127.0.0.1:53".parse().unwrap());
    assert_eq!(prober.round().await.observation(), here);
    let both = format!("nameserver {}\nnameserver {}\n", old.ip(), new.ip());
    std::fs::write(&place.probe.resolv_conf, both).unwrap();
    assert_eq!(prober.round().await.observation(), resolved);
}

#[test]
fn a_name_that_fails_outweighs_one_that_could_not_be_queried() {
    let server: SocketAddr = "10.96.0.10:53".parse().unwrap();
    let fails = |class| Err(ProbeError::Failed(Failure::new(class, server)));
    let internal = || Err(ProbeError::Internal(io::Error::other("no socket")));
    let cases = [
        (Ok(()), Ok(()), Observation::Success),
        (Ok(()), internal(), Observation::Internal),
        (
            internal(),
            fails(DnsClass::NxDomain),
            failed(DnsClass::NxDomain, server),
        ),
        (
            fails(DnsClass::NxDomain),
            fails(DnsClass::Timeout),
            failed(DnsClass::Timeout, server),
        ),
        (
            fails(DnsClass::Refused),
            Ok(()),
            failed(DnsClass::Refused, server),
        ),
    ];
    for (one, other, expected) in cases {
        let result = both(one, other);
        let round = RoundResult {
            result,
            diagnosis: None,
            partial: Partial::default(),
        };
        assert_eq!(round.observation(), expected);
    }
}

#[tokio::test]
async fn rounds_are_scheduled_a_period_apart_whatever_a_round_takes() {
    let server = serving(Response::Drop).await;
    let place = Location::new(
        "options ndots:1\n",
        &[server.address()],
        Duration::from_millis(100),
    );
    let (finished, mut rounds) = mpsc::channel(1);
    let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
    let gate = program.readiness.gate("probe");
    let schedule = Schedule::new(place.period, Duration::ZERO, finished, gate);
    let (period, timeout) = (place.period, place.probe.timeout);
    let probe = place.probe.clone();
    probe.start(&mut program, schedule, None).unwrap();
    let mut before: Option<Round> = None;
    for _ in 0..3 {
        let round = rounds.recv().await.unwrap();
        assert_eq!(
            round.observation,
            failed(DnsClass::Timeout, server.address())
        );
        assert!(round.finished >= round.scheduled + timeout);
        if let Some(before) = before {
            let between = round.scheduled - before.scheduled;
            assert_eq!(between.as_nanos() % period.as_nanos(), 0, "{between:?}");
        }
        before = Some(round);
    }
    program.readiness.opened().await;
    let mut stopped = false;
    let stop_once = async || {
        if std::mem::replace(&mut stopped, true) {
            std::future::pending::<()>().await;
        }
    };
    assert!(program.run_until(stop_once).await);
}
