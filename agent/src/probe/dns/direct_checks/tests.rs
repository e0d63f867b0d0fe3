use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::*;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-dns";
/// In the test's own, paused time.
const LONGEST_WAIT: Duration = Duration::from_mins(10);
const HOUR: Duration = Duration::from_hours(1);

fn shown(servers: &[SocketAddr]) -> Vec<String> {
    servers.iter().map(ToString::to_string).collect()
}

fn service(cluster_ip: &str, ports: &Value) -> Service {
    serde_json::from_value(json!({ "spec": { "clusterIP": cluster_ip, "ports": ports } })).unwrap()
}

fn slice(port: u16, endpoints: &Value) -> EndpointSlice {
    let ports = json!([{ "port": 9153, "protocol": "TCP" }, { "port": port, "protocol": "UDP" }]);
    let slice =
        json!({ "metadata": {}, "addressType": "IPv4", "endpoints": endpoints, "ports": ports });
    serde_json::from_value(slice).unwrap()
}

#[test]
fn the_service_is_queried_on_its_udp_port() {
    let metrics = json!([{ "port": 9153, "protocol": "TCP" }]);
    let both = json!([{ "port": 9153, "protocol": "TCP" }, { "port": 5353, "protocol": "UDP" }]);
    let cases = [
        (service("10.96.0.10", &both), Some("10.96.0.10:5353")),
        (service("fd00::a", &metrics), Some("[fd00::a]:53")),
        (service("None", &both), None),
        (service("", &both), None),
        (Service::default(), None),
    ];
    for (service, expected) in cases {
        let expected = expected.map(|server| server.parse().unwrap());
        assert_eq!(address(&service), expected);
    }
}

#[test]
fn ready_pods_are_queried_and_all_while_none_is_ready() {
    let endpoint =
        |ip: &str, ready: Value| json!({ "addresses": [ip], "conditions": { "ready": ready } });
    let some = slice(
        53,
        &json!([
            endpoint("10.244.0.2", json!(false)),
            endpoint("10.244.0.4", json!(true)),
            { "addresses": ["10.244.0.3"] },
            { "addresses": ["nonsense"] },
        ]),
    );
    let none = slice(5353, &json!([endpoint("10.244.0.2", json!(false))]));
    assert_eq!(
        shown(&endpoints([&some].into_iter())),
        ["10.244.0.3:53", "10.244.0.4:53"]
    );
    assert_eq!(shown(&endpoints([&none].into_iter())), ["10.244.0.2:5353"]);
    assert_eq!(
        shown(&endpoints([&none, &some, &some].into_iter())),
        ["10.244.0.3:53", "10.244.0.4:53"]
    );
    assert!(endpoints([&EndpointSlice::default()].into_iter()).is_empty());
}

/// A missing server is told, once the API has listed all that there are.
#[test]
fn missing_servers_are_told() {
    let port = json!([{ "port": 53, "protocol": "UDP" }]);
    let [good, headless] = ["10.96.0.10", "None"].map(|ip| service(ip, &port));
    let [one, none] = [json!([{ "addresses": ["10.244.0.2"] }]), json!([])];
    let [one, none] = [one, none].map(|endpoints| slice(53, &endpoints));
    for (lists, service, slice, expected) in [
        ([false, false], None, None, None),
        ([true, false], None, None, Some("no such Service")),
        // Where only pods are queried, or their list comes first.
        ([false, true], None, Some(&one), None),
        ([false, true], None, None, Some("no EndpointSlice")),
        ([true, false], Some(&good), None, None),
        ([true, true], Some(&good), Some(&one), None),
        (
            [true, true],
            Some(&headless),
            Some(&one),
            Some("no cluster IP"),
        ),
        ([true, true], Some(&good), None, Some("no EndpointSlice")),
        ([true, true], Some(&good), Some(&none), Some("no endpoint")),
    ] {
        let [service_list, slices] = lists;
        let listed = Listed {
            service: service_list,
            slices,
        };
        let missing = listed.missing(service, slice.into_iter());
        let is_expected = match expected {
            Some(expected) => missing.is_some_and(|missing| missing.ends_with(expected)),
            None => missing.is_none(),
        };
        assert!(is_expected, "{missing:?}, not {expected:?}");
    }
}

/// The API of a member with a DNS Service beside another, and the servers discovered there. The
/// discovery ends when this is dropped.
struct Member {
    server: ApiServer,
    services: Api<Service>,
    slices: Api<EndpointSlice>,
    direct: watch::Receiver<DirectServers>,
    _program: Program,
}

impl Member {
    /// Starts the discovery in an API with `faults`.
    async fn start(service: AddressSource, pods: AddressSource, faults: &[Fault]) -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let services = Api::namespaced(client.clone(), NAMESPACE);
        create(&services, dns("other", "10.96.0.9")).await;
        create(&services, dns(NAME, "10.96.0.10")).await;
        let slices = Api::namespaced(client.clone(), NAMESPACE);
        create(&slices, listed("other", "s0", "10.244.9.9")).await;
        create(&slices, listed(NAME, "s1", "10.244.0.2")).await;
        for fault in faults {
            server.faults().inject(fault.clone());
        }
        let targets = DirectTargets {
            service,
            pods,
            dns_service: (NAMESPACE.to_owned(), NAME.to_owned()),
        };
        let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        let direct = start(&mut program, targets, Some(client)).unwrap();
        Self {
            server,
            services,
            slices,
            direct,
            _program: program,
        }
    }

    /// Waits until exactly these are discovered.
    async fn until(&mut self, service: &[&str], pods: &[&str]) {
        let found = self.direct.wait_for(|direct| {
            shown(direct.service.as_slice()) == service && shown(&direct.pods) == pods
        });
        let found = timeout(LONGEST_WAIT, found).await.is_ok();
        assert!(found, "{:?}", self.direct.borrow());
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + Debug + DeserializeOwned + serde::Serialize,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn dns(name: &str, ip: &str) -> Value {
    let ports = [json!({ "port": 53, "protocol": "UDP" })];
    json!({ "metadata": { "name": name }, "spec": { "clusterIP": ip, "ports": ports } })
}

fn listed(service: &str, name: &str, ip: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { SERVICE_NAME: service } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [ip] }],
        "ports": [{ "port": 53, "protocol": "UDP" }],
    })
}

#[tokio::test(start_paused = true)]
async fn the_service_and_its_pods_are_discovered_and_followed() {
    let mut member = Member::start(AddressSource::Discovered, AddressSource::Discovered, &[]).await;
    member.until(&["10.96.0.10:53"], &["10.244.0.2:53"]).await;
    create(&member.slices, listed(NAME, "s2", "10.244.1.2")).await;
    let both = ["10.244.0.2:53", "10.244.1.2:53"];
    member.until(&["10.96.0.10:53"], &both).await;

    let deletion = DeleteParams::default();
    member.slices.delete("s1", &deletion).await.unwrap();
    member.until(&["10.96.0.10:53"], &["10.244.1.2:53"]).await;
    member.services.delete(NAME, &deletion).await.unwrap();
    member.until(&[], &["10.244.1.2:53"]).await;
    create(&member.services, dns(NAME, "10.96.0.53")).await;
    member.until(&["10.96.0.53:53"], &["10.244.1.2:53"]).await;
}

#[tokio::test(start_paused = true)]
async fn discovered_servers_remain_while_the_api_is_away_and_are_updated_afterwards() {
    for away in [Fault::Disconnect, Fault::Unavailable, Fault::Silence] {
        let mut member =
            Member::start(AddressSource::Discovered, AddressSource::Discovered, &[]).await;
        member.until(&["10.96.0.10:53"], &["10.244.0.2:53"]).await;
        let fault = member.server.faults().inject(away);
        sleep(HOUR).await;
        assert!(!member.direct.has_changed().unwrap());

        member.server.faults().remove(fault);
        let deletion = DeleteParams::default();
        member.slices.delete("s1", &deletion).await.unwrap();
        create(&member.slices, listed(NAME, "s2", "10.244.1.2")).await;
        member.until(&["10.96.0.10:53"], &["10.244.1.2:53"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_waits_for_an_api_that_is_away_at_the_start() {
    let mut member = Member::start(
        AddressSource::Discovered,
        AddressSource::Discovered,
        &[Fault::Disconnect],
    )
    .await;
    sleep(HOUR).await;
    assert!(!member.direct.has_changed().unwrap());
    member.server.faults().clear();
    member.until(&["10.96.0.10:53"], &["10.244.0.2:53"]).await;
}

fn given(address: &str) -> AddressSource {
    AddressSource::Given(vec![address.parse().unwrap()])
}

#[tokio::test(start_paused = true)]
async fn addresses_that_flags_give_are_not_discovered() {
    let mut member = Member::start(given("10.96.0.99:53"), AddressSource::Discovered, &[]).await;
    member.until(&["10.96.0.99:53"], &["10.244.0.2:53"]).await;
    let mut member = Member::start(AddressSource::Discovered, given("10.244.9.1:53"), &[]).await;
    member.until(&["10.96.0.10:53"], &["10.244.9.1:53"]).await;
    let mut member = Member::start(AddressSource::Discovered, AddressSource::None, &[]).await;
    member.until(&["10.96.0.10:53"], &[]).await;
}

#[tokio::test]
async fn without_the_members_api_discovery_is_refused() {
    let targets = DirectTargets {
        service: AddressSource::Discovered,
        pods: AddressSource::None,
        dns_service: (NAMESPACE.to_owned(), NAME.to_owned()),
    };
    let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
    let refused = start(&mut program, targets, None).unwrap_err().to_string();
    assert!(refused.contains("--member-kubeconfig"), "{refused}");
}
