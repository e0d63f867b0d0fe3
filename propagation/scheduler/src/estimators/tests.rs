use clap::Parser;
use lab_parts::port::ReservedPort;
use lab_parts::test_api::TestApi;
use serde_json::{Value, from_value, json};

use self::server::{Script, Server};
use super::message::{MaxAvailableReplicasRequest, NodeClaim, ReplicaRequirements};
use super::*;

mod assumed;
pub(crate) mod server;
mod sets;

const SERVICES: &str = "/api/v1/namespaces/karmada-system/services";

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    estimators: EstimatorArgs,
}

/// An API that says where the estimators of clusters are.
struct Stage {
    api: TestApi,
    estimators: Estimators,
}

impl Stage {
    /// Creates a stage on which the estimator of each cluster has this port.
    async fn new(flags: &[&str], ports: &[(&str, u16)]) -> Self {
        let api = TestApi::with_kinds([]);
        api.create_namespace("karmada-system").await;
        for (cluster, port) in ports {
            let service = json!({
                "metadata": { "name": format!("karmada-scheduler-estimator-{cluster}") },
                "spec": {
                    "type": "ExternalName", "externalName": "localhost",
                    "ports": [{ "port": 10352, "targetPort": port }],
                },
            });
            api.send("POST", SERVICES, &service).await;
        }
        let args = Flags::parse_from([&["scheduler"], flags].concat()).estimators;
        let estimators = Estimators::new(args, api.client(), Answers::default());
        Self { api, estimators }
    }

    /// Returns the answers of the estimators of these clusters.
    async fn ask(&self, clusters: &[&str]) -> Estimates {
        self.ask_about(&spec(), clusters).await
    }

    async fn ask_about(&self, spec: &ResourceBindingSpec, clusters: &[&str]) -> Estimates {
        let clusters: Vec<_> = clusters.iter().map(|name| cluster(name)).collect();
        let clusters: Vec<_> = clusters.iter().collect();
        self.estimators.ask(spec, &clusters, None).await
    }
}

fn cluster(name: &str) -> ClusterView {
    from_value(json!({ "metadata": { "name": name }, "spec": { "syncMode": "Push" } })).unwrap()
}

fn spec() -> ResourceBindingSpec {
    from_value(json!({
        "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
        "replicas": 5, "replicaRequirements": requirements(),
    }))
    .unwrap()
}

fn requirements() -> Value {
    let required = json!({ "key": "disk", "operator": "In", "values": ["ssd"] });
    json!({
        "resourceRequest": { "cpu": "100m" }, "namespace": "shop", "priorityClassName": "high",
        "nodeClaim": {
            "nodeSelector": { "arch": "arm64" },
            "hardNodeAffinity": { "nodeSelectorTerms": [{ "matchExpressions": [required] }] },
            "tolerations": [{ "key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 }],
        },
    })
}

fn estimates<const N: usize>(answers: [(&str, i32); N]) -> Estimates {
    answers
        .map(|(name, replicas)| (name.to_owned(), replicas))
        .into_iter()
        .collect()
}

/// Lets this time pass at once; reads from a socket before and after it take the time that they take.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Returns a field of a message.
fn bytes(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut field = vec![tag];
    prost::encode_length_delimiter(value.len(), &mut field).unwrap();
    [field, value.to_vec()].concat()
}

/// The request of [`requirements`]: a name and an amount.
const CPU: &[u8] = b"\x0a\x03cpu\x12\x06\x0a\x04100m";

/// Returns the bytes of [`requirements`] as those of a component.
fn needs_bytes() -> Vec<u8> {
    let needs = [
        bytes(0x0a, &claim_bytes()),
        bytes(0x12, CPU),
        bytes(0x1a, b"high"),
        bytes(0x22, CPU),
    ];
    needs.concat()
}

/// Returns the bytes of the node claim of [`requirements`].
fn claim_bytes() -> Vec<u8> {
    let toleration = b"\x0a\x03gpu\x12\x06Exists\x22\x09NoExecute\x28\x05";
    let requirement = b"\x0a\x04disk\x12\x02In\x1a\x03ssd";
    let affinity = bytes(0x0a, &bytes(0x0a, requirement));
    let claim = [
        bytes(0x0a, &affinity),
        bytes(0x12, b"\x0a\x04arch\x12\x05arm64"),
        bytes(0x1a, toleration),
        bytes(0x22, &affinity),
        bytes(0x2a, toleration),
    ];
    claim.concat()
}

/// The questions are the bytes that Karmada's generated code and that of Kubernetes write. An estimator of Karmada 1.17
/// knows none of the fields that have bytes in them, and would find a request for nothing. Case I95.
#[test]
fn request_has_karmadas_bytes() {
    let request = MaxAvailableReplicasRequest {
        cluster: "m1".to_owned(),
        replica_requirements: ReplicaRequirements::read(Some(&requirements())).unwrap(),
        assumed_workloads: Vec::new(),
    };
    let needs = [
        bytes(0x0a, &claim_bytes()),
        bytes(0x12, CPU),
        bytes(0x1a, b"shop"),
        bytes(0x22, b"high"),
        bytes(0x2a, CPU),
    ];
    let expected = [bytes(0x0a, b"m1"), bytes(0x12, &needs.concat())].concat();
    assert_eq!(prost::Message::encode_to_vec(&request), expected);
}

/// A field that a binding leaves out, or has as null, is left out.
#[test]
fn gaps_are_no_needs() {
    let read = |value: Value| ReplicaRequirements::read(Some(&value)).unwrap();
    assert_eq!(ReplicaRequirements::read(None).unwrap(), None);
    assert_eq!(read(Value::Null), None);
    let gaps = json!({ "nodeClaim": null, "namespace": null, "resourceRequest": null });
    assert_eq!(read(gaps), Some(ReplicaRequirements::default()));
    let claim = json!({ "nodeClaim": { "tolerations": null, "nodeSelector": null } });
    assert_eq!(read(claim).unwrap().node_claim, Some(NodeClaim::default()));
    assert!(ReplicaRequirements::read(Some(&json!({ "resourceRequest": [] }))).is_err());
}

/// One that does not know, that refuses, that is away or whose place is unknown takes no other's answer away. Case I95.
#[tokio::test]
async fn failing_ones_are_unknown() {
    let knows = Server::start(Script::Room(3)).await;
    let does_not = Server::start(Script::Room(-1)).await;
    let refuses = Server::start(Script::Error).await;
    let away = ReservedPort::reserve().unwrap();
    let ports = [
        ("m1", knows.port),
        ("m2", does_not.port),
        ("m3", refuses.port),
        ("m4", away.address().port()),
    ];
    let stage = Stage::new(&[], &ports).await;
    let service = json!({
        "metadata": { "name": "karmada-scheduler-estimator-m5" },
        "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": 1 }] },
    });
    stage.api.send("POST", SERVICES, &service).await;
    let answers = stage.ask(&["m1", "m2", "m3", "m4", "m5"]).await;
    assert_eq!(answers, estimates([("m1", 3)]));
    let asked = knows.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].cluster, "m1");
    assert_eq!(
        asked[0].replica_requirements,
        ReplicaRequirements::read(Some(&requirements())).unwrap()
    );
}

/// One that is silent costs its time once, and is asked again after a while, where it is by then. Case I95.
#[tokio::test]
async fn silent_one_is_asked_later() {
    let silent = Server::start(Script::Never).await;
    let flags = ["--scheduler-estimator-timeout=1h"];
    let stage = Stage::new(&flags, &[("m1", silent.port)]).await;
    let (answers, ()) = tokio::join!(stage.ask(&["m1"]), async {
        while silent.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        pass(Duration::from_hours(1)).await;
    });
    assert_eq!(answers, estimates([]));
    assert_eq!(stage.ask(&["m1"]).await, estimates([]));
    assert_eq!(silent.asked().len(), 1);

    let speaks = Server::start(Script::Room(2)).await;
    let ports = json!({ "spec": { "ports": [{ "port": 10352, "targetPort": speaks.port }] } });
    let service = format!("{SERVICES}/karmada-scheduler-estimator-m1");
    stage.api.send("PATCH", &service, &ports).await;
    pass(PAUSE).await;
    assert_eq!(stage.ask(&["m1"]).await, estimates([("m1", 2)]));
    assert_eq!(stage.ask(&["m1"]).await, estimates([("m1", 2)]));
    assert_eq!(speaks.asked().len(), 2);
    // The connection stays.
    assert_eq!(speaks.connections(), 1);
}

/// One that refuses a question is there: an older one does not know them all, and a team may ask a question that nobody can
/// read. The next one may be another's. Case I95.
#[tokio::test]
async fn refusing_one_is_asked_on() {
    let refuses = Server::start(Script::Error).await;
    let stage = Stage::new(&[], &[("m1", refuses.port)]).await;
    for asked in 1..=2 {
        assert_eq!(stage.ask(&["m1"]).await, estimates([]));
        assert_eq!(refuses.asked().len(), asked);
    }
}

/// Estimators are verified by the authority that is named, and shown our certificate. Case I95.
#[tokio::test]
async fn estimators_are_verified() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_with_tls(Script::Room(4), directory.path()).await;
    let flag = |name: &str, file: &str| {
        let path = directory.path().join(file);
        format!("--{name}={}", path.display())
    };
    let ours = [
        flag("scheduler-estimator-cert-file", "client.crt"),
        flag("scheduler-estimator-key-file", "client.key"),
    ];
    let by = |file: &str| vec![flag("scheduler-estimator-ca-file", file)];
    let unverified = vec!["--insecure-skip-estimator-verify".to_owned()];
    let known = Some(estimates([("m1", 4)]));
    for (flags, shows_ours, expected) in [
        (by("ca.crt"), true, known.clone()),
        (unverified, true, known),
        (by("ca.crt"), false, None),
        (by("other.crt"), true, None),
        (by("missing.crt"), true, None),
        (vec![], false, None),
    ] {
        let shown = ours.iter().filter(|_| shows_ours);
        let flags: Vec<&str> = flags.iter().chain(shown).map(|flag| &**flag).collect();
        let stage = Stage::new(&flags, &[("m1", server.port)]).await;
        let answers = stage.ask(&["m1"]).await;
        assert_eq!(answers, expected.unwrap_or_default(), "{flags:?}");
    }
}

/// Clusters of mode Pull may be left out, and those that are gone are forgotten.
#[tokio::test]
async fn some_clusters_are_left_out() {
    let server = Server::start(Script::Room(3)).await;
    let flags = ["--disable-scheduler-estimator-in-pull-mode"];
    let stage = Stage::new(&flags, &[("m1", server.port), ("m2", server.port)]).await;
    let mut pulls = cluster("m2");
    pulls.spec.sync_mode = "Pull".to_owned();
    let clusters = [&cluster("m1"), &pulls];
    let answers = stage.estimators.ask(&spec(), &clusters, None).await;
    assert_eq!(answers, estimates([("m1", 3)]));
    assert!(stage.estimators.links.lock().contains_key("m1"));
    stage.estimators.retain(["m2"].into_iter());
    assert!(stage.estimators.links.lock().is_empty());
}
