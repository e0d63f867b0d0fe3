use apiserver::ApiServer;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::program::Program;
use kube::api::PostParams;
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

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
        port: 8080,
    }
}

fn slices() -> Slices {
    Slices::new(&own())
}

fn shown(slices: &Slices) -> Vec<String> {
    let list = slices.list().unwrap();
    let line = |(key, peer): (&String, &Peer)| format!("{key} {}", peer.addresses.join(" "));
    list.iter().map(line).collect()
}

#[test]
fn the_other_agents_are_all_endpoints_but_our_own_ready_or_not() {
    let mut slices = slices();
    let endpoints = json!([endpoint("n0", "10.0.0.1"), endpoint("n1", "10.0.0.2")]);
    slices.observe(Event::Apply(slice("a", &endpoints)));
    slices.observe(Event::Apply(slice(
        "b",
        &json!([endpoint("n2", "10.0.1.2")]),
    )));
    assert_eq!(shown(&slices), ["n1 10.0.0.2:9090", "n2 10.0.1.2:9090"]);
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
    assert_eq!(slices.list(), Some(PeerList::new()));
}

/// The discovery of agents on three nodes.
struct Discovered {
    lists: watch::Receiver<u32>,
    watches: watch::Receiver<u32>,
    known: watch::Receiver<Option<usize>>,
    contacted: watch::Sender<Option<LeaderContact>>,
}

impl Discovered {
    async fn start() -> Self {
        let server = ApiServer::new();
        let endpoints = ["n0", "n1", "n2"].map(|node| endpoint(node, "10.0.0.1"));
        let slice = json!({
            "metadata": { "name": "a", "labels": { "kubernetes.io/service-name": "agents" } },
            "addressType": "IPv4",
            "endpoints": endpoints,
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        let slices = Api::default_namespaced(Client::new(server.service(), "default"));
        let parameters = PostParams::default();
        slices.create(&parameters, &slice).await.unwrap();

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
        let program = Program::new(crate::NAME, ([127, 0, 0, 1], 0).into());
        let metrics = PeerMetrics::register(&mut prometheus_client::registry::Registry::default());
        let directory = Arc::new(Directory::new(metrics));
        let (contacted, contacts) = watch::channel(None);
        let discovery = Discovery {
            client: Client::new(counting, "default"),
            service: Service {
                namespace: None,
                name: "agents".to_owned(),
            },
            own: Arc::new(own()),
            directory: Arc::clone(&directory),
            gate: program.readiness.gate("peers"),
            contacts,
        };
        tokio::spawn(discovery.run(CancellationToken::new()));
        Self {
            lists,
            watches,
            known: directory.known(),
            contacted,
        }
    }

    fn contact(&self, standby: bool) {
        let at = Instant::now().into_std();
        let contact = LeaderContact { at, standby };
        self.contacted.send_replace(Some(contact));
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_agent_that_leads_or_may_soon_watches_the_others_list_from_time_to_time() {
    let mut discovered = Discovered::start().await;
    discovered
        .known
        .wait_for(|known| *known == Some(3))
        .await
        .unwrap();
    discovered
        .watches
        .wait_for(|count| *count == 1)
        .await
        .unwrap();

    // Led: the watch ends, and one list follows after some ten minutes.
    let led = async |discovered: &Discovered, time| {
        let until = Instant::now() + time;
        while Instant::now() < until {
            discovered.contact(false);
            sleep(Duration::from_secs(5)).await;
        }
    };
    led(&discovered, Duration::from_mins(7)).await;
    assert_eq!(*discovered.lists.borrow(), 1);
    led(&discovered, Duration::from_mins(7)).await;
    assert_eq!(*discovered.lists.borrow(), 2);

    // It watches again once no leader contacts it, or one has it stand by.
    let before = *discovered.watches.borrow();
    sleep(lease::DURATION).await;
    discovered
        .watches
        .wait_for(|count| *count > before)
        .await
        .unwrap();
    assert_eq!(*discovered.lists.borrow(), 3);
    led(&discovered, Duration::from_mins(1)).await;
    discovered.contact(true);
    discovered
        .lists
        .wait_for(|count| *count == 4)
        .await
        .unwrap();
}
