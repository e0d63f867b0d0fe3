//! The program, its hub, and the agents of a fleet as far as the hub sees them.

use std::ops::Deref;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::ApiServer;
use fleet_api::definitions;
use fleet_api::names::{WORK_FINALIZER, member_namespace};
use jiff::{SignedDuration, Timestamp};
use karmada_runtime::program::Program;
use lab_parts::test_api::TestApi;
use objects::Metadata;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::{Args, IDENTITY, NAME, assemble};

pub(super) const CLUSTERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
pub(super) const PLACEMENTS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements";
pub(super) const POLICIES: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterschedulingpolicysnapshots";
pub(super) const SNAPSHOTS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourcesnapshots";
pub(super) const BINDINGS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourcebindings";
pub(super) const CLUSTER_OVERRIDES: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceoverrides";
pub(super) const OVERRIDES: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/application-1/resourceoverrides";
pub(super) const OVERRIDE_SNAPSHOTS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/application-1/resourceoverridesnapshots";
pub(super) const ALL_WORKS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/works";

/// The path of the placed object.
pub(super) const MAP: &str = "/api/v1/namespaces/application-1/configmaps/app-config-1";

/// Returns an object as a running KubeFleet served it.
macro_rules! recorded {
    ($name:literal) => {{
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../placement/rules/src/fixtures/",
            $name,
            ".json"
        ));
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    }};
}
pub(super) use recorded;

thread_local! {
    /// The time of the calendar at which the test began, and of its virtual clock.
    static BEGIN: (Timestamp, Instant) = (Timestamp::now(), Instant::now());
}

/// Returns the virtual time.
pub(super) fn clock() -> Timestamp {
    BEGIN.with(|(calendar, instant)| {
        *calendar + SignedDuration::try_from(instant.elapsed()).unwrap()
    })
}

/// The program and its hub.
pub(super) struct Stage {
    api: TestApi,
    running: Option<JoinHandle<bool>>,
}

impl Deref for Stage {
    type Target = TestApi;

    fn deref(&self) -> &TestApi {
        &self.api
    }
}

impl Stage {
    /// Starts a hub, without the program.
    pub(super) fn new() -> Self {
        /// A hub with the kinds of a fleet, which take long to install.
        static PREPARED: LazyLock<ApiServer> =
            LazyLock::new(|| TestApi::with_kinds(definitions()).server);
        Self::on(PREPARED.fork_at(clock()))
    }

    /// Starts a hub with these kinds, without the program.
    pub(super) fn serving(definitions: Vec<Value>) -> Self {
        let stage = Self::on(ApiServer::starting_at(clock()));
        stage.install(definitions);
        stage
    }

    fn on(server: ApiServer) -> Self {
        Self {
            api: TestApi::of(server),
            running: None,
        }
    }

    /// Starts a hub and the program, with clusters that have joined.
    pub(super) async fn with_clusters(clusters: &[&str]) -> Self {
        let mut stage = Self::new();
        stage.start(&[]).await;
        for cluster in clusters {
            stage.join(cluster, &json!({})).await;
        }
        stage.writes();
        stage
    }

    /// Starts the program and waits until it has nothing to do.
    pub(super) async fn start(&mut self, flags: &[&str]) {
        self.running = Some(self.spawn(flags));
        self.settle().await;
    }

    /// Starts the program.
    pub(super) fn spawn(&self, flags: &[&str]) -> JoinHandle<bool> {
        let flags = [&[NAME, "--leader-elect=false"], flags].concat();
        let args = Args::try_parse_from(flags).unwrap();
        let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
        program.clock = clock;
        assemble(&args, self.client(), &mut program);
        tokio::spawn(program.run_until(async || std::future::pending().await))
    }

    pub(super) async fn kill(&mut self) {
        let running = self.running.take().unwrap();
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    }

    /// Lets the agents act on the writes that the program may still make, has it die, and lets the next one do the rest. Returns
    /// `true` if the first one has written everything.
    pub(super) async fn outlive(&mut self) -> bool {
        self.agents().await;
        let is_whole = !self.is_limit_reached();
        self.kill().await;
        self.limit_writes(usize::MAX);
        self.start(&[]).await;
        self.agents().await;
        is_whole
    }

    pub(super) async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(8)).await;
    }

    /// Sends a change of a user and returns the writes of the program then.
    pub(super) async fn change(&self, method: &str, path: &str, body: &Value) -> Vec<String> {
        self.writes();
        self.send(method, path, body).await;
        self.settle().await;
        self.written()
    }

    /// Returns the writes of the program since the last call, sorted.
    pub(super) fn written(&self) -> Vec<String> {
        let mut writes = self.writes();
        writes.sort();
        writes
    }

    pub(super) async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await;
        list["items"].as_array().cloned().unwrap()
    }

    /// Registers a cluster, whose agent joins.
    pub(super) async fn join(&self, name: &str, labels: &Value) {
        self.send("POST", CLUSTERS, &cluster(name, labels)).await;
        self.settle().await;
        self.beat(name, "True").await;
        self.settle().await;
    }

    /// Has the agent of a cluster say whether it has joined, and that it is alive.
    pub(super) async fn beat(&self, name: &str, joined: &str) {
        let healthy = ("True", "InternalMemberClusterHealthy", clock());
        self.say(name, joined, healthy).await;
    }

    /// Has the agent of a cluster say whether it has joined, and since when it is healthy, or not.
    pub(super) async fn say(&self, name: &str, joined: &str, healthy: (&str, &str, Timestamp)) {
        let reason = match joined {
            "True" => "InternalMemberClusterJoined",
            _ => "InternalMemberClusterLeft",
        };
        let status = json!({ "agentStatus": [{
            "type": "MemberAgent",
            "lastReceivedHeartbeat": clock(),
            "conditions": [
                condition("Healthy", healthy),
                condition("Joined", (joined, reason, clock())),
            ],
        }] });
        let path = format!("{}/status", channel(name));
        self.send("PATCH", &path, &json!({ "status": status }))
            .await;
    }

    /// Lets the agents apply their Works, until nothing happens any more.
    pub(super) async fn agents(&self) {
        for _ in 0..20 {
            let mut is_busy = false;
            for work in self.list(ALL_WORKS).await {
                is_busy |= self.answer(&work).await;
            }
            self.settle().await;
            if !is_busy {
                return;
            }
        }
        panic!("the agents have always something to do");
    }

    /// Applies a Work. Returns `true` if there was anything to do.
    pub(super) async fn answer(&self, work: &Value) -> bool {
        let path = work_path(work.namespace(), work.name());
        if work.is_deleting() {
            let none = json!({ "metadata": { "finalizers": null } });
            self.send("PATCH", &path, &none).await;
            return true;
        }
        let says = work.pointer("/status/conditions/0/observedGeneration");
        if says == Some(&work["metadata"]["generation"]) {
            return false;
        }
        let held = json!({ "metadata": { "finalizers": [WORK_FINALIZER] } });
        self.send("PATCH", &path, &held).await;
        let said = [
            ("Applied", "True", "AllManifestsApplied"),
            ("Available", "True", "AllManifestsAvailable"),
        ];
        self.report(work, said).await;
        true
    }

    /// Says as an agent does that a Work is applied, and not available.
    pub(super) async fn report_unavailable(&self, work: &Value) {
        let said = [
            ("Applied", "True", "Applied"),
            ("Available", "False", "Available"),
        ];
        self.report(work, said).await;
    }

    /// Writes the types, statuses and reasons of conditions to a Work.
    async fn report(&self, work: &Value, said: [(&str, &str, &str); 2]) {
        let generation = &work["metadata"]["generation"];
        let conditions = said.map(|(kind, status, reason)| {
            json!({ "type": kind, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": clock(), "observedGeneration": generation })
        });
        let status = json!({ "status": { "conditions": conditions } });
        let path = work_path(work.namespace(), work.name());
        self.send("PATCH", &format!("{path}/status"), &status).await;
    }
}

pub(super) fn cluster(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "identity": { "kind": "ServiceAccount", "name": "agent", "namespace": "fleet-system" },
            "heartbeatPeriodSeconds": 15,
        },
    })
}

/// Returns the path of the channel of a cluster.
pub(super) fn channel(name: &str) -> String {
    let namespace = member_namespace(name);
    format!(
        "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/{namespace}/internalmemberclusters/{name}"
    )
}

pub(super) fn work_path(namespace: &str, name: &str) -> String {
    format!("/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/{namespace}/works/{name}")
}

/// Returns a placement of one namespace with all that is in it.
pub(super) fn placement(name: &str, namespace: &str, policy: &Value) -> Value {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourcePlacement",
        "metadata": { "name": name },
        "spec": {
            "resourceSelectors": [{ "group": "", "version": "v1", "kind": "Namespace", "name": namespace }],
            "policy": policy,
            "strategy": { "type": "RollingUpdate" },
        },
    })
}

/// Returns an object without the fields that only its server knows, and without times.
pub(super) fn timeless(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "uid",
        ] {
            metadata.remove(field);
        }
    }
    strip(&mut object);
    object
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("lastTransitionTime");
            fields.remove("lastReceivedHeartbeat");
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn condition(kind: &str, (status, reason, since): (&str, &str, Timestamp)) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": since, "observedGeneration": 1 })
}

/// Returns the status and reason of each condition.
pub(super) fn conditions(status: &Value) -> Vec<String> {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let conditions = conditions.iter().map(|one| {
        let [kind, status, reason] =
            ["type", "status", "reason"].map(|field| one[field].as_str().unwrap());
        let kind = kind.replace("ClusterResourcePlacement", "");
        format!("{kind} {status} {reason}")
    });
    conditions.collect()
}

/// Returns the placed object.
pub(super) fn map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "app-config-1", "namespace": "application-1" },
        "data": { "key": "value" } })
}

/// Places the namespace with it, as the recorded `crp-all` does.
pub(super) async fn place(stage: &Stage, policy: &Value) {
    stage.create_namespace("application-1").await;
    stage.create(&map()).await;
    let mut new = placement("crp-all", "application-1", policy);
    new["spec"]["strategy"]["rollingUpdate"] = json!({ "unavailablePeriodSeconds": 1 });
    stage.send("POST", PLACEMENTS, &new).await;
    stage.settle().await;
}

/// Starts a hub and the program, with the clusters in which overrides were recorded.
pub(super) async fn recorded_fleet() -> Stage {
    let stage = Stage::with_clusters(&[]).await;
    let labels = [["east", "prod"], ["east", "canary"], ["west", "prod"]];
    for (number, [region, env]) in (1..).zip(labels) {
        let labels = json!({ "region": region, "env": env });
        stage.join(&format!("kind-cluster-{number}"), &labels).await;
    }
    stage
}

/// Creates the objects that the recorded `crp-over` selects.
pub(super) async fn fill_overridden(stage: &Stage) -> Vec<Value> {
    stage.create_namespace("app-6").await;
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "app-6-reader" },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }] });
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "c", "namespace": "app-6" }, "data": { "k": "hub" } });
    for object in [&map, &role] {
        stage.create(object).await;
    }
    let namespace =
        recorded!("crp-over-works")["items"][0]["spec"]["workload"]["manifests"][0].clone();
    vec![namespace, map, role]
}

/// Returns the state and the cluster of each binding.
pub(super) async fn bindings(stage: &Stage) -> Vec<String> {
    let bindings = stage.list(BINDINGS).await.into_iter();
    let mut states: Vec<_> = bindings
        .map(|binding| {
            let [target, current] =
                ["targetCluster", "state"].map(|field| binding["spec"][field].as_str().unwrap());
            let gone = if binding.is_deleting() { " gone" } else { "" };
            format!("{target} {current}{gone}")
        })
        .collect();
    states.sort();
    states
}

/// Returns the value that each cluster is to have.
pub(super) async fn values(stage: &Stage) -> Vec<String> {
    let works = stage.list(ALL_WORKS).await.into_iter();
    let values = works.map(|work| {
        let value = &work["spec"]["workload"]["manifests"][1]["data"]["key"];
        value.as_str().unwrap_or_default().to_owned()
    });
    values.collect()
}
