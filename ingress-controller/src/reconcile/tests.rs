mod enforcement;
mod routes;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_trait::async_trait;
use embedded_apiserver::Fault;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::events::EventType;
use lab_parts::test_api::TestApi;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use traffic::ClusterKind;
use traffic::ingress::{Desired, ServedClusters};

use super::*;
use crate::fixtures::{
    CONTROLLER, GATEWAY_CONTROLLER, applied, binding, class, cluster, committer, deleted, ingress,
    invalid, karmada, key, object, slice, template,
};
use crate::gateway::GatewayReconciler;
use crate::grace::GRACE;
use crate::index::Backends;
use crate::metrics::Readmissions;
use crate::outage::Outage;
use crate::provider::{Ensured, LoadBalancer, Obstacle, RelatedObject};
use crate::reason::Reason;
use crate::reports::Reports;
use crate::watch::Queues;

const INGRESS: &str = "/apis/networking.karmada.io/v1alpha1/namespaces/ns/multiclusteringresses/i";

/// A load balancer that logs its calls and returns scripted results.
#[derive(Default)]
struct FakeBalancer {
    calls: Mutex<Vec<String>>,
    results: Mutex<Vec<Result<Ensured, BoxError>>>,
    holds: Mutex<Vec<Key>>,
    /// The endpoints it holds for the ingress.
    endpoints: Mutex<ServedClusters>,
    /// Set if another program serves the traffic.
    serves_nothing: AtomicBool,
    /// Set while it answers nothing.
    is_down: AtomicBool,
    /// The number of probes.
    probes: watch::Sender<u32>,
}

/// The error of a balancer that is down.
const OUTAGE: &str = "it does not answer";

impl FakeBalancer {
    fn result(&self, call: String) -> Result<Ensured, BoxError> {
        self.calls.lock().push(call);
        let result = self.results.lock().pop();
        result.unwrap_or_else(|| Ok(Ensured::default()))
    }
}

#[async_trait]
impl LoadBalancer for FakeBalancer {
    fn serves(&self) -> bool {
        !self.serves_nothing.load(Relaxed)
    }

    fn watch(self: Arc<Self>, _: &mut Program, _: &Queue<Key>) {}

    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError> {
        if self.is_down.load(Relaxed) {
            // A request without a response.
            std::future::pending::<()>().await;
        }
        self.result(format!("ensure {}", desired.key))
    }

    async fn delete(&self, key: &Key, _: &BTreeSet<String>) -> Result<Ensured, BoxError> {
        self.result(format!("delete {key}"))
    }

    async fn cut(&self, key: &Key, cut: &ServedClusters) -> Result<(), BoxError> {
        self.calls.lock().push(format!("cut {cut:?} of {key}"));
        Ok(())
    }

    fn keys(&self) -> Vec<Key> {
        self.holds.lock().clone()
    }

    fn holds(&self, key: &Key) -> bool {
        self.holds.lock().contains(key)
    }

    fn endpoints(&self, _: &Key) -> ServedClusters {
        self.endpoints.lock().clone()
    }

    fn is_outage(&self, error: &BoxError) -> bool {
        error.to_string() == OUTAGE
    }

    async fn probe(&self) -> Result<(), BoxError> {
        self.probes.send_modify(|probes| *probes += 1);
        if self.is_down.load(Relaxed) {
            Err(OUTAGE.into())
        } else {
            Ok(())
        }
    }
}

/// A reconciler with its Karmada API, its load balancer and its Events.
struct Stage {
    api: TestApi,
    balancer: Arc<FakeBalancer>,
    events: Arc<Mutex<Vec<String>>>,
    reconciler: Reconciler,
    gateway: GatewayReconciler,
}

/// Returns a recorder of Events about the ingress, warnings with a sign before the reason.
fn recorder(events: &Arc<Mutex<Vec<String>>>) -> Arc<IngressEvents> {
    let events = Arc::clone(events);
    Arc::new(IngressEvents::new(
        ClusterKind::Cluster,
        move |regarding, event| {
            assert_eq!(regarding.name.as_deref(), Some("i"));
            assert_eq!(regarding.namespace.as_deref(), Some("ns"));
            let warning = matches!(event.type_, EventType::Warning);
            let sign = if warning { "!" } else { "" };
            let note = event.note.unwrap_or_default();
            events
                .lock()
                .push(format!("{sign}{}: {note}", event.reason));
        },
    ))
}

impl Stage {
    /// Returns a stage without ingresses. Service s runs in m1, which is blocked, and in m2.
    async fn new() -> Self {
        let api = karmada().await;
        let index = SharedIndex::new(Queues::new(1), Some(Backends::default()));
        index.observe_class(applied(class("ours", CONTROLLER)));
        index.observe_class(applied(class("other", "example.com/other")));
        index.observe_cluster(applied(cluster("m1", &["TrafficControl"])));
        index.observe_cluster(applied(cluster("m2", &[])));
        index.observe_binding(applied(binding("s", &["m1", "m2"])));
        index.observe_slice(applied(slice("s", "m2", "10.0.0.2")));
        index.observe_template(applied(template("s", 80)));
        let (balancer, events) = (Arc::new(FakeBalancer::default()), Arc::default());
        let recorder = recorder(&events);
        let index = Arc::new(index);
        let settings = Settings::new(CONTROLLER.parse().unwrap());
        let ingresses = Ingresses {
            client: api.client(),
            committer: committer(&api, &recorder),
            gateway_controller: GATEWAY_CONTROLLER.parse().unwrap(),
        };
        let queues = Queues::new(1);
        let queue = queues.gateways[0].clone();
        let reconciler = Reconciler {
            index: Arc::clone(&index),
            settings: settings.clone(),
            ingresses: ingresses.clone(),
            events: Arc::clone(&recorder),
            queue: queues.status,
        };
        let gateway = GatewayReconciler {
            index,
            settings,
            balancer: Arc::<FakeBalancer>::clone(&balancer),
            name: "",
            place: 0,
            reports: Arc::new(Reports::new(1)),
            ingresses,
            events: recorder,
            grace: Arc::default(),
            outage: Arc::new(Outage::new("", queue.clone())),
            readmissions: Readmissions::default(),
            queue,
        };
        Self {
            api,
            balancer,
            events,
            reconciler,
            gateway,
        }
    }

    /// Returns a stage with `ingress`, stored in the API and shown by the watch, and its version.
    async fn with(ingress: MultiClusterIngress) -> (Self, String) {
        let stage = Self::new().await;
        let mut new = ingress;
        new.metadata.resource_version = None;
        let stored = stage.api.create(&new).await;
        let version = stored.metadata.resource_version.clone().unwrap();
        stage.observe(|index| index.observe_ingress(applied(stored)));
        (stage, version)
    }

    fn observe<T>(&self, observe: impl FnOnce(&SharedIndex) -> T) {
        observe(&self.reconciler.index);
    }

    fn balancer_returns(&self, result: Result<Ensured, BoxError>) {
        self.balancer.results.lock().push(result);
    }

    /// Reconciles the status and then the load balancer, and returns the first error.
    async fn reconcile(&self) -> Result<(), BoxError> {
        let status = self.reconciler.reconcile(&key("i")).await;
        let gateway = self.gateway.reconcile(&key("i")).await;
        status.and(gateway)
    }

    /// Shows the ingress as it is stored to the index.
    async fn show(&self) {
        let api: Api<MultiClusterIngress> = Api::namespaced(self.api.user(), "ns");
        let stored = api.get("i").await.unwrap();
        self.observe(|index| index.observe_ingress(applied(stored)));
    }

    fn balancer_calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.balancer.calls.lock())
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock())
    }
}

/// Returns the ingress once everything is written.
fn converged() -> MultiClusterIngress {
    let mut ingress = ingress("i", &["s"]);
    ingress.metadata.finalizers = Some(vec![CONTROLLER.to_owned()]);
    ingress.status = Some(object(json!({
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": ["m1"],
        "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] },
    })));
    ingress
}

/// Returns the converged ingress from before m1 was blocked.
fn not_yet_blocked() -> MultiClusterIngress {
    let mut ingress = converged();
    ingress.status.as_mut().unwrap().traffic_block_clusters = None;
    ingress
}

/// Returns the converged ingress after it was given to another controller.
fn moved_away() -> MultiClusterIngress {
    let mut ingress = converged();
    ingress.spec.ingress.ingress_class_name = Some("other".to_owned());
    ingress
}

/// Returns the patch that is sent with these finalizers.
fn of_finalizers(version: &str, finalizers: &[&str]) -> Value {
    json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } })
}

/// Returns the patch that is sent with this status.
fn of_status(version: &str, status: &Value) -> Value {
    json!({ "metadata": { "resourceVersion": version }, "status": status })
}

/// Returns the version that a request is for, which is the one that an earlier request for `version` has made.
fn answered((_, body): &(String, Value), version: &str) -> String {
    let answered = body["metadata"]["resourceVersion"].as_str().unwrap();
    assert_ne!(answered, version);
    answered.to_owned()
}

/// A new ingress gets our finalizer before anything reaches the load balancer.
#[tokio::test]
async fn finalizer_precedes_load_balancer() {
    let (stage, version) = Stage::with(ingress("i", &["s"])).await;
    stage.api.server.faults().inject(Fault::Conflict.times(1));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}")]);
    assert_eq!(stage.balancer_calls(), [""; 0]);

    stage.reconcile().await.unwrap();
    let status = json!({
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": ["m1"],
    });
    let requests = stage.api.requests();
    let finalized = answered(&requests[1], &version);
    let expected = [
        (
            format!("PATCH {INGRESS}"),
            of_finalizers(&version, &[CONTROLLER]),
        ),
        (
            format!("PATCH {INGRESS}/status"),
            of_status(&finalized, &status),
        ),
    ];
    assert_eq!(requests, expected);
    assert_eq!(stage.balancer_calls(), [""; 0]);
    stage.show().await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), ["ensure ns/i"]);
    let expected = ["!TrafficBlocked: A Remedy takes the traffic of cluster m1 away"];
    assert_eq!(stage.events(), expected);
}

/// A policy refuses every status of an ingress: that is told, and the fate of the traffic all the same, each once.
#[tokio::test]
async fn refused_status_is_told() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    let refusal = Fault::Forbidden.subresource("status");
    let refusal = stage.api.server.faults().inject(refusal);
    stage.reconcile().await.unwrap_err();
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.balancer_calls(), ["ensure ns/i"; 2]);
    let events = stage.events();
    let refused = "!WriteRefused: the API refuses every write to status.serviceLocations and status.trafficBlockClusters: ";
    let blocked = "!TrafficBlocked: A Remedy takes the traffic of cluster m1 away";
    assert!(events[0].starts_with(refused), "{events:?}");
    assert_eq!(events[1..], [blocked]);

    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
    stage.reconcile().await.unwrap();
    let unblocked = "TrafficUnblocked: Cluster m1 is no longer blocked";
    assert_eq!(stage.events(), [unblocked]);
    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &["TrafficControl"]))));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.events(), [blocked]);

    stage.api.server.faults().remove(refusal);
    stage.reconcile().await.unwrap();
    assert_eq!(stage.events(), [""; 0]);
}

/// A converged ingress gets no write and no event.
#[tokio::test]
async fn converged_ingress_is_silent() {
    let (stage, _) = Stage::with(converged()).await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    assert_eq!(stage.events(), [""; 0]);
    assert_eq!(stage.balancer_calls(), ["ensure ns/i"]);
}

/// An unblocked cluster is null in the status and recorded once.
#[tokio::test]
async fn unblocked_cluster_is_recorded_once() {
    let (stage, version) = Stage::with(converged()).await;
    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
    stage.reconcile().await.unwrap();
    let status = json!({
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": null,
    });
    let sent = of_status(&version, &status);
    assert_eq!(
        stage.api.requests(),
        [(format!("PATCH {INGRESS}/status"), sent)]
    );
    let expected = ["TrafficUnblocked: Cluster m1 is no longer blocked"];
    assert_eq!(stage.events(), expected);
}

/// The load balancer is updated even when the status cannot be written.
#[tokio::test]
async fn status_trouble_spares_load_balancer() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    stage
        .api
        .server
        .faults()
        .inject(Fault::Unavailable.times(1));
    let error = stage.reconcile().await.unwrap_err();
    assert!(error.downcast_ref::<WriteError>().is_some(), "{error}");
    assert_eq!(stage.balancer_calls(), ["ensure ns/i"]);
    assert_eq!(stage.events(), [""; 0]);
    assert_eq!(stage.api.calls().len(), 1);
}

/// The status is written even when the load balancer fails.
#[tokio::test]
async fn load_balancer_trouble_spares_status() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}/status")]);
    assert_eq!(stage.events().len(), 1);
}

fn shown_as(status: &Value) -> Ensured {
    Ensured {
        load_balancer: Some(object(status.clone())),
        obstacles: BTreeSet::new(),
    }
}

/// The load balancer's addresses are written when they change, and are not as long as they are shown.
#[tokio::test]
async fn changed_addresses_are_written() {
    let (stage, version) = Stage::with(converged()).await;
    stage.balancer_returns(Ok(shown_as(&json!({ "ingress": [{ "ip": "192.0.2.1" }] }))));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    let status = json!({ "ingress": [{ "hostname": "lb.example.com" }] });
    stage.balancer_returns(Ok(shown_as(&status)));
    stage.reconcile().await.unwrap();
    let body = of_status(&version, &json!({ "loadBalancer": status }));
    assert_eq!(
        stage.api.requests(),
        [(format!("PATCH {INGRESS}/status"), body)]
    );
}

/// A leader whose watch is behind writes no status to an ingress that an earlier one has released: nobody would clear it.
#[tokio::test]
async fn released_ingress_gets_no_status() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    let released = json!({ "metadata": { "finalizers": null }, "status": null });
    stage.api.send("PATCH", INGRESS, &released).await;
    let before = stage.api.get(INGRESS).await;
    stage.balancer_returns(Ok(shown_as(&json!({ "ingress": [{ "ip": "192.0.2.2" }] }))));
    let loops = [
        stage.reconciler.reconcile(&key("i")).await,
        stage.gateway.reconcile(&key("i")).await,
    ];
    let kinds = loops.map(|result| {
        let error = result.unwrap_err().downcast::<WriteError>();
        error.unwrap().kind()
    });
    assert_eq!(kinds, [WriteErrorKind::Conflict; 2]);
    assert_eq!(stage.api.get(INGRESS).await, before);
}

/// The answer to a write of an ingress holds its metadata alone.
/// An ingress may be large, and only its new version is read of an answer.
#[tokio::test]
async fn answers_hold_metadata_alone() {
    for (of, writes) in [
        (ingress("i", &["s"]), 2),
        (converged(), 1),
        (moved_away(), 2),
    ] {
        let (stage, _) = Stage::with(of).await;
        let address = json!({ "ingress": [{ "hostname": "lb.example.com" }] });
        stage.balancer_returns(Ok(Ensured {
            load_balancer: Some(object(address)),
            obstacles: BTreeSet::new(),
        }));
        stage.reconcile().await.unwrap();
        let accepted = stage.api.accepted();
        let lean = |accept: &str| accept.starts_with("application/json;as=PartialObjectMetadata;");
        assert!(
            accepted.len() == writes && accepted.iter().all(|(_, accept)| lean(accept)),
            "{accepted:?}"
        );
    }
}

/// An obstacle is recorded once and retried while it lasts.
#[tokio::test]
async fn obstacle_is_recorded_once() {
    let mut ingress = converged();
    let paths = &mut ingress.spec.ingress.rules.as_mut().unwrap()[0];
    let backend = &mut paths.http.as_mut().unwrap().paths[0].backend;
    backend.service.as_mut().unwrap().port = Some(object(json!({ "name": "web" })));
    let (stage, _) = Stage::with(ingress).await;
    let clash = "Ingress ns/i exists already";
    let clashing = || {
        let object = RelatedObject {
            api_version: None,
            kind: "Ingress",
            key: key("i"),
        };
        let obstacle = Obstacle {
            reason: Reason::GatewayClash,
            object,
            message: clash.to_owned(),
        };
        Ok(Ensured {
            load_balancer: None,
            obstacles: [obstacle].into(),
        })
    };
    stage.balancer_returns(clashing());
    stage.balancer_returns(clashing());
    let problem = "!ServicePortNotFound: Service s has no port web".to_owned();
    for expected in [vec![problem, format!("!GatewayClash: {clash}")], vec![]] {
        let error = stage.reconcile().await.unwrap_err();
        assert_eq!(error.to_string(), clash);
        assert_eq!(stage.events(), expected);
    }
    stage.reconcile().await.unwrap();
    assert_eq!(stage.events(), [""; 0]);
    stage.balancer_returns(clashing());
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.events(), [format!("!GatewayClash: {clash}")]);
}

/// An ingress that moved away is forgotten cleared and released in this order.
#[tokio::test]
async fn moved_ingress_is_released() {
    let (stage, version) = Stage::with(moved_away()).await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [""; 0]);

    stage.balancer_returns(Ok(Ensured {
        load_balancer: Some(object(json!({}))),
        obstacles: BTreeSet::new(),
    }));
    stage.reconcile().await.unwrap();
    let status = json!({
        "serviceLocations": null,
        "trafficBlockClusters": null,
        "loadBalancer": null,
    });
    let requests = stage.api.requests();
    let cleared = answered(&requests[1], &version);
    let expected = [
        // Only of the version on which it was decided: a finalizer that was added since must stay.
        (
            format!("PATCH {INGRESS}/status"),
            of_status(&version, &status),
        ),
        (format!("PATCH {INGRESS}"), of_finalizers(&cleared, &[])),
    ];
    assert_eq!(requests, expected);
    assert_eq!(stage.balancer_calls(), ["delete ns/i", "delete ns/i"]);
}

/// Without a load balancer of ours the addresses are left alone.
#[tokio::test]
async fn foreign_addresses_are_left_alone() {
    let (stage, _) = Stage::with(moved_away()).await;
    stage.balancer.serves_nothing.store(true, Relaxed);
    stage.reconcile().await.unwrap();
    let requests = stage.api.requests();
    let status = json!({ "serviceLocations": null, "trafficBlockClusters": null });
    assert_eq!(requests[0].1["status"], status);
    assert_eq!(stage.balancer_calls(), ["delete ns/i"], "and nothing else");
}

/// An ingress that is gone is forgotten by the load balancer alone.
#[tokio::test]
async fn gone_ingress_is_forgotten() {
    let (stage, _) = Stage::with(converged()).await;
    stage.observe(|index| index.observe_ingress(deleted(converged())));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), ["delete ns/i"]);
    assert_eq!(stage.api.calls(), [""; 0]);
}

/// An ingress deleted meanwhile is no failure.
#[tokio::test]
async fn deleted_ingress_is_no_failure() {
    let stage = Stage::new().await;
    stage.observe(|index| index.observe_ingress(applied(ingress("i", &["s"]))));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls().len(), 1);
    assert_eq!(stage.balancer_calls(), [""; 0]);
    assert_eq!(stage.events(), [""; 0]);
}

/// Every ingress and everything in the load balancer is reconciled first.
#[tokio::test]
async fn new_leader_reconciles_everything() {
    let (stage, _) = Stage::with(converged()).await;
    stage.balancer.holds.lock().push(key("orphan"));
    assert_eq!(stage.reconciler.keys(), [key("i")]);
    assert_eq!(stage.gateway.keys(), [key("i"), key("orphan")]);
}

/// Returns the converged ingress with both clusters blocked.
fn all_blocked() -> MultiClusterIngress {
    let mut ingress = converged();
    let status = ingress.status.as_mut().unwrap();
    status.traffic_block_clusters = Some(vec!["m1".to_owned(), "m2".to_owned()]);
    ingress
}

/// A readmission is recorded once and counted while it lasts.
#[tokio::test]
async fn readmission_is_recorded_once() {
    let (stage, _) = Stage::with(all_blocked()).await;
    let blocked = applied(cluster("m2", &["TrafficControl"]));
    stage.observe(|index| index.observe_cluster(blocked));
    let note = "!TrafficReadmitted: every cluster of Service s is blocked or has no ready endpoints, so those that a condition blocked are readmitted: m1, m2";
    for expected in [vec![note.to_owned()], vec![]] {
        stage.reconcile().await.unwrap();
        assert_eq!(stage.events(), expected);
        assert_eq!(stage.gateway.readmissions.total(), 1);
    }
    assert_eq!(stage.api.calls(), [""; 0], "the status shows the blocks");
    stage.observe(|index| index.observe_cluster(applied(cluster("m2", &[]))));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.gateway.readmissions.total(), 0);
    let expected = ["TrafficUnblocked: Cluster m2 is no longer blocked"];
    assert_eq!(stage.events(), expected);
}

/// Without a load balancer of ours no readmission is recorded.
#[tokio::test]
async fn no_provider_no_readmission() {
    let (stage, _) = Stage::with(all_blocked()).await;
    stage.balancer.serves_nothing.store(true, Relaxed);
    let blocked = applied(cluster("m2", &["TrafficControl"]));
    stage.observe(|index| index.observe_cluster(blocked));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), [""; 0]);
    assert_eq!(stage.events(), [""; 0]);
    assert_eq!(stage.gateway.readmissions.total(), 0);
}

/// The annotation decides for its ingress and a bad value is recorded.
#[tokio::test]
async fn bad_annotation_is_recorded() {
    for (value, expected) in [
        (
            "fail-closed",
            vec![
                "!AllClustersBlocked: every cluster of Service s is blocked or has no ready endpoints, and none is readmitted, because fail-closed is in effect: m1, m2",
            ],
        ),
        (
            "open",
            vec![
                "!TrafficReadmitted: every cluster of Service s is blocked or has no ready endpoints, so those that a condition blocked are readmitted: m1, m2",
                "!InvalidAnnotation: annotation networking.karmada-rs.io/when-all-blocked is \"open\" and must be fail-open or fail-closed; fail-open is in effect",
            ],
        ),
    ] {
        let mut ingress = all_blocked();
        let key = "networking.karmada-rs.io/when-all-blocked".to_owned();
        ingress.metadata.annotations = Some([(key, value.to_owned())].into());
        let (stage, _) = Stage::with(ingress).await;
        let blocked = applied(cluster("m2", &["TrafficControl"]));
        stage.observe(|index| index.observe_cluster(blocked));
        stage.reconcile().await.unwrap();
        let mut events = stage.events();
        events.sort_by_key(|event| expected.iter().position(|e| e == event));
        assert_eq!(events, expected);
    }
}

/// A service with locations and no endpoints is recorded once that has lasted.
#[tokio::test(start_paused = true)]
async fn missing_endpoints_are_recorded_late() {
    let (stage, _) = Stage::with(converged()).await;
    stage.observe(|index| index.observe_slice(deleted(slice("s", "m2", "10.0.0.2"))));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.events(), [""; 0], "they may be collected just now");
    assert_eq!(stage.gateway.queue.len(), 1, "and it is looked at again");
    tokio::time::advance(GRACE).await;
    stage.reconcile().await.unwrap();
    let events = stage.events();
    assert_eq!(events.len(), 1);
    let note = "!NoEndpoints: Service s runs in m1, m2, but Karmada has collected no endpoints";
    assert!(events[0].starts_with(note), "{events:?}");
}

/// While the load balancer is down ingresses wait and all are tried once it answers.
#[tokio::test]
async fn outage_ends_for_all() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    let (outage, balancer) = (
        Arc::clone(&stage.gateway.outage),
        Arc::clone(&stage.balancer),
    );
    let mut probes = balancer.probes.subscribe();
    tokio::spawn(outage.probe(balancer, std::future::pending()));
    stage.balancer_returns(Err(OUTAGE.into()));
    stage.gateway.reconcile(&key("i")).await.unwrap_err();
    probes.wait_for(|probes| *probes == 1).await.unwrap();
    assert_eq!(stage.gateway.outage.waiting(), 0, "it answered the probe");

    stage.balancer_returns(Err(OUTAGE.into()));
    stage.gateway.reconcile(&key("i")).await.unwrap_err();
    stage.balancer.is_down.store(true, Relaxed);
    // This request hangs until the probe shows that the balancer is down.
    stage.gateway.reconcile(&key("i")).await.unwrap();
    assert_eq!(stage.gateway.outage.waiting(), 1);
    let silent = "!LoadBalancerSilent: the load balancer does not answer; until it does, what it serves stays as it was";
    assert_eq!(stage.events(), [silent]);
    stage.reconciler.reconcile(&key("i")).await.unwrap();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}/status")]);

    assert!(stage.gateway.queue.is_empty());
    stage.balancer.is_down.store(false, Relaxed);
    let answered = *probes.borrow() + 1;
    probes.wait_for(|probes| *probes >= answered).await.unwrap();
    while stage.gateway.queue.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.gateway.outage.waiting(), 0);
}

/// Another writer of the status meets pauses and is named once.
#[tokio::test(start_paused = true)]
async fn contended_status_backs_off() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    let api: Api<MultiClusterIngress> = Api::namespaced(stage.api.user(), "ns");
    let theirs = json!({ "status": { "serviceLocations": null, "trafficBlockClusters": ["m9"] } });
    let parameters = PatchParams {
        field_manager: Some("rival".to_owned()),
        ..PatchParams::default()
    };
    for _ in 0..20 {
        stage.reconciler.reconcile(&key("i")).await.unwrap();
        let patch = Patch::Merge(&theirs);
        api.patch_status("i", &parameters, &patch).await.unwrap();
        stage.show().await;
    }
    let events = stage.events();
    let contested: Vec<&String> = events.iter().filter(|e| e.contains("Contested")).collect();
    assert_eq!(contested.len(), 1, "{events:?}");
    let note = "!StatusContested: rival undoes every write to status.serviceLocations";
    assert!(contested[0].starts_with(note), "{contested:?}");
    let calls = stage.api.calls();
    let writes = calls
        .iter()
        .filter(|call| call.starts_with("PATCH"))
        .count();
    assert_eq!(writes, 3, "{calls:?}");

    assert_eq!(stage.reconciler.queue.len(), 1, "after the pause");
    tokio::time::advance(Duration::from_secs(1)).await;
    stage.reconciler.reconcile(&key("i")).await.unwrap();
    assert_eq!(stage.api.calls().len(), 1);
}

/// Counts the writes of twenty reconciles, each of which a rival undoes with `theirs`.
async fn contested(stage: &Stage, theirs: Value, is_status: bool) -> usize {
    let api: Api<MultiClusterIngress> = Api::namespaced(stage.api.user(), "ns");
    let parameters = PatchParams {
        field_manager: Some("rival".to_owned()),
        ..PatchParams::default()
    };
    for _ in 0..20 {
        stage.reconcile().await.unwrap();
        let patch = Patch::Merge(&theirs);
        if is_status {
            api.patch_status("i", &parameters, &patch).await.unwrap();
        } else {
            api.patch("i", &parameters, &patch).await.unwrap();
        }
        stage.show().await;
    }
    let calls = stage.api.calls();
    let writes = calls.iter().filter(|call| call.starts_with("PATCH"));
    writes.count()
}

/// Who takes our finalizer away each time meets pauses and the status is still written.
#[tokio::test(start_paused = true)]
async fn contended_finalizer_spares_status() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    let theirs = json!({ "metadata": { "finalizers": null } });
    assert_eq!(
        contested(&stage, theirs, false).await,
        1 + 3,
        "the status and three times ours"
    );
    let events = stage.events();
    let note = "!FinalizersContested: another client undoes every write to metadata.finalizers";
    let found: Vec<&String> = events.iter().filter(|e| e.contains("Contested")).collect();
    assert!(found.len() == 1 && found[0].starts_with(note), "{events:?}");
}

/// Who gives an ingress that is not ours our finalizer each time meets pauses.
#[tokio::test(start_paused = true)]
async fn contended_release_backs_off() {
    let (stage, _) = Stage::with(moved_away()).await;
    let theirs = json!({ "metadata": { "finalizers": [CONTROLLER] } });
    let writes = contested(&stage, theirs, false).await;
    assert_eq!(writes, 3 * 2, "the status and the finalizers");
    assert_eq!(stage.gateway.queue.len(), 1);
}

/// Another writer of the addresses meets pauses.
#[tokio::test(start_paused = true)]
async fn contended_addresses_back_off() {
    let (stage, _) = Stage::with(converged()).await;
    let ours = json!({ "ingress": [{ "hostname": "lb.example.com" }] });
    for _ in 0..20 {
        stage.balancer_returns(Ok(Ensured {
            load_balancer: Some(object(ours.clone())),
            obstacles: BTreeSet::new(),
        }));
    }
    let theirs = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] } } });
    assert_eq!(contested(&stage, theirs, true).await, 3);
    let events = stage.events();
    let note = "!LoadBalancerContested: ";
    assert!(
        events.len() == 1 && events[0].starts_with(note),
        "{events:?}"
    );
    assert_eq!(stage.gateway.queue.len(), 1);
}

/// Returns a stage with an ingress that could never be read, and a load balancer with both clusters.
async fn unreadable() -> Stage {
    let stage = Stage::new().await;
    let clusters = ["m1".to_owned(), "m2".to_owned()].into();
    *stage.balancer.endpoints.lock() = [("i-s".to_owned(), clusters)].into();
    stage.observe(|index| index.observe_ingress(invalid(&converged())));
    stage
}

/// An unreadable ingress loses the endpoints of blocked clusters and nothing else.
#[tokio::test]
async fn unreadable_ingress_loses_blocked_endpoints() {
    let stage = unreadable().await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), [r#"cut {"i-s": {"m1"}} of ns/i"#]);
    assert_eq!(stage.api.calls(), [""; 0]);

    // It is woken although nobody knows where its Services run.
    let stage = unreadable().await;
    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), [""; 0]);
    let gone = deleted(cluster("m1", &[]));
    let woken = stage.gateway.index.observe_cluster(gone);
    assert_eq!(woken, [key("i")]);
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), [r#"cut {"i-s": {"m1"}} of ns/i"#]);
}
