use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::super::list::{Listing, Peer};
use super::super::{Own, PATH};
use super::*;
use crate::metrics::PeerMetrics;

/// Longer than any test waits for one round.
const PERIOD: Duration = Duration::from_mins(10);
const HANG: Duration = Duration::from_secs(20);

/// Serves this on a port of its own, at the path of observations.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address.to_string()
}

/// An agent that always says this.
async fn says(text: String) -> String {
    serve(Router::new().route(PATH, get(move || std::future::ready(text.clone())))).await
}

fn said(cluster: &str, node: &str, vote: Option<Vote>) -> String {
    serde_json::to_string(&Observation::new(cluster, node, vote, Duration::ZERO)).unwrap()
}

fn failure() -> Failure {
    Failure::new(
        FailureClass::Refused,
        SocketAddr::from(([10, 96, 0, 10], 53)),
    )
}

/// A leader on node `n0` that asks.
struct Asking {
    tallies: watch::Receiver<Option<Tally>>,
    votes: watch::Sender<Option<Vote>>,
    listing: Arc<Listing>,
    metrics: Registry,
}

impl Asking {
    fn start(addresses: Vec<String>, period: Duration) -> Self {
        let mut metrics = Registry::default();
        let peer_metrics = PeerMetrics::register(&mut metrics);
        let listing = Arc::new(Listing::new(peer_metrics.clone()));
        listing.set(list(addresses));
        let (votes, own) = watch::channel(Some(Vote::Healthy));
        let peers = Peers {
            own: Arc::new(Own {
                cluster: "member1".to_owned(),
                node: "n0".to_owned(),
                port: 1,
            }),
            period,
            votes: own,
            listing: Arc::clone(&listing),
            metrics: peer_metrics,
        };
        let (told, tallies) = watch::channel(None);
        tokio::spawn(async move { peers.poll(told).await });
        Self {
            tallies,
            votes,
            listing,
            metrics,
        }
    }

    async fn until(&mut self, is: impl Fn(&Tally) -> bool) -> Tally {
        let counted = self
            .tallies
            .wait_for(|tally| tally.as_ref().is_some_and(&is));
        let tally = tokio::time::timeout(HANG, counted).await.unwrap().unwrap();
        tally.clone().unwrap()
    }

    fn shows(&self, line: &str) -> bool {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.metrics).unwrap();
        text.lines().any(|shown| shown == line)
    }
}

fn list(addresses: Vec<String>) -> List {
    let peer = |address: String| {
        let peer = Peer {
            node: None,
            addresses: vec![address.clone()],
        };
        (address, peer)
    };
    addresses.into_iter().map(peer).collect()
}

#[tokio::test]
async fn votes_are_counted_and_what_is_no_answer_of_ours_is_silence() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let nobody = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let gone = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let endless = "x".repeat(10_000_000);
    let agents = vec![
        says(said("member1", "n1", Some(Vote::Healthy))).await,
        says(said("member1", "n2", Some(Vote::Unhealthy(failure())))).await,
        says(said("member1", "n3", None)).await,
        says(said("member1", "n4", Some(Vote::FirstSuccess))).await,
        // Two addresses of one node, and ourselves.
        says(said("member1", "n1", Some(Vote::Healthy))).await,
        says(said("member1", "n0", Some(Vote::Unhealthy(failure())))).await,
        // Silent: another cluster, garbage, another program, too much, no answer, nobody.
        says(said("member2", "n5", Some(Vote::Healthy))).await,
        says("{".to_owned()).await,
        says(said("member1", "two words", Some(Vote::Healthy))).await,
        serve(Router::new()).await,
        says(endless).await,
        silent.local_addr().unwrap().to_string(),
        gone,
    ];
    let mut asking = Asking::start(agents, PERIOD);
    let tally = asking.until(|_| true).await;
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
        assert!(asking.shows(line), "{line}");
    }
}

#[tokio::test]
async fn nothing_is_told_before_every_agent_has_been_asked() {
    let (asked, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (was_asked, may_answer) = (Arc::clone(&asked), Arc::clone(&answer));
    let slow = get(move || async move {
        was_asked.notify_one();
        may_answer.notified().await;
        said("member1", "n2", Some(Vote::Healthy))
    });
    let agents = vec![
        says(said("member1", "n1", Some(Vote::Healthy))).await,
        serve(Router::new().route(PATH, slow)).await,
    ];
    let mut asking = Asking::start(agents, PERIOD);
    asked.notified().await;
    asking.votes.send_replace(Some(Vote::Unhealthy(failure())));
    tokio::task::yield_now().await;
    assert_eq!(*asking.tallies.borrow(), None);
    answer.notify_one();
    let tally = asking.until(|_| true).await;
    assert_eq!(
        (tally.healthy, tally.failing.len(), tally.silent),
        (2, 1, 0)
    );
}

#[tokio::test]
async fn our_own_vote_counts_at_once() {
    let agents = vec![says(said("member1", "n1", Some(Vote::Healthy))).await];
    let mut asking = Asking::start(agents, PERIOD);
    assert_eq!(asking.until(|_| true).await.healthy, 2);
    asking.votes.send_replace(None);
    assert_eq!(asking.until(|tally| tally.healthy == 1).await.no_vote, 1);
}

/// An agent that counts how often it is asked, over how many connections.
async fn counting() -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (asked, connections) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (count, accepted) = (Arc::clone(&asked), Arc::clone(&connections));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = axum::serve::ListenerExt::tap_io(listener, move |_| {
        accepted.fetch_add(1, Ordering::Relaxed);
    });
    let router = Router::new().route(
        PATH,
        get(move || async move {
            count.fetch_add(1, Ordering::Relaxed);
            said("member1", "n1", Some(Vote::Healthy))
        }),
    );
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked, connections)
}

#[tokio::test]
async fn an_agent_is_asked_every_period_over_one_connection() {
    let (address, asked, connections) = counting().await;
    let asking = Asking::start(vec![address], Duration::from_millis(20));
    let enough = async {
        while asked.load(Ordering::Relaxed) < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, enough).await.unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    drop(asking);
}

#[tokio::test]
async fn of_many_agents_only_so_many_are_asked_at_once() {
    const MANY: usize = 2 * AT_ONCE + 10;
    let (under_way, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (now, top) = (Arc::clone(&under_way), Arc::clone(&most));
    let slow = get(move || async move {
        let with_this = now.fetch_add(1, Ordering::Relaxed) + 1;
        top.fetch_max(with_this, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
        now.fetch_sub(1, Ordering::Relaxed);
        said("member1", "n1", Some(Vote::Healthy))
    });
    let address = serve(Router::new().route(PATH, slow)).await;
    let mut asking = Asking::start(Vec::new(), PERIOD);
    let agents = (0..MANY).map(|number| {
        let peer = Peer {
            node: Some(format!("n{}", number + 1)),
            addresses: vec![address.clone()],
        };
        (format!("a{number}"), peer)
    });
    asking.listing.set(agents.collect());
    asking.until(|tally| tally.known() == MANY + 1).await;
    let most = most.load(Ordering::Relaxed);
    assert!((2..=AT_ONCE).contains(&most), "{most}");
}

#[tokio::test]
async fn while_nodes_turn_they_are_asked_again_after_a_second() {
    let (address, asked, _) = counting().await;
    let mut asking = Asking::start(vec![address], PERIOD);
    asking.until(|_| true).await;
    let before = asked.load(Ordering::Relaxed);
    asking.votes.send_replace(Some(Vote::Unhealthy(failure())));
    let again = async {
        while asked.load(Ordering::Relaxed) == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, again).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_joins_is_asked_in_the_next_round() {
    let first = says(said("member1", "n1", Some(Vote::Healthy))).await;
    let second = says(said("member1", "n2", Some(Vote::Healthy))).await;
    let mut asking = Asking::start(vec![first.clone()], Duration::from_millis(20));
    assert_eq!(asking.until(|_| true).await.known(), 2);
    asking.listing.set(list(vec![first, second]));
    asking.until(|tally| tally.healthy == 3).await;
}
