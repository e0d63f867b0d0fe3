use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use futures::FutureExt;
use health::dns::{DNS, DnsClass};
use health::observation::Failure;
use health::threshold::Vote;
use karmada_runtime::client::Addresses;
use karmada_runtime::metrics::Registry;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use uuid::Uuid;

use super::super::client::LARGEST;
use super::super::list::{Directory, Peer};
use super::super::{Identity, OBSERVATION_PATH};
use super::*;
use crate::metrics::PeerMetrics;
use crate::peers::serve::dated_now;
use crate::vote::on_dns;

/// A period longer than any test.
const PERIOD: Duration = Duration::from_mins(10);
const HANG: Duration = Duration::from_secs(20);

/// Serves `router` on a port of its own and returns the address.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address.to_string()
}

/// Starts an agent that always responds with `text`.
async fn agent(text: String) -> String {
    serve(Router::new().route(
        OBSERVATION_PATH,
        get(move || std::future::ready(text.clone())),
    ))
    .await
}

/// Returns the identity of the agent on a node. Those on one node are the same process.
fn identity(cluster: &str, node: &str) -> Identity {
    let id = node
        .bytes()
        .fold(0, |id, byte| (id << 8) + u128::from(byte));
    Identity {
        cluster: cluster.to_owned(),
        node: node.to_owned(),
        id: Uuid::from_u128(id),
        port: 1,
    }
}

fn document(cluster: &str, node: &str, vote: Option<Vote>) -> String {
    let own = identity(cluster, node);
    written(&own, vote)
}

/// Returns the document of an agent that runs DNS alone.
fn written(own: &Identity, vote: Option<Vote>) -> String {
    let votes = dated_now(&on_dns(vote));
    serde_json::to_string(&VoteDocument::new(own, &votes)).unwrap()
}

fn failure() -> Failure {
    Failure::new(DnsClass::Refused, SocketAddr::from(([10, 96, 0, 10], 53)))
}

/// A leader on node `n0` that polls.
struct Polling {
    tallies: watch::Receiver<Option<PerTarget<Tally>>>,
    votes: watch::Sender<Votes>,
    directory: Arc<Directory>,
    metrics: Registry,
}

impl Polling {
    fn start(addresses: Vec<String>, period: Duration) -> Self {
        Self::with_names(addresses, period, Addresses::by_system())
    }

    fn with_names(addresses: Vec<String>, period: Duration, names: Addresses) -> Self {
        let mut metrics = Registry::default();
        let (votes, vote) = watch::channel(on_dns(Some(Vote::Healthy)));
        let peer_metrics = PeerMetrics::register(&mut metrics, &vote.borrow());
        let own = Arc::new(identity("member1", "n0"));
        let directory = Arc::new(Directory::new(&own, peer_metrics.clone()));
        directory.set(list(addresses));
        let peers = Peers {
            own,
            period,
            votes: vote,
            directory: Arc::clone(&directory),
            addresses: names,
            largest: LARGEST,
            metrics: peer_metrics,
        };
        let (counted, tallies) = watch::channel(None);
        tokio::spawn(async move { peers.poll(counted).await });
        Self {
            tallies,
            votes,
            directory,
            metrics,
        }
    }

    async fn until(&mut self, is: impl Fn(&Tally) -> bool) -> Tally {
        let on_dns = |tallies: &Option<PerTarget<Tally>>| tallies.as_ref()?.get(&DNS).cloned();
        let counted = self
            .tallies
            .wait_for(|tallies| on_dns(tallies).is_some_and(|tally| is(&tally)));
        let tallies = tokio::time::timeout(HANG, counted).await.unwrap().unwrap();
        on_dns(&tallies).unwrap()
    }

    fn shows(&self, line: &str) -> bool {
        let text = self.metrics.encode().unwrap();
        text.lines().any(|shown| shown == line)
    }
}

fn list(addresses: Vec<String>) -> PeerList {
    let peers = addresses.into_iter().map(|address| {
        let peer = Peer {
            node: None,
            addresses: vec![address.clone()],
        };
        (address, peer)
    });
    peers.collect()
}

#[tokio::test]
async fn votes_are_counted_and_any_other_response_is_silence() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let nobody = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let gone = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let endless = "x".repeat(10_000_000);
    let agents = vec![
        agent(document("member1", "n1", Some(Vote::Healthy))).await,
        agent(document("member1", "n2", Some(Vote::Unhealthy(failure())))).await,
        agent(document("member1", "n3", None)).await,
        agent(document("member1", "n4", Some(Vote::FirstSuccess))).await,
        // Two addresses of one node, and ourselves.
        agent(document("member1", "n1", Some(Vote::Healthy))).await,
        agent(document("member1", "n0", Some(Vote::Unhealthy(failure())))).await,
        // Silent: another cluster, garbage, a bad name, another program, too much, no response, nobody.
        agent(document("member2", "n5", Some(Vote::Healthy))).await,
        agent("{".to_owned()).await,
        agent(document("member1", "two words", Some(Vote::Healthy))).await,
        serve(Router::new()).await,
        agent(endless).await,
        silent.local_addr().unwrap().to_string(),
        gone,
    ];
    let mut polling = Polling::start(agents, PERIOD);
    let tally = polling.until(|_| true).await;
    assert_eq!(tally.healthy, 2, "n0 and n1");
    assert_eq!(
        tally.failing.into_iter().collect::<Vec<_>>(),
        [("n2".to_owned(), failure())]
    );
    assert_eq!(
        (tally.no_vote, tally.first_success, tally.silent),
        (1, 1, 7)
    );
    for line in [
        "nodes{answer=\"healthy\"} 3",
        "nodes{answer=\"unhealthy\"} 1",
        "failing_node{node=\"n2\"} 1",
        "nodes{answer=\"no_vote\"} 1",
        "nodes{answer=\"silent\"} 7",
        "peer_requests_total{outcome=\"answered\"} 6",
        "peer_requests_total{outcome=\"other_cluster\"} 1",
        "peer_requests_total{outcome=\"unusable\"} 4",
        "peer_requests_total{outcome=\"timed_out\"} 1",
        "peer_requests_total{outcome=\"failed\"} 1",
        "known_agents 14",
    ] {
        assert!(polling.shows(line), "{line}");
    }
}

#[tokio::test]
async fn peers_given_by_name_vote_while_dns_is_dead_for_a_leader_that_never_connected_to_them() {
    let address = agent(document("member1", "n1", Some(Vote::Healthy))).await;
    let by_name = address.replace("127.0.0.1", "agent-2.test");
    let lookups = AtomicUsize::new(0);
    let names = Addresses::by(move |_| match lookups.fetch_add(1, Ordering::Relaxed) {
        0 => std::future::ready(Ok(vec![[127, 0, 0, 1].into()])).boxed(),
        // Silent servers: the request's deadline must not pass meanwhile.
        _ => std::future::pending().boxed(),
    });
    assert!(names.refresh("agent-2.test").await);
    let mut polling = Polling::with_names(vec![by_name], PERIOD, names);
    let tally = polling.until(|_| true).await;
    assert_eq!((tally.healthy, tally.silent), (2, 0));
}

#[tokio::test]
async fn nothing_is_published_before_every_agent_has_had_a_request() {
    let (arrived, response) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (has_arrived, may_respond) = (Arc::clone(&arrived), Arc::clone(&response));
    let slow = get(move || async move {
        has_arrived.notify_one();
        may_respond.notified().await;
        document("member1", "n2", Some(Vote::Healthy))
    });
    let agents = vec![
        agent(document("member1", "n1", Some(Vote::Healthy))).await,
        serve(Router::new().route(OBSERVATION_PATH, slow)).await,
    ];
    let mut polling = Polling::start(agents, PERIOD);
    arrived.notified().await;
    polling
        .votes
        .send_replace(on_dns(Some(Vote::Unhealthy(failure()))));
    tokio::task::yield_now().await;
    assert_eq!(*polling.tallies.borrow(), None);
    response.notify_one();
    let tally = polling.until(|_| true).await;
    assert_eq!(
        (tally.healthy, tally.failing.len(), tally.silent),
        (2, 1, 0)
    );
}

#[tokio::test]
async fn our_own_vote_counts_at_once() {
    let agents = vec![agent(document("member1", "n1", Some(Vote::Healthy))).await];
    let mut polling = Polling::start(agents, PERIOD);
    assert_eq!(polling.until(|_| true).await.healthy, 2);
    polling.votes.send_replace(on_dns(None));
    assert_eq!(polling.until(|tally| tally.healthy == 1).await.no_vote, 1);
}

/// Starts an agent that counts requests and connections.
async fn counting() -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (requests, connections) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (count, accepted) = (Arc::clone(&requests), Arc::clone(&connections));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = axum::serve::ListenerExt::tap_io(listener, move |_| {
        accepted.fetch_add(1, Ordering::Relaxed);
    });
    let router = Router::new().route(
        OBSERVATION_PATH,
        get(move || async move {
            count.fetch_add(1, Ordering::Relaxed);
            document("member1", "n1", Some(Vote::Healthy))
        }),
    );
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, requests, connections)
}

#[tokio::test]
async fn an_agent_gets_a_request_every_period_over_one_connection() {
    let (address, requests, connections) = counting().await;
    let polling = Polling::start(vec![address], Duration::from_millis(20));
    let enough = async {
        while requests.load(Ordering::Relaxed) < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, enough).await.unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    drop(polling);
}

#[tokio::test]
async fn only_so_many_requests_are_under_way_at_once() {
    const MANY: usize = 2 * AT_ONCE + 10;
    let (under_way, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (now, top) = (Arc::clone(&under_way), Arc::clone(&most));
    let slow = get(move || async move {
        let with_this = now.fetch_add(1, Ordering::Relaxed) + 1;
        top.fetch_max(with_this, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
        now.fetch_sub(1, Ordering::Relaxed);
        document("member1", "n1", Some(Vote::Healthy))
    });
    let address = serve(Router::new().route(OBSERVATION_PATH, slow)).await;
    let mut polling = Polling::start(Vec::new(), PERIOD);
    let agents = (0..MANY).map(|number| {
        let peer = Peer {
            node: Some(format!("n{}", number + 1)),
            addresses: vec![address.clone()],
        };
        (format!("a{number}"), peer)
    });
    polling.directory.set(agents.collect());
    polling.until(|tally| tally.known() == MANY + 1).await;
    let most = most.load(Ordering::Relaxed);
    assert!((2..=AT_ONCE).contains(&most), "{most}");
}

#[tokio::test]
async fn while_votes_change_the_next_round_follows_after_a_second() {
    let (address, requests, _) = counting().await;
    let mut polling = Polling::start(vec![address], PERIOD);
    polling.until(|_| true).await;
    let before = requests.load(Ordering::Relaxed);
    polling
        .votes
        .send_replace(on_dns(Some(Vote::Unhealthy(failure()))));
    let again = async {
        while requests.load(Ordering::Relaxed) == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, again).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_joins_gets_a_request_in_the_next_round() {
    let first = agent(document("member1", "n1", Some(Vote::Healthy))).await;
    let second = agent(document("member1", "n2", Some(Vote::Healthy))).await;
    let mut polling = Polling::start(vec![first.clone()], Duration::from_millis(20));
    assert_eq!(polling.until(|_| true).await.known(), 2);
    polling.directory.set(list(vec![first, second]));
    polling.until(|tally| tally.healthy == 3).await;
}

/// A name is not an identity: such a peer is not this agent.
#[tokio::test]
async fn agents_with_our_name_count_and_are_shown() {
    let namesake = async |id, vote| {
        let own = Identity {
            id: Uuid::from_u128(id),
            ..identity("member1", "n0")
        };
        agent(written(&own, vote)).await
    };
    let agents = vec![
        namesake(1, Some(Vote::Unhealthy(failure()))).await,
        namesake(2, Some(Vote::Healthy)).await,
        agent(document("member1", "n0", Some(Vote::Healthy))).await,
    ];
    let mut polling = Polling::start(agents, PERIOD);
    let tally = polling.until(|_| true).await;
    assert_eq!((tally.known(), tally.healthy), (3, 2));
    let name = tally.failing.keys().next().unwrap();
    assert!(name.starts_with("n0 at 127.0.0.1:"), "{name}");
    assert!(polling.shows("namesakes 2"));
}
