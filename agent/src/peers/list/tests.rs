use std::sync::Mutex;

use embedded_apiserver::ApiServer;
use health::campaign::LeaderContact;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::lease::{self, LeaseConfig};
use karmada_runtime::program::Program;
use kube::api::PostParams;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use super::*;
use crate::campaign;
use crate::vote::on_dns;

fn slice(name: &str, endpoints: &Value) -> Decoded<EndpointSlice> {
    let slice = json!({
        "metadata": { "name": name },
        "addressType": "IPv4",
        "ports": [{ "name": "other", "port": 1 }, { "name": "admin", "port": 9090 }],
        "endpoints": endpoints,
    });
    Decoded::Valid(serde_json::from_value(slice).unwrap())
}

fn endpoint(node: &str, address: &str) -> Value {
    let pod = json!({ "kind": "Pod", "name": node, "uid": format!("pod of {node}") });
    json!({ "addresses": [address], "nodeName": node, "targetRef": pod, "conditions": { "ready": false } })
}

fn own() -> Identity {
    Identity {
        cluster: "member1".to_owned(),
        node: "n0".to_owned(),
        id: uuid::Uuid::from_u128(0),
        port: 8080,
    }
}

fn slices() -> Slices {
    Slices::new(&own())
}

fn shown(slices: &Slices) -> Vec<String> {
    let list = slices.list().unwrap();
    let lines = list.iter();
    lines
        .map(|(key, peer)| format!("{key} {}", peer.addresses.join(" ")))
        .collect()
}

#[test]
fn the_agents_are_all_endpoints_ready_or_not() {
    let mut slices = slices();
    let endpoints = json!([endpoint("n0", "10.0.0.1"), endpoint("n1", "10.0.0.2")]);
    slices.observe(Event::Apply(slice("a", &endpoints)));
    slices.observe(Event::Apply(slice(
        "b",
        &json!([endpoint("n2", "10.0.1.2")]),
    )));
    let all = ["n0 10.0.0.1:9090", "n1 10.0.0.2:9090", "n2 10.0.1.2:9090"];
    assert_eq!(shown(&slices), all);
}

#[test]
fn the_agent_that_is_ending_on_our_own_node_ran_there_before_us() {
    let mut slices = slices();
    let mut ending = endpoint("n0", "10.0.0.1");
    ending["conditions"]["terminating"] = json!(true);
    let endpoints = json!([ending, endpoint("n0", "10.0.0.2")]);
    slices.observe(Event::Apply(slice("a", &endpoints)));
    assert_eq!(shown(&slices), ["n0 10.0.0.2:9090"]);
}

#[test]
fn this_agent_is_one_of_the_known_agents_whether_or_not_it_is_listed() {
    let metrics = PeerMetrics::register(
        &mut karmada_runtime::metrics::Registry::default(),
        &on_dns(None),
    );
    let directory = Directory::new(&own(), metrics);
    for (nodes, known) in [
        (vec![], 1),
        (vec!["n0"], 1),
        (vec!["n1"], 2),
        (vec!["n0", "n1"], 2),
    ] {
        let peers = nodes
            .iter()
            .map(|node| ((*node).to_owned(), Peer::default()));
        directory.set(peers.collect());
        assert_eq!(*directory.known().borrow(), Some(known), "{nodes:?}");
    }
}

#[test]
fn addresses_of_both_families_and_of_two_pods_on_a_node_are_one_agent() {
    let mut slices = slices();
    let mut ending = endpoint("n1", "10.0.0.2");
    ending["conditions"]["terminating"] = json!(true);
    let endpoints = json!([ending, endpoint("n1", "10.0.0.3")]);
    slices.observe(Event::Apply(slice("a", &endpoints)));
    slices.observe(Event::Apply(slice(
        "b",
        &json!([endpoint("n1", "fd00::3")]),
    )));
    assert_eq!(
        shown(&slices),
        ["n1 10.0.0.3:9090 [fd00::3]:9090 10.0.0.2:9090"]
    );
}

#[test]
fn without_a_node_the_pod_counts_and_without_that_the_address() {
    let mut slices = slices();
    let pod =
        |address| json!({ "addresses": [address], "targetRef": { "kind": "Pod", "uid": "u1" } });
    let endpoints = json!([pod("10.0.0.2"), pod("fd00::2"), { "addresses": ["10.0.0.9"] }]);
    slices.observe(Event::Apply(slice("a", &endpoints)));
    assert_eq!(
        shown(&slices),
        [
            "10.0.0.9:9090 10.0.0.9:9090",
            "u1 10.0.0.2:9090 [fd00::2]:9090"
        ]
    );
}

#[test]
fn an_endpoint_with_a_host_name_or_without_an_address_is_skipped() {
    let mut slices = slices();
    let endpoints = json!([{ "addresses": ["agent.example"] }, { "addresses": [] }, endpoint("n1", "10.0.0.2")]);
    slices.observe(Event::Apply(slice("a", &endpoints)));
    assert_eq!(shown(&slices), ["n1 10.0.0.2:9090"]);
}

#[test]
fn a_complete_list_replaces_what_was_known_and_a_broken_slice_keeps_its_last_version() {
    let mut slices = slices();
    slices.observe(Event::Apply(slice(
        "a",
        &json!([endpoint("n1", "10.0.0.1")]),
    )));
    slices.observe(Event::Apply(slice(
        "b",
        &json!([endpoint("n2", "10.0.0.2")]),
    )));
    assert!(!slices.observe(Event::Init));
    let broken = Decoded::Invalid {
        metadata: Box::new(ObjectMeta {
            name: Some("a".to_owned()),
            ..ObjectMeta::default()
        }),
        error: "no such field".to_owned(),
    };
    slices.observe(Event::InitApply(broken));
    assert_eq!(shown(&slices).len(), 2);
    assert!(slices.observe(Event::InitDone));
    assert_eq!(shown(&slices), ["n1 10.0.0.1:9090"]);
}

#[test]
fn slices_without_any_agent_are_no_list_and_with_our_own_alone_are_one() {
    let mut slices = slices();
    slices.observe(Event::InitDone);
    assert_eq!(slices.list(), None);
    slices.observe(Event::Apply(slice(
        "a",
        &json!([endpoint("n0", "10.0.0.1")]),
    )));
    assert_eq!(shown(&slices), ["n0 10.0.0.1:9090"]);
}

/// The discovery of agents on three nodes.
struct Discovered {
    lists: watch::Receiver<u32>,
    watches: watch::Receiver<u32>,
    known: watch::Receiver<Option<usize>>,
    mode: watch::Sender<CampaignMode>,
}

/// Starts an API with a slice of so many agents.
async fn api(agents: usize) -> ApiServer {
    let server = ApiServer::new();
    let endpoints: Vec<_> = (0..agents)
        .map(|node| endpoint(&format!("n{node}"), "10.0.0.1"))
        .collect();
    let slice = json!({
        "metadata": { "name": "a", "labels": { "kubernetes.io/service-name": "agents" } },
        "addressType": "IPv4",
        "endpoints": endpoints,
    });
    let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
    let slices = Api::default_namespaced(Client::new(server.service(), "default"));
    let parameters = PostParams::default();
    slices.create(&parameters, &slice).await.unwrap();
    server
}

/// Returns the discovery of an agent that never gets the lease.
fn discovery(
    client: Client,
    program: &mut Program,
    mode: watch::Receiver<CampaignMode>,
) -> Discovery {
    let nowhere = Client::new(ApiServer::new().service(), "default");
    let config = LeaseConfig {
        mode: watch::channel(CampaignMode::Off).1,
        ..LeaseConfig::eager("default".to_owned(), crate::identity::NAME, "n0".to_owned())
    };
    let metrics = PeerMetrics::register(
        &mut karmada_runtime::metrics::Registry::default(),
        &on_dns(None),
    );
    Discovery {
        client,
        service: Service {
            namespace: None,
            name: "agents".to_owned(),
        },
        own: Arc::new(own()),
        directory: Arc::new(Directory::new(&own(), metrics)),
        gate: program.readiness.gate("peers"),
        election: Election {
            mode,
            leadership: lease::campaign(program, nowhere, config),
        },
    }
}

impl Discovered {
    async fn start(leadership: Option<Leadership>) -> Self {
        let server = api(3).await;
        let (lists_sent, lists) = watch::channel(0);
        let (watches_sent, watches) = watch::channel(0);
        let counting = server.service().map_request(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let count = if query.contains("watch=true") {
                &watches_sent
            } else {
                &lists_sent
            };
            count.send_modify(|count| *count += 1);
            request
        });
        let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        let (mode, modes) = watch::channel(CampaignMode::Off);
        let mut discovery = discovery(Client::new(counting, "default"), &mut program, modes);
        if let Some(leadership) = leadership {
            discovery.election.leadership = leadership;
        }
        let known = discovery.directory.known();
        tokio::spawn(async move {
            // Its tasks end when it is dropped.
            let _program = program;
            discovery.run(CancellationToken::new()).await
        });
        Self {
            lists,
            watches,
            known,
            mode,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_agent_that_stands_by_watches_the_others_list_from_time_to_time() {
    let mut discovered = Discovered::start(None).await;
    let listed = discovered.known.wait_for(|known| *known == Some(3));
    listed.await.unwrap();

    // One list follows after some ten minutes.
    sleep(Duration::from_mins(7)).await;
    assert_eq!(*discovered.lists.borrow(), 1);
    sleep(Duration::from_mins(7)).await;
    assert_eq!(*discovered.lists.borrow(), 2);

    // Its turn to campaign changes nothing: perhaps nobody can lead, and it is everyone's turn.
    let before = *discovered.watches.borrow();
    let turn = CampaignMode::Spread(Duration::ZERO);
    discovered.mode.send_replace(turn);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(*discovered.lists.borrow(), 2);
    assert_eq!(*discovered.watches.borrow(), before);

    // It lists and watches once it stands by, and stops when another does or it has to abstain.
    let off = [CampaignMode::Off, CampaignMode::Withdrawn, turn];
    for (lists, off) in (3..).zip(off) {
        let before = *discovered.watches.borrow();
        discovered.mode.send_replace(CampaignMode::Eager);
        let watches = discovered.watches.wait_for(|count| *count > before);
        watches.await.unwrap();
        assert_eq!(*discovered.lists.borrow(), lists);
        sleep(Duration::from_mins(1)).await;
        discovered.mode.send_replace(off);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(*discovered.lists.borrow(), lists);
    }
    let before = *discovered.watches.borrow();
    sleep(Duration::from_mins(5)).await;
    assert_eq!(*discovered.watches.borrow(), before);
}

#[tokio::test(start_paused = true)]
async fn a_leader_watches_whether_or_not_it_would_campaign() {
    let mut discovered = Discovered::start(Some(Leadership::always())).await;
    let watches = discovered.watches.wait_for(|count| *count == 1);
    watches.await.unwrap();
    // A watch lasts for five minutes, then the next begins.
    sleep(Duration::from_mins(7)).await;
    assert!(*discovered.watches.borrow() > 1);
    assert_eq!(*discovered.lists.borrow(), 1);
}

/// Its list may be ten minutes old, and decides how many nodes make a quorum.
#[tokio::test(start_paused = true)]
async fn an_agent_that_becomes_the_leader_in_its_turn_lists_the_others_at_once() {
    let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
    let (seeking, mode) = watch::channel(CampaignMode::Off);
    let config = LeaseConfig {
        mode,
        ..LeaseConfig::eager("default".to_owned(), crate::identity::NAME, "n0".to_owned())
    };
    let client = Client::new(api(0).await.service(), "default");
    let leadership = lease::campaign(&mut program, client, config);
    let mut discovered = Discovered::start(Some(leadership)).await;
    let listed = discovered.known.wait_for(|known| *known == Some(3));
    listed.await.unwrap();
    sleep(Duration::from_mins(5)).await;
    let (before, turn) = (*discovered.watches.borrow(), Instant::now());
    for mode in [&seeking, &discovered.mode] {
        mode.send_replace(CampaignMode::Spread(Duration::ZERO));
    }
    let watches = discovered.watches.wait_for(|count| *count > before);
    watches.await.unwrap();
    assert!(turn.elapsed() < Duration::from_secs(5));
    assert_eq!(*discovered.lists.borrow(), 2);
}

/// They start together, and their leader falls silent for all of them at once.
#[tokio::test(start_paused = true)]
async fn a_thousand_agents_do_not_list_and_watch_at_the_same_moment() {
    const SECOND: Duration = Duration::from_secs(1);
    fastrand::seed(7);
    let server = api(1_000).await;
    let requests = Arc::<Mutex<Vec<Instant>>>::default();
    let log = Arc::clone(&requests);
    let counting = server.service().map_request(move |request: Request<Body>| {
        log.lock().unwrap().push(Instant::now());
        request
    });
    let client = Client::new(counting, "default");
    let (contacted, contacts) = watch::channel(None);
    let mut programs = Vec::new();
    for _ in 0..1_000 {
        let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        let (seeking, mode) = watch::channel(CampaignMode::Off);
        let discovery = discovery(client.clone(), &mut program, mode);
        let facts = campaign::Facts {
            contacts: contacts.clone(),
            known: discovery.directory.known(),
            abstentions: watch::channel(None).1,
        };
        campaign::start(&mut program, facts, seeking);
        let task = discovery.run(program.stopping.clone());
        program.tasks.spawn("peers", task);
        programs.push(program);
    }
    // Lets `time` pass and returns the number of requests in its busiest second.
    let busiest = async |time| {
        sleep(time).await;
        let requests = std::mem::take(&mut *requests.lock().unwrap());
        let counts = requests.iter().map(|first| {
            let second = *first..*first + SECOND;
            requests.iter().filter(|at| second.contains(at)).count()
        });
        counts.max().unwrap_or(0)
    };
    // Two hundred lists in a second, and the watches of those whose turn has come.
    let started = busiest(10 * SECOND).await;
    assert!((150..300).contains(&started), "{started}");
    let contact = LeaderContact {
        at: Instant::now().into_std(),
        standby: false,
    };
    contacted.send_replace(Some(contact));
    assert!(busiest(lease::DURATION).await <= 5);
    // All campaign in the end, and none of them watches: it would not stop before somebody leads.
    let silent = busiest(Duration::from_mins(1)).await;
    assert_eq!(silent, 0);
}
