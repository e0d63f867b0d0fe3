//! The queries of a round, and that rounds with few of them miss nothing.

use std::net::UdpSocket;

use hickory_proto::op::Message;

use super::*;

/// The candidates of `kubernetes.default` in [`POD`], in a pod's order.
const CANDIDATES: [&str; 4] = [
    "kubernetes.default.shop.svc.cluster.local.",
    KUBERNETES,
    "kubernetes.default.cluster.local.",
    "kubernetes.default.",
];
const KNOWN: usize = 1;

/// The rows of the table in docs/probe.md: the failure, the queries of a round, and those of a thousand nodes
/// in a second, which only some rows have.
fn documented() -> Vec<[String; 3]> {
    let page = include_str!("../../../../../docs/probe.md");
    let table = page
        .lines()
        .skip_while(|line| !line.starts_with("| Queries "));
    let rows = table.skip(2).map_while(|line| line.strip_prefix('|'));
    rows.map(|row| {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let [case, queries, per_second, _] = columns[..] else {
            panic!("{row}");
        };
        // A remark may follow the number.
        let queries = queries.split(',').next().unwrap_or_default();
        [case, queries, per_second].map(str::to_owned)
    })
    .collect()
}

/// Returns the mean of the queries of rounds as the table has it.
fn per_round(rounds: &[usize]) -> String {
    let (all, rounds) = (rounds.iter().sum::<usize>(), rounds.len());
    // In tenths, rounded.
    let tenths = (20 * all + rounds) / (2 * rounds);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => whole.to_string(),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

/// Returns the queries that a thousand nodes send in a second, each a round in five seconds.
fn per_second(rounds: &[usize]) -> String {
    let queries = 1_000 * rounds.iter().sum::<usize>() / (5 * rounds.len());
    match (queries / 1_000, queries % 1_000) {
        (0, queries) => format!("{queries}/s"),
        (thousands, rest) => format!("{thousands},{rest:03}/s"),
    }
}

/// Counts the queries, of which none may arrive.
struct Counting(Arc<Mutex<usize>>);

impl DnsClient for Counting {
    async fn query(
        &self,
        server: SocketAddr,
        transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> io::Result<exchange::Response> {
        *self.0.lock().unwrap() += 1;
        Network.query(server, transport, query, deadline).await
    }
}

/// The name in a query that follows those of a round.
const LAST: &str = "last.";

/// Returns the numbers of the datagrams that arrived before, between and after queries for [`LAST`].
fn between(server: &DnsServer) -> Vec<usize> {
    let received = server.received();
    let parts = received.split(|received| received.query.name.to_string() == LAST);
    parts.map(<[_]>::len).collect()
}

/// Waits until the server has read all that was sent to it: it reads a query for [`LAST`] after that.
async fn read_by(server: &DnsServer) {
    let before = between(server).len();
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(LAST).unwrap(), RecordType::A));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = socket.send_to(&message.to_vec().unwrap(), server.address());
    sent.unwrap();
    while between(server).len() == before {
        tokio::task::yield_now().await;
    }
}

/// Runs so many rounds, all with this observation, and returns the number of datagrams that arrived from
/// each.
async fn arrived(
    prober: &mut Prober<Network>,
    server: &DnsServer,
    observation: Observation,
    rounds: usize,
) -> Vec<usize> {
    read_by(server).await;
    for _ in 0..rounds {
        assert_eq!(prober.round().await.observation(), observation);
        read_by(server).await;
    }
    let all = between(server);
    // Nothing comes after the last.
    all[all.len() - 1 - rounds..all.len() - 1].to_vec()
}

fn row(case: &str, rounds: &[usize]) -> [String; 3] {
    [case.to_owned(), per_round(rounds), String::new()]
}

fn with_rate(case: &str, rounds: &[usize]) -> [String; 3] {
    let [case, queries, _] = row(case, rounds);
    [case, queries, per_second(rounds)]
}

#[tokio::test]
async fn rounds_send_as_many_queries_as_documented() {
    let server = knowing(KUBERNETES).await;
    let place = Location::new(POD, &[server.address()], AMPLE);
    let mut prober = place.prober(DirectServers::default());
    let resolved = Observation::Success;
    // The first round waits for one family only, and may end before the query for the other has arrived.
    assert_eq!(prober.round().await.observation(), resolved);
    let healthy = arrived(&mut prober, &server, resolved, 3).await;
    assert_eq!(healthy, [healthy[0]; 3]);

    server.set(code(ResponseCode::ServFail));
    let down = failed(DnsClass::ServFail, server.address());
    let bad = arrived(&mut prober, &server, down, 6).await;
    assert_eq!(bad, [bad[0]; 6]);

    let queries = Arc::default();
    let closed = Location::new(POD, &[CLOSED], AMPLE);
    let client = Counting(Arc::clone(&queries));
    let mut closed = closed.prober_with(client, DirectServers::default());
    let mut unheard = Vec::new();
    for _ in 0..6 {
        let down = failed(DnsClass::Unreachable, CLOSED);
        assert_eq!(closed.round().await.observation(), down);
        unheard.push(std::mem::take(&mut *queries.lock().unwrap()));
    }

    server.set(Behaviour::zone([KUBERNETES], Response::Loopback));
    assert_eq!(prober.round().await.observation(), resolved);
    server.set(Response::Drop);
    // Only deadlines end these rounds. In virtual time each query is repeated on a busy machine, too.
    tokio::time::pause();
    let down = failed(DnsClass::Timeout, server.address());
    let silent = arrived(&mut prober, &server, down, 6).await;
    assert_eq!(silent[..3], silent[3..]);
    assert_eq!(silent[1], silent[2]);
    // Dead servers have not taught it the name, but a living one gives it away.
    let mut new = place.prober(DirectServers::default());
    let without_a_known_name = arrived(&mut new, &server, down, 5).await;
    assert_eq!(without_a_known_name, silent[..5]);
    tokio::time::resume();
    server.set(Behaviour::zone([KUBERNETES], Response::Loopback));
    assert_eq!(new.round().await.observation(), resolved);

    let measured = [
        with_rate("healthy", &healthy),
        row(
            "no response: first round and every third, with retransmissions",
            &silent[..1],
        ),
        row("no response: the rounds in between", &silent[1..2]),
        with_rate("no response, on average", &silent),
        row("ports closed, on average", &unheard),
        with_rate("every response a failure", &bad),
    ];
    assert_eq!(documented(), measured);
}

#[tokio::test]
async fn a_server_that_responds_badly_gets_each_query_once_a_round() {
    let server = knowing(KUBERNETES).await;
    let place = Location::new(POD, &[server.address()], AMPLE);
    let mut prober = place.prober(DirectServers::default());
    for class in [ResponseCode::NXDomain, ResponseCode::ServFail] {
        server.set(Behaviour::zone([KUBERNETES], Response::Loopback));
        assert_eq!(prober.round().await.observation(), Observation::Success);
        server.set(code(class));
        for _ in 0..3 {
            let before = server.count(Transport::Udp);
            prober.round().await;
            let queries = server.count(Transport::Udp) - before;
            assert_eq!(queries, 2 * CANDIDATES.len(), "{class}");
        }
    }
}

/// The response of a scripted server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Address,
    Class(DnsClass),
}

const SILENCE: Reply = Reply::Class(DnsClass::Timeout);
const NXDOMAIN: Reply = Reply::Class(DnsClass::NxDomain);

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
    ) -> io::Result<exchange::Response> {
        let name = query.name.to_string();
        let IpAddr::V4(ip) = server.ip() else {
            unreachable!()
        };
        let reply = (self.replies.lock().unwrap())(ip.octets()[3], &name, query.query_type);
        let shown = format!("{name} {} at {}", query.query_type, ip.octets()[3]);
        self.queries.lock().unwrap().push(shown);
        tokio::time::sleep(Duration::from_millis(1)).await;
        match reply {
            Reply::Address => Ok(exchange::Response::known(query)),
            Reply::Class(class) => {
                if class == DnsClass::Timeout {
                    tokio::time::sleep_until(deadline).await;
                }
                Ok(exchange::Response::of(class))
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
        let mut place = Location::new(&search, &[], Duration::from_secs(2));
        // The cluster's API, under whatever suffix.
        place.probe.api = Some([10, 96, 0, 1].into());
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
    async fn round(&mut self) -> (Option<DnsClass>, Vec<String>) {
        self.queries.lock().unwrap().clear();
        let class = match self.prober.round().await.observation() {
            Observation::Failed(failure) => DnsClass::ALL
                .into_iter()
                .find(|class| failure.class == *class),
            Observation::Success => None,
            other => panic!("{other:?}"),
        };
        (class, self.queries.lock().unwrap().clone())
    }

    async fn class(&mut self) -> Option<DnsClass> {
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
        assert_eq!(played.class().await, Some(DnsClass::Timeout));
    }
    played
}

#[tokio::test(start_paused = true)]
async fn a_short_round_asks_every_server_for_the_name_that_last_resolved_and_nothing_else() {
    let mut played = dead_for(1, 2).await;
    let short = [1, 2].map(|server| format!("{KUBERNETES} A at {server}"));
    for _ in 0..2 {
        let (class, queries) = played.round().await;
        assert_eq!(class, Some(DnsClass::Timeout));
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
        DnsClass::NoData,
        DnsClass::NxDomain,
        DnsClass::Mismatch,
        DnsClass::Truncated,
        DnsClass::Refused,
        DnsClass::ServFail,
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

/// Another candidate goes to a dead upstream; the cluster's own zone has no server.
fn mixed(_: u8, name: &str, _: RecordType) -> Reply {
    if name == CANDIDATES[3] {
        SILENCE
    } else {
        Reply::Class(DnsClass::Unreachable)
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_round_has_the_worst_class_of_the_last_full_one() {
    let mut played = Played::new(1, mixed);
    for _ in 0..6 {
        assert_eq!(played.class().await, Some(DnsClass::Timeout));
    }
    // A milder class shows in the next full round, within three; a worse one at once.
    played.set(|_, _, _| Reply::Class(DnsClass::Unreachable));
    let mut classes = Vec::new();
    for _ in 0..3 {
        classes.push(played.class().await);
    }
    assert_eq!(classes.pop(), Some(Some(DnsClass::Unreachable)));
    played.set(silent);
    assert_eq!(played.class().await, Some(DnsClass::Timeout));
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
        assert_eq!(class, Some(DnsClass::Timeout));
        let [kubernetes, other] = ["kubernetes.", "other."]
            .map(|name| queries.iter().filter(|it| it.starts_with(name)).count());
        assert_eq!(kubernetes, 4, "{round}: {queries:?}");
        let expected = if round % 3 == 0 {
            2 * CANDIDATES.len()
        } else {
            1
        };
        assert_eq!(other, expected, "{round}: {queries:?}");
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
