use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::ResponseCode;
use prometheus_client::registry::Registry;
use rules::observation::{Failure, FailureClass};
use tempfile::TempDir;

use super::dns_server::{DnsServer, Reply, closed_port};
use super::*;

/// Long enough for a round over loopback on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);
/// For rounds that are to run out of time.
const SHORT: Duration = Duration::from_millis(400);

const POD: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local\n\
                   nameserver 192.0.2.1\noptions ndots:5\n";

/// A probe of `kubernetes.default` in a place of its own.
struct Place {
    folder: TempDir,
    probe: Probe,
}

impl Place {
    fn new(resolv_conf: &str, nameservers: &[SocketAddr], timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolv.conf");
        std::fs::write(&path, resolv_conf).unwrap();
        let probe = Probe {
            names: vec![Name::from_ascii("kubernetes.default").unwrap()],
            nameservers: nameservers.to_vec(),
            period: 2 * timeout,
            timeout,
            resolv_conf: path,
        };
        Self { folder, probe }
    }

    async fn observe(&self) -> Observation {
        observation(&self.probe.round().await)
    }
}

fn failed(class: FailureClass, server: SocketAddr) -> Observation {
    Observation::Failed(Failure { class, server })
}

fn code(code: ResponseCode) -> Reply {
    Reply::Code(code)
}

#[tokio::test]
async fn a_healthy_round_asks_what_a_pod_asks() {
    let server = DnsServer::knowing(&["kubernetes.default.svc.cluster.local."]).await;
    let place = Place::new(POD, &[server.address], AMPLE);
    assert_eq!(place.observe().await, Observation::Resolved);
    let asked = server.asked();
    let names: Vec<_> = asked
        .iter()
        .map(|asked| asked.query.name.to_string())
        .collect();
    let (first, second) = names.split_at(2);
    assert_eq!(first, ["kubernetes.default.shop.svc.cluster.local."; 2]);
    assert_ne!(asked[0].query.query_type, asked[1].query.query_type);
    // One address suffices; the other question may still be on its way.
    assert!(!second.is_empty() && second.len() <= 2);
    assert!(
        second
            .iter()
            .all(|name| name == "kubernetes.default.svc.cluster.local.")
    );
}

#[tokio::test]
async fn a_failed_round_has_the_class_and_the_server() {
    let truncated = Reply::Truncated(Box::new(Reply::Drop));
    let cases = [
        (code(ResponseCode::ServFail), FailureClass::ServFail),
        (code(ResponseCode::Refused), FailureClass::Refused),
        (truncated, FailureClass::Truncated),
        (Reply::Foreign, FailureClass::Mismatch),
        (code(ResponseCode::NXDomain), FailureClass::NxDomain),
        (Reply::NoData, FailureClass::NoData),
    ];
    for suffixes in 0..=6 {
        for (reply, class) in cases.clone() {
            let server = DnsServer::replying(reply).await;
            let search: Vec<_> = (0..suffixes)
                .map(|place| format!("s{place}.local"))
                .collect();
            let conf = format!("options ndots:5\nsearch {}\n", search.join(" "));
            let place = Place::new(&conf, &[server.address], AMPLE);
            assert_eq!(place.observe().await, failed(class, server.address));
            let expected = 2 * (suffixes + 1);
            assert_eq!(
                server.count(Transport::Udp),
                expected,
                "{class}, {suffixes}"
            );
        }
    }
}

#[tokio::test]
async fn a_closed_port_is_unreachable_at_once() {
    let server = closed_port();
    let started = Instant::now();
    let place = Place::new(POD, &[server], AMPLE);
    assert_eq!(
        place.observe().await,
        failed(FailureClass::Unreachable, server)
    );
    assert!(started.elapsed() < AMPLE);
}

#[tokio::test]
async fn no_search_list_makes_a_silent_round_longer_than_its_deadline() {
    for suffixes in [0, 3, 5, 6] {
        let server = DnsServer::replying(Reply::Drop).await;
        let search: Vec<_> = (0..suffixes)
            .map(|place| format!("s{place}.local"))
            .collect();
        let conf = format!("options ndots:5\nsearch {}\n", search.join(" "));
        let place = Place::new(&conf, &[server.address], SHORT);
        let started = Instant::now();
        assert_eq!(
            place.observe().await,
            failed(FailureClass::Timeout, server.address)
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
    let good = DnsServer::knowing(&["kubernetes.default.svc.cluster.local."]).await;
    let bad = [
        DnsServer::replying(Reply::Drop).await,
        DnsServer::replying(code(ResponseCode::ServFail)).await,
        DnsServer::replying(code(ResponseCode::NXDomain)).await,
    ];
    for bad in bad {
        let place = Place::new(POD, &[bad.address, good.address], AMPLE / 10);
        assert_eq!(place.observe().await, Observation::Resolved);
    }
}

#[tokio::test]
async fn every_name_must_resolve() {
    let server = DnsServer::knowing(&["kubernetes.default.svc.cluster.local."]).await;
    let mut place = Place::new(POD, &[server.address], AMPLE);
    place
        .probe
        .names
        .push(Name::from_ascii("other.default").unwrap());
    assert_eq!(
        place.observe().await,
        failed(FailureClass::NxDomain, server.address)
    );
}

#[tokio::test]
async fn a_round_that_cannot_ask_is_no_observation() {
    let missing = Place::new(POD, &[], AMPLE);
    std::fs::remove_file(missing.folder.path().join("resolv.conf")).unwrap();
    assert_eq!(missing.observe().await, Observation::Internal);
    let serverless = Place::new("search a.local\n", &[], AMPLE);
    assert_eq!(serverless.observe().await, Observation::Internal);
}

#[tokio::test]
async fn resolv_conf_is_read_anew_for_every_round() {
    let server = DnsServer::knowing(&["kubernetes.default.b.local."]).await;
    let place = Place::new(
        "search a.local\noptions ndots:5\n",
        &[server.address],
        AMPLE,
    );
    assert_eq!(
        place.observe().await,
        failed(FailureClass::NxDomain, server.address)
    );
    std::fs::write(
        &place.probe.resolv_conf,
        "search b.local\noptions ndots:5\n",
    )
    .unwrap();
    assert_eq!(place.observe().await, Observation::Resolved);
}

#[test]
fn a_name_that_fails_outweighs_one_that_could_not_be_asked() {
    let server: SocketAddr = "10.96.0.10:53".parse().unwrap();
    let fails = |class| Err(Unanswered::Failed(Failure { class, server }));
    let internal = || Err(Unanswered::Internal(std::io::Error::other("no socket")));
    let cases = [
        (Ok(()), Ok(()), Observation::Resolved),
        (Ok(()), internal(), Observation::Internal),
        (
            internal(),
            fails(FailureClass::NxDomain),
            failed(FailureClass::NxDomain, server),
        ),
        (
            fails(FailureClass::NxDomain),
            fails(FailureClass::Timeout),
            failed(FailureClass::Timeout, server),
        ),
        (
            fails(FailureClass::Refused),
            Ok(()),
            failed(FailureClass::Refused, server),
        ),
    ];
    for (one, other, expected) in cases {
        assert_eq!(observation(&both(one, other)), expected);
    }
}

#[tokio::test]
async fn rounds_are_scheduled_a_period_apart_whatever_a_round_takes() {
    let server = DnsServer::replying(Reply::Drop).await;
    let place = Place::new(
        "options ndots:1\n",
        &[server.address],
        Duration::from_millis(100),
    );
    let (finished, mut rounds) = mpsc::channel(1);
    let stopping = CancellationToken::new();
    let metrics = ProbeMetrics::register(&mut Registry::default());
    let (period, timeout) = (place.probe.period, place.probe.timeout);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let task = tokio::spawn(place.probe.clone().run(
        finished,
        metrics,
        move || {
            count.fetch_add(1, Ordering::Relaxed);
        },
        stopping.clone(),
    ));
    let mut before: Option<Round> = None;
    for _ in 0..3 {
        let round = rounds.recv().await.unwrap();
        assert_eq!(
            round.observation,
            failed(FailureClass::Timeout, server.address)
        );
        assert!(round.finished >= round.scheduled + timeout);
        if let Some(before) = before {
            let between = round.scheduled - before.scheduled;
            assert_eq!(between.as_nanos() % period.as_nanos(), 0, "{between:?}");
        }
        before = Some(round);
    }
    assert!(asked.load(Ordering::Relaxed) >= 3);
    stopping.cancel();
    assert!(task.await.unwrap().is_ok());
}
