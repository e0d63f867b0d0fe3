use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::{ApiServer, Fault, Verb};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::{execution_namespace, names};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use lab_parts::port::CLOSED;
use lab_parts::served::ServedApi;
use lab_parts::test_api::{TestApi, until};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;

mod pull;

const LIMIT: Duration = Duration::from_secs(30);
const PUBLISHING: &[&str] = &["--publish-node-addresses=InternalIP"];

/// The API of a fleet.
struct Stage {
    api: TestApi,
}

/// Serves the API of a member.
async fn member() -> ServedApi {
    let member = TestApi::of(ApiServer::starting_at(Timestamp::now()));
    member.create(&node()).await;
    member.create(&pod()).await;
    ServedApi::start(member.server, |_| true)
}

/// Connects the program to an API.
fn client(api: &TestApi) -> Client {
    let config = kube::Config::new("http://api".parse().unwrap());
    karmada_runtime::client::with_service(api.service(), config, NAME).unwrap()
}

fn node() -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            "conditions": [{ "type": "Ready", "status": "True" }] } })
}

fn pod() -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "namespace": "default" },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i",
            "resources": { "requests": { "cpu": "250m", "memory": "64Mi" } } }] },
        "status": { "phase": "Running" } })
}

fn conditions<'a>(cluster: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let conditions = cluster.data["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

fn has(cluster: &DynamicObject, kind: &str, status: &str) -> bool {
    conditions(cluster, kind).is_some_and(|condition| condition["status"] == status)
}

/// Returns `true` if a healthy cluster lacks nothing.
fn is_complete(cluster: &DynamicObject) -> bool {
    has(cluster, "Ready", "True")
        && has(cluster, "CompleteAPIEnablements", "True")
        && cluster.data["spec"]["taints"].is_null()
        && cluster.data["status"]["resourceSummary"]["allocated"].is_object()
        && cluster.metadata.finalizers.is_some()
}

impl Stage {
    async fn new() -> Self {
        let api = TestApi::of(ApiServer::starting_at(Timestamp::now()));
        api.install(karmada_api::crd::fleet().unwrap());
        api.create_namespace("karmada-cluster").await;
        Self { api }
    }

    /// Creates a Cluster with only a spec, and the Secret that it names.
    async fn join(&self, name: &str, address: SocketAddr) {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name, "namespace": "karmada-cluster",
                "annotations": { "karmada-rs.io/insecure": "true" } },
            "data": { "token": "c2VjcmV0" } });
        self.api.create(&secret).await;
        let cluster = json!({ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name },
            "spec": { "syncMode": "Push", "apiEndpoint": format!("http://{address}"),
                "secretRef": { "namespace": "karmada-cluster", "name": name } } });
        self.api.create(&cluster).await;
    }

    fn of_kind(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::all_with(self.api.user(), &resource)
    }

    fn clusters(&self) -> Api<DynamicObject> {
        self.of_kind("cluster.karmada.io", "v1alpha1", "Cluster")
    }

    async fn cluster(&self, name: &str) -> DynamicObject {
        self.clusters().get(name).await.unwrap()
    }

    /// Waits until a cluster is as `wanted`.
    async fn until(&self, name: &str, wanted: impl Fn(&DynamicObject) -> bool) -> DynamicObject {
        let reached = until(self.clusters(), name, |cluster| {
            cluster.is_some_and(&wanted)
        });
        reached.await.unwrap()
    }

    async fn patch(&self, name: &str, patch: Value) {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.clusters()
            .patch(name, &parameters, &patch)
            .await
            .unwrap();
    }

    async fn delete(&self, name: &str) {
        let parameters = DeleteParams::default();
        self.clusters().delete(name, &parameters).await.unwrap();
    }

    async fn gone(&self, name: &str) {
        until(self.clusters(), name, |cluster| cluster.is_none()).await;
    }

    /// Binds something to a cluster.
    async fn bind(&self, cluster: &str) {
        let binding = json!({ "apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding",
            "metadata": { "name": "b", "labels": { names::CLUSTER_POLICY_ID: "1" } },
            "spec": { "resource": { "apiVersion": "v1", "kind": "Namespace", "name": "shop" },
                "clusters": [{ "name": cluster }] } });
        self.api.create(&binding).await;
    }

    async fn unbind(&self) {
        let bindings = self.of_kind("work.karmada.io", "v1alpha2", "ClusterResourceBinding");
        let patch = Patch::Merge(json!({ "spec": { "clusters": [] } }));
        bindings
            .patch("b", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Waits until the nodes of a cluster are published.
    async fn nodes(&self, cluster: &str) -> EndpointSlice {
        let namespace = execution_namespace(cluster);
        let slices: Api<EndpointSlice> = Api::namespaced(self.api.user(), &namespace);
        let slice = until(slices, "karmada-rs-nodes-ipv4-0", |slice| slice.is_some());
        slice.await.unwrap()
    }

    async fn namespace(&self, name: &str) -> Option<Namespace> {
        let namespaces: Api<Namespace> = Api::all(self.api.user());
        namespaces.get_opt(name).await.unwrap()
    }

    fn start(&self, flags: &[&str]) -> Program {
        let flags = [&[NAME, "--leader-elect=false"], flags].concat();
        let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
        let place = Place::ControlPlane(client(&self.api));
        assemble(&Args::parse_from(flags), place, &mut program);
        program
    }

    async fn reasons(&self) -> Vec<String> {
        let events = self.api.events().await.into_iter();
        let mut reasons: Vec<_> = events.filter_map(|event| event.reason).collect();
        reasons.sort();
        reasons
    }
}

fn metrics(program: &Program) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &program.registry).unwrap();
    text
}

/// Waits until a metric has been exposed.
async fn until_metric(program: &Program, line: &str) {
    let exposed = async {
        while !metrics(program).contains(line) {
            tokio::task::yield_now().await;
        }
    };
    let waited = timeout(LIMIT, exposed).await;
    assert!(waited.is_ok(), "no {line} in {}", metrics(program));
}

/// A cluster with only a spec and a secret gets everything else.
#[tokio::test]
async fn bare_cluster_gets_everything() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let program = stage.start(&[]);
    let cluster = stage.until("m1", is_complete).await;
    let finalizers = cluster.metadata.finalizers.clone().unwrap();
    assert_eq!(finalizers, ["karmada.io/cluster-controller"]);
    let status = &cluster.data["status"];
    assert_eq!(
        conditions(&cluster, "Ready").unwrap()["reason"],
        "ClusterReady"
    );
    assert!(
        status["kubernetesVersion"]
            .as_str()
            .unwrap()
            .starts_with('v'),
        "{status}"
    );
    let enabled = status["apiEnablements"].as_array().unwrap();
    let apps = enabled
        .iter()
        .find(|enabled| enabled["groupVersion"] == "apps/v1")
        .unwrap();
    let deployments = json!({ "name": "deployments", "kind": "Deployment" });
    assert!(
        apps["resources"].as_array().unwrap().contains(&deployments),
        "{apps}"
    );
    assert_eq!(
        status["resourceSummary"],
        json!({
            "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            "allocated": { "cpu": "250m", "memory": "64Mi", "pods": "1" },
        })
    );
    let namespace = stage.namespace("karmada-es-m1").await.unwrap();
    assert_eq!(
        namespace.metadata.labels.unwrap()["karmada.io/system"],
        "true"
    );
    until_metric(&program, r#"member_reachable{member="m1"} 1"#).await;
    // Its end writes the Events that wait.
    let mut asked = false;
    let once = async || {
        if std::mem::replace(&mut asked, true) {
            std::future::pending::<()>().await;
        }
    };
    assert!(program.run_until(once).await);
    let reasons = stage.reasons().await;
    for reason in ["ClusterReady", "CreateExecutionSpaceSucceed"] {
        assert!(
            reasons.iter().any(|found| found == reason),
            "{reason}: {reasons:?}"
        );
    }
}

/// Case T7: nodes are published where a flag asks for it.
#[tokio::test]
async fn nodes_are_published() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let _program = stage.start(PUBLISHING);
    let endpoint =
        json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": true }, "nodeName": "n1" });
    assert_eq!(json!(stage.nodes("m1").await.endpoints), json!([endpoint]));
}

#[tokio::test]
async fn a_restart_writes_nothing() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let program = stage.start(PUBLISHING);
    stage.nodes("m1").await;
    let before = stage.until("m1", is_complete).await;
    drop(program);
    stage.api.writes();
    let program = stage.start(PUBLISHING);
    until_metric(
        &program,
        r#"reconciles_total{controller="probe",result="success"} 1"#,
    )
    .await;
    // The finding of the probe has been compared, too.
    until_metric(&program, r#"queue_length{controller="cluster"} 0"#).await;
    assert_eq!(stage.api.writes(), [""; 0]);
    assert_eq!(
        stage.cluster("m1").await.metadata.resource_version,
        before.metadata.resource_version
    );
}

#[tokio::test]
async fn who_only_observes_writes_nothing() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let program = stage.start(&["--observe-only"]);
    for target in [
        "cluster_finalizer",
        "namespace",
        "conditions",
        "cluster_status",
        "taints",
    ] {
        let line = format!(r#"would_write_total{{target="{target}"}} "#);
        until_metric(&program, &line).await;
    }
    assert_eq!(stage.api.writes(), [""; 0]);
}

/// Clusters, each with the type, the reason and a part of the message of its condition.
const TROUBLES: [(&str, &str, &str, &str); 4] = [
    ("c-dead", "Ready", "ClusterNotReachable", "refused"),
    (
        "d-keyless",
        "Ready",
        "ClusterNotReachable",
        "karmada-cluster/d-keyless",
    ),
    (
        "e-empty",
        "Ready",
        "ClusterNotReachable",
        "karmada-cluster/e-empty has no `token`",
    ),
    (
        "b-garbage",
        "CompleteAPIEnablements",
        "Empty",
        "no aggregated discovery",
    ),
];

/// Trouble with a cluster is one clear condition and delays no other.
#[tokio::test]
async fn trouble_is_one_condition() {
    let (stage, member) = (Stage::new().await, member().await);
    // Accepts connections and never answers.
    let slow = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let garbage = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.join("a-slow", slow.local_addr().unwrap()).await;
    stage.join("b-garbage", garbage.local_addr().unwrap()).await;
    for name in ["c-dead", "d-keyless", "e-empty"] {
        stage.join(name, CLOSED).await;
    }
    stage.join("m1", member.address()).await;
    let answering = axum::serve(garbage, axum::Router::new().fallback(async || "garbage"));
    let _answering =
        tokio_util::task::AbortOnDropHandle::new(tokio::spawn(answering.into_future()));
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(stage.api.user(), "karmada-cluster");
    secrets
        .delete("d-keyless", &DeleteParams::default())
        .await
        .unwrap();
    let empty = Patch::Merge(json!({ "data": { "token": null, "kubeconfig": "bm9uZQ==" } }));
    secrets
        .patch("e-empty", &PatchParams::default(), &empty)
        .await
        .unwrap();

    let _program = stage.start(&[]);
    stage.until("m1", is_complete).await;
    assert!(conditions(&stage.cluster("a-slow").await, "Ready").is_none());
    for (name, kind, reason, text) in TROUBLES {
        let cluster = stage
            .until(name, |cluster| has(cluster, kind, "False"))
            .await;
        let condition = conditions(&cluster, kind).unwrap();
        assert_eq!(condition["reason"], reason, "{name}");
        let message = condition["message"].as_str().unwrap();
        assert!(message.contains(text), "{name}: {message}");
    }
    let dead = stage
        .until("c-dead", |cluster| {
            cluster.data["spec"]["taints"].is_array()
        })
        .await;
    assert_eq!(
        dead.data["spec"]["taints"],
        json!([{ "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule" }])
    );
}

/// A write that is refused hides nothing else.
#[tokio::test]
async fn refused_write_hides_nothing() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let refused = Fault::InternalError
        .kind("namespaces")
        .verbs([Verb::Create]);
    stage.api.server.faults().inject(refused.client(NAME));
    let _program = stage.start(&[]);
    stage.until("m1", is_complete).await;
    assert!(stage.namespace("karmada-es-m1").await.is_none());
}

/// Workloads leave a cluster that is not ready only if that is asked for.
#[tokio::test]
async fn eviction_must_be_asked_for() {
    let stage = Stage::new().await;
    stage.join("dead", CLOSED).await;
    let _program = stage.start(&["--taint-no-execute-after=100ms"]);
    let evicted = stage.until("dead", |cluster| {
        let mut taints = cluster.data["spec"]["taints"]
            .as_array()
            .into_iter()
            .flatten();
        taints.any(|taint| taint["effect"] == "NoExecute" && taint["timeAdded"].is_string())
    });
    evicted.await;
}

/// Writes a condition of another program's.
async fn report(stage: &Stage, name: &str, kind: &str, status: &str) {
    let mut conditions = stage.cluster(name).await.data["status"]["conditions"].clone();
    let list = conditions.as_array_mut().unwrap();
    list.retain(|condition| condition["type"] != kind);
    list.push(json!({ "type": kind, "status": status }));
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    let parameters = PatchParams::default();
    let clusters = stage.clusters();
    clusters
        .patch_status(name, &parameters, &patch)
        .await
        .unwrap();
}

fn has_dns_taint(cluster: &DynamicObject) -> bool {
    let taint = &cluster.data["spec"]["taints"][1];
    taint["timeAdded"].is_string()
        && taint["key"] == "cluster.karmada-rs.io/DnsReady"
        && taint["value"] == "False"
        && taint["effect"] == "NoExecute"
}

/// A cluster has a taint while a condition of another's has the status.
#[tokio::test]
async fn foreign_condition_taints() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let flag = "--taint-on-condition=DiskFull=True:NoSchedule,DnsReady=False:NoExecute";
    let program = stage.start(&[flag]);
    stage.until("m1", is_complete).await;
    let team = json!({ "key": "team", "effect": "NoSchedule" });
    let taints = json!({ "spec": { "taints": [team] } });
    stage.patch("m1", taints).await;

    report(&stage, "m1", "DnsReady", "False").await;
    stage.until("m1", has_dns_taint).await;
    drop(program);
    stage.api.writes();
    let program = stage.start(&[flag]);
    report(&stage, "m1", "DnsReady", "True").await;
    let freed = |cluster: &DynamicObject| cluster.data["spec"]["taints"] == json!([team]);
    stage.until("m1", freed).await;
    let path = "PATCH /apis/cluster.karmada.io/v1alpha1/clusters/m1";
    assert_eq!(stage.api.writes(), [path], "neither anew nor in parts");

    report(&stage, "m1", "DnsReady", "False").await;
    stage.until("m1", has_dns_taint).await;
    drop(program);
    let _without_the_flag = stage.start(&[]);
    stage.until("m1", freed).await;
}

/// The credential of one member is none: its Cluster says so, and the others are asked as ever.
#[tokio::test]
async fn bad_credential_fails_one_cluster() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("bad", member.address()).await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "bad", "namespace": "karmada-cluster" },
        "data": { "token": "dHdvIHdvcmRz" } });
    let path = "/api/v1/namespaces/karmada-cluster/secrets/bad";
    stage.api.send("PATCH", path, &secret).await;
    stage.join("m1", member.address()).await;
    let _program = stage.start(&[]);
    let bad = stage
        .until("bad", |cluster| has(cluster, "Ready", "False"))
        .await;
    let ready = conditions(&bad, "Ready").unwrap();
    assert_eq!(
        ready["message"],
        "cluster is not reachable: the `token` of the Secret karmada-cluster/bad is none: it may have no spaces, line breaks or characters beyond ASCII"
    );
    stage.until("m1", is_complete).await;
}

/// The API server escapes some characters where it compares encoded texts; a message may have them, whoever wrote it.
#[tokio::test]
async fn any_message_is_replaced() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let ready = json!({ "type": "Ready", "status": "Unknown", "reason": "ClusterNotReachable",
        "message": "the apiEndpoint \"https://<address> & port\" is no URL" });
    let (parameters, patch) = (
        PatchParams::default(),
        Patch::Merge(json!({ "status": { "conditions": [ready] } })),
    );
    let clusters = stage.clusters();
    let written = clusters.patch_status("m1", &parameters, &patch).await;
    written.unwrap();
    let _program = stage.start(&[]);
    stage.until("m1", is_complete).await;
}

/// A verdict that somebody overwrites is put right.
#[tokio::test]
async fn overwritten_verdict_is_restored() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    let _program = stage.start(&[]);
    stage.until("m1", is_complete).await;
    let wrong = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(wrong));
    stage
        .clusters()
        .patch_status("m1", &parameters, &patch)
        .await
        .unwrap();
    stage.until("m1", is_complete).await;
}

/// A pull cluster is left to its agent.
#[tokio::test]
async fn pull_cluster_is_left_alone() {
    let stage = Stage::new().await;
    stage.join("m1", CLOSED).await;
    stage
        .patch("m1", json!({ "spec": { "syncMode": "Pull" } }))
        .await;
    let program = stage.start(&[]);
    stage
        .until("m1", |cluster| cluster.data["spec"]["taints"].is_array())
        .await;
    until_metric(
        &program,
        r#"reconciles_total{controller="probe",result="success"} 1"#,
    )
    .await;
    assert!(stage.namespace("karmada-es-m1").await.is_some());
    assert_eq!(stage.cluster("m1").await.data.get("status"), None);
    assert!(
        !metrics(&program).contains("member_reachable{"),
        "it is not asked"
    );
}

/// A cluster goes after its namespace and its bindings.
#[tokio::test]
async fn cluster_goes_last() {
    let (stage, member) = (Stage::new().await, member().await);
    stage.join("m1", member.address()).await;
    stage.bind("m1").await;
    let _program = stage.start(&[]);
    stage.until("m1", is_complete).await;
    stage.delete("m1").await;
    let namespaces: Api<Namespace> = Api::all(stage.api.user());
    until(namespaces, "karmada-es-m1", |namespace| namespace.is_none()).await;
    assert!(stage.cluster("m1").await.metadata.finalizers.is_some());
    stage.unbind().await;
    stage.gone("m1").await;
}

/// A death after any write is made good.
/// A controller that dies after any of its writes leaves nothing that the next one does not finish.
#[tokio::test]
async fn crash_after_each_write() {
    let member = member().await;
    for after in 0.. {
        let stage = Stage::new().await;
        stage.join("m1", member.address()).await;
        stage.api.limit_writes(after);
        let program = stage.start(&[]);
        let completed = tokio::select! {
            biased;
            () = stage.api.hung() => false,
            _ = stage.until("m1", is_complete) => true,
        };
        drop(program);
        stage.api.limit_writes(usize::MAX);
        let program = stage.start(&[]);
        stage.until("m1", is_complete).await;
        assert!(stage.namespace("karmada-es-m1").await.is_some(), "{after}");
        drop(program);

        // The same of its end.
        stage.delete("m1").await;
        stage.api.limit_writes(after);
        let program = stage.start(&[]);
        tokio::select! {
            biased;
            () = stage.api.hung() => {}
            () = stage.gone("m1") => {}
        }
        drop(program);
        stage.api.limit_writes(usize::MAX);
        let _program = stage.start(&[]);
        stage.gone("m1").await;
        assert!(stage.namespace("karmada-es-m1").await.is_none(), "{after}");
        if completed {
            assert!(after >= 5, "{after} writes");
            return;
        }
    }
}

/// Whatever write fails or is lost the end is the same.
#[tokio::test]
async fn failed_writes_converge() {
    let (stage, member) = (Stage::new().await, member().await);
    let writes = [Verb::Create, Verb::Patch, Verb::Update, Verb::Delete];
    for fault in [Fault::LoseResponse, Fault::InternalError, Fault::Conflict] {
        let injection = fault.verbs(writes).client(NAME).every(3).times(3);
        stage.api.server.faults().inject(injection);
    }
    let names = ["m1", "m2", "m3"];
    for name in names {
        stage.join(name, member.address()).await;
    }
    let _program = stage.start(&[]);
    for name in names {
        stage.until(name, is_complete).await;
    }
    for name in names {
        stage.delete(name).await;
        stage.gone(name).await;
    }
    assert_eq!(stage.api.server.faults().hits().len(), 3);
}
