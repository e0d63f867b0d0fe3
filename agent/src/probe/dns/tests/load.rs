//! The queries of a round, and that rounds with few of them miss nothing.

use super::*;

/// The candidates of `kubernetes.default` in [`POD`], in a pod's order.
const CANDIDATES: [&str; 4] = [
    "kubernetes.default.shop.svc.cluster.local.",
    KUBERNETES,
    "kubernetes.default.cluster.local.",
    "kubernetes.default.",
];
const KNOWN: usize = 1;

/// The most datagrams of a round: as the table in docs/probe.md has them.
const HEALTHY: usize = 4;
const FULL: usize = 16;
const SHORT_ROUND: usize = 2;

#[tokio::test]
async fn rounds_send_as_many_queries_as_documented() {
    let server = knowing(KUBERNETES).await;
    let place = Location::new(POD, &[server.address()], SHORT);
    let mut prober = place.prober(DirectServers::default());
    let mut before = 0;
    let mut received = || {
        let all = server.count(Transport::Udp);
        all - std::mem::replace(&mut before, all)
    };
    for _ in 0..3 {
        assert_eq!(prober.round().await.observation(), Observation::Resolved);
        assert!(received() <= HEALTHY);
    }
    server.set(Response::Drop);
    let down = failed(FailureClass::Timeout, server.address());
    for _ in 0..2 {
        for most in [FULL, SHORT_ROUND, SHORT_ROUND] {
            assert_eq!(prober.round().await.observation(), down);
            let queries = received();
            assert!((1..=most).contains(&queries), "{queries} of {most}");
        }
    }
    // Dead servers have not taught it the name, but a living one gives it away.
    let place = Location::new(POD, &[server.address()], SHORT);
    let mut prober = place.prober(DirectServers::default());
    for most in [FULL, SHORT_ROUND] {
        assert_eq!(prober.round().await.observation(), down);
        let queries = received();
        assert!((1..=most).contains(&queries), "{queries} of {most}");
    }
    server.set(Behaviour::zone([KUBERNETES], Response::Loopback));
    assert_eq!(prober.round().await.observation(), Observation::Resolved);
}

#[tokio::test]
async fn a_server_that_responds_badly_gets_each_query_once_a_round() {
    let server = knowing(KUBERNETES).await;
    let place = Location::new(POD, &[server.address()], AMPLE);
    let mut prober = place.prober(DirectServers::default());
    for class in [ResponseCode::NXDomain, ResponseCode::ServFail] {
        server.set(Behaviour::zone([KUBERNETES], Response::Loopback));
        assert_eq!(prober.round().await.observation(), Observation::Resolved);
        server.set(code(class));
        for _ in 0..3 {
            let before = server.count(Transport::Udp);
            prober.round().await;
            assert_eq!(server.count(Transport::Udp) - before, FULL / 2, "{class}");
        }
    }
}

#[test]
fn a_thousand_nodes_with_dead_dns_send_at_most_1600_queries_a_second() {
    let three_rounds = 1_000 * (FULL + 2 * SHORT_ROUND);
    assert!(three_rounds / (3 * 5) <= 1_600);
}

/// The response of a scripted server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Address,
    Class(FailureClass),
}

const SILENCE: Reply = Reply::Class(FailureClass::Timeout);
const NXDOMAIN: Reply = Reply::Class(FailureClass::NxDomain);

type Replies = dyn Fn(u8, &str, RecordType) -> Reply + Send + Sync;

/// Servers in virtual time: `10.96.0.1`, `10.96.0.2` and so on. A function of the last byte, the name and
/// the type gives their replies.
struct Scripted {
    replies: Arc<Mutex<Box<Replies>>>,
    queries: Arc<Mutex<Vec<String>>>,
}

impl DnsClient for Scripted {
    async fn query(
        &self,
        server: SocketAddr,
        _transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, ProbeError> {
        let name = query.name.to_string();
        let IpAddr::V4(ip) = server.ip() else {
            unreachable!()
        };
        let reply = (self.replies.lock().unwrap())(ip.octets()[3], &name, query.query_type);
        let shown = format!("{name} {} at {}", query.query_type, ip.octets()[3]);
        self.queries.lock().unwrap().push(shown);
        tokio::time::sleep(Duration::from_millis(1)).await;
        match reply {
            Reply::Address => Ok(vec![[10, 96, 0, 1].into()]),
            Reply::Class(class) => {
                if class == FailureClass::Timeout {
                    tokio::time::sleep_until(deadline).await;
                }
                Err(ProbeError::Failed(Failure::new(class, server)))
            }
        }
    }
}

/// A prober of scripted servers.
struct Played {
    place: Location,
    prober: Prober<Scripted>,
    replies: Arc<Mutex<Box<Replies>>>,
    queries: Arc<Mutex<Vec<String>>>,
}

impl Played {
    /// Creates a prober of so many servers.
    fn new(
        servers: u8,
        replies: impl Fn(u8, &str, RecordType) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let lines: Vec<_> = (1..=servers)
            .map(|last| format!("nameserver 10.96.0.{last}\n"))
            .collect();
        let search = POD.replace("nameserver 192.0.2.1\n", &lines.concat());
        let place = Location::new(&search, &[], Duration::from_secs(2));
        let replies: Arc<Mutex<Box<Replies>>> = Arc::new(Mutex::new(Box::new(replies)));
        let queries = Arc::default();
        let client = Scripted {
            replies: Arc::clone(&replies),
            queries: Arc::clone(&queries),
        };
        let prober = place.prober_with(client, DirectServers::default());
        Self {
            place,
            prober,
            replies,
            queries,
        }
    }

    fn set(&self, replies: impl Fn(u8, &str, RecordType) -> Reply + Send + Sync + 'static) {
        *self.replies.lock().unwrap() = Box::new(replies);
    }

    /// Runs a round, and returns its class of failure and its queries.
    async fn round(&mut self) -> (Option<FailureClass>, Vec<String>) {
        self.queries.lock().unwrap().clear();
        let class = match self.prober.round().await.observation() {
            Observation::Failed(failure) => Some(failure.class),
            Observation::Resolved => None,
            other => panic!("{other:?}"),
        };
        (class, self.queries.lock().unwrap().clone())
    }

    async fn class(&mut self) -> Option<FailureClass> {
        self.round().await.0
    }

    /// Returns the number of rounds up to the first success.
    async fn rounds_until_resolved(&mut self) -> usize {
        for round in 1..=6 {
            if self.class().await.is_none() {
                return round;
            }
        }
        panic!("no round resolves");
    }
}

/// Returns replies of servers that all know one candidate.
fn knowing_only(candidate: usize) -> impl Fn(u8, &str, RecordType) -> Reply {
    move |_, name, _| {
        if name == CANDIDATES[candidate] {
            Reply::Address
        } else {
            NXDOMAIN
        }
    }
}

fn silent(_: u8, _: &str, _: RecordType) -> Reply {
    SILENCE
}

/// Returns a prober that resolved the name once, of servers that have been silent for so many rounds since.
async fn dead_for(rounds: usize, servers: u8) -> Played {
    let mut played = Played::new(servers, knowing_only(KNOWN));
    assert_eq!(played.class().await, None);
    played.set(silent);
    for _ in 0..rounds {
        assert_eq!(played.class().await, Some(FailureClass::Timeout));
    }
    played
}

#[tokio::test(start_paused = true)]
async fn a_short_round_asks_every_server_for_the_name_that_last_resolved_and_nothing_else() {
    let mut played = dead_for(1, 2).await;
    let short = [1, 2].map(|server| format!("{KUBERNETES} A at {server}"));
    for _ in 0..2 {
        let (class, queries) = played.round().await;
        assert_eq!(class, Some(FailureClass::Timeout));
        assert_eq!(queries, short);
        let (_, queries) = played.round().await;
        assert_eq!(queries, short);
        let (_, queries) = played.round().await;
        assert_eq!(queries.len(), 2 * 2 * CANDIDATES.len());
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_round_after_recovery_resolves_whichever_server_recovers_and_whenever() {
    for rounds in 1..=6 {
        for server in 1..=3 {
            let mut played = dead_for(rounds, 3).await;
            played.set(move |at, name, family| {
                if at == server {
                    knowing_only(KNOWN)(at, name, family)
                } else {
                    SILENCE
                }
            });
            assert_eq!(played.rounds_until_resolved().await, 1, "{rounds} {server}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_moved_to_another_suffix_resolves_in_the_first_round_after_recovery() {
    let gone = [
        FailureClass::NoData,
        FailureClass::NxDomain,
        FailureClass::Mismatch,
        FailureClass::Truncated,
        FailureClass::Refused,
        FailureClass::ServFail,
    ];
    for class in gone {
        for (rounds, moved) in [(1, 0), (2, 2), (3, 3)] {
            let mut played = dead_for(rounds, 2).await;
            played.set(
                move |at, name, family| match knowing_only(moved)(at, name, family) {
                    // The first server stays dead.
                    _ if at == 1 => SILENCE,
                    Reply::Address => Reply::Address,
                    Reply::Class(_) => Reply::Class(class),
                },
            );
            assert_eq!(played.rounds_until_resolved().await, 1, "{class} {moved}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_silent_on_that_name_alone_is_found_alive_within_three_rounds() {
    for rounds in 1..=6 {
        let mut played = dead_for(rounds, 1).await;
        played.set(|at, name, family| match name {
            KUBERNETES => SILENCE,
            _ => knowing_only(3)(at, name, family),
        });
        assert!(played.rounds_until_resolved().await <= 3, "{rounds}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_recovers_alone_is_found_within_three_rounds() {
    for rounds in 1..=6 {
        let mut played = dead_for(rounds, 1).await;
        played.set(|at, name, family| match family {
            RecordType::A => SILENCE,
            _ => knowing_only(KNOWN)(at, name, family),
        });
        assert!(played.rounds_until_resolved().await <= 3, "{rounds}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_resolv_conf_makes_the_next_round_a_full_one() {
    let changes = [
        POD.replace("shop.svc", "pay.svc"),
        POD.replace("cluster.local\n", "cluster.local example\n"),
        POD.replace("ndots:5", "ndots:5 no-aaaa"),
    ];
    for change in changes {
        let change = change.replace("192.0.2.1", "10.96.0.1");
        let mut played = dead_for(1, 1).await;
        std::fs::write(&played.place.probe.resolv_conf, change).unwrap();
        let (_, queries) = played.round().await;
        assert!(queries.len() >= CANDIDATES.len(), "{queries:?}");
        let (_, queries) = played.round().await;
        assert_eq!(queries, [format!("{KUBERNETES} A at 1")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_round_has_the_worst_class_of_the_last_full_one() {
    // Another candidate goes to a dead upstream; the cluster's own zone has no server.
    let mixed = |_: u8, name: &str, _: RecordType| {
        if name == CANDIDATES[3] {
            SILENCE
        } else {
            Reply::Class(FailureClass::Unreachable)
        }
    };
    let mut played = Played::new(1, mixed);
    for _ in 0..6 {
        assert_eq!(played.class().await, Some(FailureClass::Timeout));
    }
    // What is milder shows in the next full round, within three; what is worse at once.
    played.set(|_, _, _| Reply::Class(FailureClass::Unreachable));
    let mut classes = Vec::new();
    for _ in 0..3 {
        classes.push(played.class().await);
    }
    assert_eq!(classes.pop(), Some(Some(FailureClass::Unreachable)));
    played.set(silent);
    assert_eq!(played.class().await, Some(FailureClass::Timeout));
}

#[tokio::test(start_paused = true)]
async fn names_are_queried_in_full_or_not_each_by_its_own_results() {
    let mut played = Played::new(1, knowing_only(KNOWN));
    let other = Name::from_ascii("other.default").unwrap();
    played.prober = {
        let mut place = Location::new(
            &std::fs::read_to_string(&played.place.probe.resolv_conf).unwrap(),
            &[],
            Duration::from_secs(2),
        );
        place.probe.names.push(other);
        let client = Scripted {
            replies: Arc::clone(&played.replies),
            queries: Arc::clone(&played.queries),
        };
        let prober = place.prober_with(client, DirectServers::default());
        played.place = place;
        prober
    };
    played.set(|at, name, family| {
        if name.starts_with("other.") {
            SILENCE
        } else {
            knowing_only(KNOWN)(at, name, family)
        }
    });
    for round in 0..6 {
        let (class, queries) = played.round().await;
        assert_eq!(class, Some(FailureClass::Timeout));
        let about = |name: &str| {
            queries
                .iter()
                .filter(|query| query.starts_with(name))
                .count()
        };
        assert_eq!(about("kubernetes."), 4, "{round}: {queries:?}");
        let expected = if round % 3 == 0 {
            2 * CANDIDATES.len()
        } else {
            1
        };
        assert_eq!(about("other."), expected, "{round}: {queries:?}");
    }
    played.set(|at, name, family| {
        if name == "other.default.cluster.local." {
            Reply::Address
        } else {
            knowing_only(KNOWN)(at, name, family)
        }
    });
    assert_eq!(played.class().await, None);
}
