use std::net::{Ipv4Addr, SocketAddr};

use karmada_api::{ClusterView, ResourceBinding, names};
use karmada_runtime::controller;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::{WouldWrite, WriteMode, Writer};
use kube::runtime::watcher::Event as Seen;
use lab_parts::test_api::TestApi;
use propagation_rules::schedule::Scheduler;
use serde_json::{Value, from_value, json};

use super::*;
use crate::index::Heeded;
use crate::watch::{bindings, cluster_bindings, clusters};

mod burst;
mod estimates;
mod evict;
mod fail_back;
mod groups;
mod priority;
mod rival;
mod sets;
mod unscheduled;

const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings";
const CLUSTER_BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings";
const NOW: &str = "2026-11-22T08:00:00Z";

fn binding(name: &str, kind: &str, placement: &Value) -> Value {
    let namespace = (kind == "ResourceBinding").then_some("shop");
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": kind,
        "metadata": { "name": name, "namespace": namespace, "labels": { names::POLICY_ID: "1" } },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u" },
            "replicas": 2, "placement": placement,
        },
    })
}

fn cluster(name: &str, generation: i64) -> ClusterView {
    let kinds = json!([{ "groupVersion": "apps/v1", "resources": [{ "kind": "Deployment" }] }]);
    from_value(json!({
        "metadata": { "name": name, "generation": generation, "resourceVersion": generation.to_string() },
        "status": { "apiEnablements": kinds },
    }))
    .unwrap()
}

fn default_scheduler() -> Scheduler {
    Scheduler {
        name: "default-scheduler".to_owned(),
        ..Scheduler::default()
    }
}

fn divided() -> Value {
    json!({ "replicaScheduling": { "replicaSchedulingType": "Divided" } })
}

/// Returns an API with the kinds of a fleet and the namespace `shop`.
async fn api() -> TestApi {
    let api = TestApi::with_kinds(karmada_api::crd::fleet().unwrap());
    api.create_namespace("shop").await;
    api
}

/// A scheduler with its API; its watches show the objects that the test shows.
struct Stage {
    api: TestApi,
    reconciler: Reconciler,
    queue: Queue<Key>,
    writes: WriteMode,
    expectations: Expectations,
}

impl Stage {
    /// Creates a stage with the clusters `m1` and `m2`.
    async fn new() -> Self {
        Self::heeding(Heeded::default()).await
    }

    async fn heeding(heeded: Heeded) -> Self {
        let leading = Writer::new(Leadership::always(), WriteMetrics::default());
        let writes = WriteMode::Perform(leading);
        let stage = Self::of(default_scheduler(), heeded, api().await, writes);
        for name in ["m1", "m2"] {
            stage.show_cluster(cluster(name, 1));
        }
        stage
    }

    fn on(api: TestApi, writes: WriteMode) -> Self {
        Self::of(default_scheduler(), Heeded::default(), api, writes)
    }

    fn of(scheduler: Scheduler, heeded: Heeded, api: TestApi, writes: WriteMode) -> Self {
        let queue = Queue::default();
        let expectations = Expectations::default();
        expectations.add_queue(BINDING, &queue);
        let index = Index::new(scheduler, heeded, &expectations);
        let index = Arc::new(Mutex::new(index));
        let reconciler = Reconciler {
            index,
            queue: queue.clone(),
            estimators: None,
            committer: Committer::new(
                api.client(),
                crate::identity::NAME,
                writes.clone(),
                expectations.clone(),
                None,
            ),
            events: None,
            clock: || NOW.parse().unwrap(),
        };
        let stage = Self {
            api,
            reconciler,
            queue,
            writes,
            expectations,
        };
        stage.observe_cluster(Seen::InitDone);
        stage
    }

    fn show_cluster(&self, cluster: ClusterView) -> Vec<Key> {
        self.observe_cluster(Seen::Apply(Decoded::Valid(cluster)))
    }

    /// Shows an event of a cluster, and returns the bindings that it wakes.
    fn observe_cluster(&self, event: Seen<Decoded<ClusterView>>) -> Vec<Key> {
        self.queue.take_all();
        clusters(&self.reconciler.index, &self.queue).observe(event);
        self.queue.take_all()
    }

    /// Shows an event of a binding, and returns the bindings that it wakes.
    fn observe_binding(&self, event: Seen<Decoded<ResourceBinding>>) -> Vec<Key> {
        self.queue.take_all();
        bindings(&self.reconciler.index, &self.queue).observe(event);
        self.queue.take_all()
    }

    /// Shows a stored binding as the watch does.
    fn show(&self, stored: &Value) {
        if stored["kind"] == "ResourceBinding" {
            let binding = from_value(stored.clone()).unwrap();
            self.observe_binding(Seen::Apply(Decoded::Valid(binding)));
        } else {
            let binding = from_value(stored.clone()).unwrap();
            let event = Seen::Apply(Decoded::Valid(binding));
            cluster_bindings(&self.reconciler.index, &self.queue).observe(event);
        }
    }

    /// Starts the loop of the scheduler, which goes on while the program is kept.
    fn run(self) -> (TestApi, Program) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut program = Program::new(crate::identity::IDENTITY, address);
        let leadership = Leadership::always();
        controller::spawn(
            &mut program,
            "test",
            self.reconciler,
            self.queue,
            leadership,
        );
        (self.api, program)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        self.reconciler.reconcile(key).await
    }

    /// Shows the stored object and asserts that the binding needs nothing more.
    async fn assert_settled(&self, path: &str, key: &Key) -> Value {
        let stored = self.api.get(path).await;
        self.show(&stored);
        self.api.writes();
        self.reconcile(key).await.unwrap();
        assert_eq!(self.api.writes(), Vec::<String>::new());
        stored
    }
}

fn web() -> (Key, String) {
    (Key::new("shop", "web"), format!("{BINDINGS}/web"))
}

/// A binding of either kind is scheduled by two writes.
#[tokio::test]
async fn two_writes_schedule_binding() {
    let stage = Stage::new().await;
    let kinds = [
        (BINDINGS, "ResourceBinding", Key::new("shop", "web")),
        (
            CLUSTER_BINDINGS,
            "ClusterResourceBinding",
            Key::cluster_scoped("web"),
        ),
    ];
    for (collection, kind, key) in kinds {
        let stored = stage.api.create(&binding("web", kind, &divided())).await;
        stage.show(&stored);
        stage.reconcile(&key).await.unwrap();
        let path = format!("{collection}/web");
        let patches = [&path, &format!("{path}/status")].map(|path| format!("PATCH {path}"));
        assert_eq!(stage.api.writes(), patches);
        let after = stage.assert_settled(&path, &key).await;
        let clusters = json!([{ "name": "m1", "replicas": 1 }, { "name": "m2", "replicas": 1 }]);
        assert_eq!(after["spec"]["clusters"], clusters);
        let status = &after["status"];
        assert_eq!(
            status["schedulerObservedGeneration"],
            after["metadata"]["generation"]
        );
        assert_eq!(status["conditions"][0]["reason"], "Success");
        assert_eq!(status["lastScheduledTime"], NOW);
    }
}

/// Case P61: a scheduler that died between its two writes completes them at the next start.
#[tokio::test]
async fn crash_between_writes() {
    let groups = json!({ "clusterAffinities": [
        { "affinityName": "none", "clusterNames": ["x"] },
        { "affinityName": "second", "clusterNames": ["m2"] },
    ] });
    for placement in [divided(), groups] {
        let stage = Stage::new().await;
        let (key, path) = web();
        let new = binding("web", "ResourceBinding", &placement);
        stage.show(&stage.api.create(&new).await);
        let call = format!("PATCH {path}/status");
        stage.api.refuse(&call, 500, "InternalError", "gone");
        assert!(stage.reconcile(&key).await.is_err());
        let half = stage.api.get(&path).await;
        assert_eq!(half.get("status"), None);
        stage.api.writes();

        let stage = Stage::on(stage.api, stage.writes);
        for name in ["m1", "m2"] {
            stage.show_cluster(cluster(name, 1));
        }
        stage.show(&half);
        stage.reconcile(&key).await.unwrap();
        assert_eq!(stage.api.writes(), [format!("PATCH {path}/status")]);
        let after = stage.assert_settled(&path, &key).await;
        assert_eq!(after["spec"], half["spec"]);
        let annotations = &half["metadata"]["annotations"];
        assert_eq!(
            after["status"].get("schedulerObservingAffinityName"),
            annotations.get(names::SCHEDULED_AFFINITY)
        );
        assert_eq!(
            after["status"]["schedulerObservedGeneration"],
            half["metadata"]["generation"]
        );
    }
}

/// A decision on an old version is not stored.
#[tokio::test]
async fn stale_decision_is_not_stored() {
    let stage = Stage::new().await;
    let (key, path) = web();
    let new = binding("web", "ResourceBinding", &divided());
    stage.show(&stage.api.create(&new).await);
    let edit =
        json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["m2"] } } } });
    let edited = stage.api.send("PATCH", &path, &edit).await;
    assert!(stage.reconcile(&key).await.is_err());
    assert_eq!(stage.api.get(&path).await, edited);
    stage.show(&edited);
    stage.reconcile(&key).await.unwrap();
    let after = stage.assert_settled(&path, &key).await;
    assert_eq!(
        after["spec"]["clusters"],
        json!([{ "name": "m2", "replicas": 2 }])
    );
}

/// A status that others wrote meanwhile is not written over.
#[tokio::test]
async fn others_status_is_kept() {
    let stage = Stage::new().await;
    let (key, path) = web();
    let new = binding("web", "ResourceBinding", &divided());
    stage.show(&stage.api.create(&new).await);
    stage.reconcile(&key).await.unwrap();
    let other = json!([{ "type": "FullyApplied", "status": "True", "reason": "R", "extra": 1 }]);
    let status =
        json!({ "status": { "conditions": other, "aggregatedStatus": [{ "clusterName": "m1" }] } });
    let stored = stage
        .api
        .send("PATCH", &format!("{path}/status"), &status)
        .await;
    stage.show(&stored);
    stage.reconcile(&key).await.unwrap();
    let after = stage.assert_settled(&path, &key).await;
    assert_eq!(after["status"]["conditions"][0], other[0]);
    assert_eq!(after["status"]["conditions"][1]["type"], "Scheduled");
    assert_eq!(
        after["status"]["aggregatedStatus"],
        status["status"]["aggregatedStatus"]
    );
}

/// A start on two thousand scheduled bindings writes nothing.
#[tokio::test]
async fn settled_start_writes_nothing() {
    let stage = Stage::new().await;
    let mut stored = Vec::new();
    for number in 0..2_000 {
        let placement = if number % 2 == 0 {
            divided()
        } else {
            json!({})
        };
        let new = binding(&format!("b{number}"), "ResourceBinding", &placement);
        let created = stage.api.create(&new).await;
        stage.show(&created);
        let key = Key::new("shop", format!("b{number}"));
        stage.reconcile(&key).await.unwrap();
        stored.push(stage.api.get(&format!("{BINDINGS}/b{number}")).await);
    }
    assert_eq!(stage.api.writes().len(), 4_000);
    let started = Stage::on(stage.api, stage.writes);
    for binding in &stored {
        started.show(binding);
    }
    for name in ["m1", "m2"] {
        started.show_cluster(cluster(name, 1));
    }
    let keys = started.reconciler.keys();
    assert_eq!(keys.len(), 2_000);
    for key in keys {
        started.reconcile(&key).await.unwrap();
    }
    assert_eq!(started.api.writes(), Vec::<String>::new());
}

/// A cluster wakes the bindings that have it or may get it.
#[tokio::test]
async fn cluster_wakes_concerned_bindings() {
    let stage = Stage::new().await;
    for name in ["m1", "m2"] {
        let only = json!({ "clusterAffinity": { "clusterNames": [name] } });
        let new = binding(name, "ResourceBinding", &only);
        stage.show(&stage.api.create(&new).await);
        let key = Key::new("shop", name);
        stage.reconcile(&key).await.unwrap();
        stage.show(&stage.api.get(&format!("{BINDINGS}/{name}")).await);
    }
    let mut heartbeat = cluster("m1", 1);
    heartbeat.metadata.resource_version = Some("7".to_owned());
    heartbeat.metadata.annotations = Some([("beat".to_owned(), "7".to_owned())].into());
    heartbeat.status.kubernetes_version = "v1.36.3".to_owned();
    assert_eq!(stage.show_cluster(heartbeat), []);
    let edited = stage.show_cluster(cluster("m1", 2));
    assert_eq!(edited, [Key::new("shop", "m1")]);
    // The pass that the change caused is noted once.
    stage.api.writes();
    let path = format!("{BINDINGS}/m1");
    stage.reconcile(&Key::new("shop", "m1")).await.unwrap();
    assert_eq!(stage.api.writes(), [format!("PATCH {path}/status")]);
    stage.assert_settled(&path, &Key::new("shop", "m1")).await;
    let unread = cluster("m3", 1);
    let invalid = Decoded::Invalid {
        metadata: Box::new(unread.metadata.clone()),
        error: "odd".to_owned(),
    };
    assert_eq!(stage.observe_cluster(Seen::Apply(invalid)), []);
    assert_eq!(stage.show_cluster(unread).len(), 2);
}

/// Room wakes only the bindings that lack it.
#[tokio::test]
async fn room_wakes_waiting_bindings() {
    let stage = Stage::new().await;
    let mut aggregated = divided();
    aggregated["replicaScheduling"]["replicaDivisionPreference"] = json!("Aggregated");
    for (name, placement) in [("web", aggregated), ("fixed", divided())] {
        let mut new = binding(name, "ResourceBinding", &placement);
        new["spec"]["replicaRequirements"] = json!({ "resourceRequest": { "cpu": "1" } });
        stage.show(&stage.api.create(&new).await);
        stage.reconcile(&Key::new("shop", name)).await.unwrap();
        stage.show(&stage.api.get(&format!("{BINDINGS}/{name}")).await);
    }
    let (key, path) = web();
    let short = stage.assert_settled(&path, &key).await;
    assert_eq!(short["status"]["conditions"][0]["reason"], "Unschedulable");

    let mut roomy = cluster("m2", 1);
    roomy.metadata.resource_version = Some("2".to_owned());
    let room = json!({ "allocatable": { "cpu": "2", "pods": "9" } });
    roomy.status.resource_summary = from_value(room).unwrap();
    assert_eq!(stage.show_cluster(roomy), std::slice::from_ref(&key));
    stage.reconcile(&key).await.unwrap();
    let scheduled = stage.assert_settled(&path, &key).await;
    assert_eq!(
        scheduled["spec"]["clusters"],
        json!([{ "name": "m2", "replicas": 2 }])
    );
}

/// Case I96: a refusal by a quota is shown and tried again.
#[tokio::test]
async fn quota_refusal_is_retried() {
    let stage = Stage::new().await;
    let (key, path) = web();
    let new = binding("web", "ResourceBinding", &divided());
    stage.show(&stage.api.create(&new).await);
    // The webhook of Karmada's quotas, and the admission of a Kubernetes `ResourceQuota`.
    let refusals = [
        (
            "QuotaExceeded",
            "admission webhook \"resourcebinding.karmada.io\" denied the request: FederatedResourceQuota(shop/q) exceeded for resource cpu: requested sum 2, limit 1",
        ),
        ("Forbidden", "exceeded quota: q"),
    ];
    for (reason, message) in refusals {
        stage
            .api
            .refuse(&format!("PATCH {path}"), 403, reason, message);
        assert!(stage.reconcile(&key).await.is_err());
        assert_eq!(stage.api.writes().len(), 2);
        let stored = stage.api.get(&path).await;
        let condition = &stored["status"]["conditions"][0];
        assert_eq!(condition["reason"], "QuotaExceeded");
        assert_eq!(condition["message"], message);
        assert_eq!(stored["spec"].get("clusters"), None);
        stage.show(&stored);
        // The same refusal again is no news.
        stage
            .api
            .refuse(&format!("PATCH {path}"), 403, reason, message);
        assert!(stage.reconcile(&key).await.is_err());
        assert_eq!(stage.api.writes().len(), 1);
    }
    stage.reconcile(&key).await.unwrap();
    let after = stage.assert_settled(&path, &key).await;
    assert_eq!(after["status"]["conditions"][0]["reason"], "Success");
}

/// While only observing writes are counted and none is sent.
#[tokio::test]
async fn observer_counts_writes() {
    let counters = WouldWrite::default();
    let stage = Stage::on(api().await, WriteMode::DryRun(counters.clone()));
    stage.show_cluster(cluster("m1", 1));
    let (key, _) = web();
    let new = binding("web", "ResourceBinding", &divided());
    stage.show(&stage.api.create(&new).await);
    stage.reconcile(&key).await.unwrap();
    assert_eq!(stage.api.writes(), Vec::<String>::new());
    assert_eq!((counters.of("clusters"), counters.of("status")), (1, 1));
}

/// A binding that is gone is nothing to write.
#[tokio::test]
async fn gone_binding_writes_nothing() {
    let stage = Stage::new().await;
    let (key, _) = web();
    let mut new = binding("web", "ResourceBinding", &divided());
    new["metadata"]["namespace"] = json!("shop");
    new["metadata"]["resourceVersion"] = json!("1");
    stage.show(&new);
    stage.reconcile(&key).await.unwrap();
    assert_eq!(stage.api.writes().len(), 1);
}
