use std::collections::BTreeSet;

use apiserver::Fault;
use futures::FutureExt;
use futures::future::BoxFuture;
use karmada_rules::ingress::Desired;
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteError;
use kube::runtime::events::EventType;
use parking_lot::Mutex;

use super::*;
use crate::fixtures::{
    CONTROLLER, applied, binding, class, cluster, deleted, ingress, key, object, template,
};
use crate::index::{Backends, Index};
use crate::provider::{Obstacle, RelatedObject};
use crate::test_api::TestApi;

const INGRESS: &str = "/apis/networking.karmada.io/v1alpha1/namespaces/ns/multiclusteringresses/i";

/// A load balancer that logs its calls and returns scripted results.
#[derive(Default)]
struct FakeBalancer {
    calls: Mutex<Vec<String>>,
    results: Mutex<Vec<Result<Ensured, BoxError>>>,
    holds: Mutex<Vec<Key>>,
}

impl FakeBalancer {
    fn result(&self, call: String) -> BoxFuture<'_, Result<Ensured, BoxError>> {
        self.calls.lock().push(call);
        let result = self.results.lock().pop();
        std::future::ready(result.unwrap_or_else(|| Ok(Ensured::default()))).boxed()
    }
}

impl LoadBalancer for FakeBalancer {
    fn needs_backends(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, _: &mut Program, _: &Queue<Key>) {}

    fn ensure<'a>(
        &'a self,
        _: &'a Writer,
        desired: &'a Desired,
    ) -> BoxFuture<'a, Result<Ensured, BoxError>> {
        self.result(format!("ensure {}", desired.key))
    }

    fn delete<'a>(
        &'a self,
        _: &'a Writer,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Ensured, BoxError>> {
        self.result(format!("delete {key}"))
    }

    fn keys(&self) -> Vec<Key> {
        self.holds.lock().clone()
    }
}

/// A reconciler with its Karmada API, its load balancer and its Events.
struct Stage {
    api: TestApi,
    balancer: Arc<FakeBalancer>,
    events: Arc<Mutex<Vec<String>>>,
    reconciler: Reconciler,
}

impl Stage {
    /// Returns a stage without ingresses. Service s runs in m1, which is blocked, and in m2.
    async fn new() -> Self {
        let api = TestApi::karmada().await;
        let index = SharedIndex::new(Queue::default(), Some(Backends::default()));
        index.observe(|index| {
            index.observe_class(applied(class("ours", CONTROLLER)));
            index.observe_class(applied(class("other", "example.com/other")));
            index.observe_cluster(applied(cluster("m1", &["TrafficControl"])));
            index.observe_cluster(applied(cluster("m2", &[])));
            index.observe_binding(applied(binding("s", &["m1", "m2"])));
            index.observe_template(applied(template("s", 80)))
        });
        let (balancer, events) = (Arc::new(FakeBalancer::default()), Arc::default());
        let recorded: Arc<Mutex<Vec<String>>> = Arc::clone(&events);
        let reconciler = Reconciler {
            index: Arc::new(index),
            controller: CONTROLLER.parse().unwrap(),
            balancer: Arc::<FakeBalancer>::clone(&balancer),
            client: api.client(),
            writer: Writer::new(Leadership::always(), WriteMetrics::default()),
            events: IngressEvents::new(move |regarding, event| {
                assert_eq!(regarding.name.as_deref(), Some("i"));
                assert_eq!(regarding.namespace.as_deref(), Some("ns"));
                let warning = matches!(event.type_, EventType::Warning);
                let sign = if warning { "!" } else { "" };
                let note = event.note.unwrap_or_default();
                let event = format!("{sign}{}: {note}", event.reason);
                recorded.lock().push(event);
            }),
        };
        Self {
            api,
            balancer,
            events,
            reconciler,
        }
    }

    /// Returns a stage with `ingress`, stored in the API and shown by the watch, and its version.
    async fn with(ingress: MultiClusterIngress) -> (Self, String) {
        let stage = Self::new().await;
        let mut new = ingress.clone();
        new.metadata.resource_version = None;
        let mut stored = stage.api.create(&new).await;
        if let Some(status) = ingress.status {
            let api: Api<MultiClusterIngress> = Api::namespaced(stage.api.outsider(), "ns");
            let patch = Patch::Merge(json!({ "status": status }));
            let parameters = PatchParams::default();
            let patched = api.patch_status("i", &parameters, &patch).await;
            stored = patched.unwrap();
        }
        let version = stored.metadata.resource_version.clone().unwrap();
        stage.observe(|index| index.observe_ingress(applied(stored)));
        (stage, version)
    }

    fn observe(&self, observe: impl FnOnce(&mut Index) -> Vec<Key>) {
        self.reconciler.index.observe(observe);
    }

    fn balancer_returns(&self, result: Result<Ensured, BoxError>) {
        self.balancer.results.lock().push(result);
    }

    async fn reconcile(&self) -> Result<(), BoxError> {
        self.reconciler.reconcile(&key("i")).await
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

fn finalizers(version: &str, finalizers: &[&str]) -> Value {
    json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
        { "op": "add", "path": "/metadata/finalizers", "value": finalizers },
    ])
}

#[tokio::test]
async fn a_new_ingress_gets_our_finalizer_before_anything_reaches_the_load_balancer() {
    let (stage, version) = Stage::with(ingress("i", &["s"])).await;
    stage.api.server.faults().inject(Fault::Conflict.times(1));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}")]);
    assert_eq!(stage.balancer_calls(), [""; 0]);

    stage.reconcile().await.unwrap();
    let status = json!({ "status": {
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": ["m1"],
    } });
    let expected = [
        (
            format!("PATCH {INGRESS}"),
            finalizers(&version, &[CONTROLLER]),
        ),
        (format!("PATCH {INGRESS}/status"), status),
    ];
    assert_eq!(stage.api.requests(), expected);
    assert_eq!(stage.balancer_calls(), ["ensure ns/i"]);
    let expected = ["!TrafficBlocked: A Remedy takes the traffic of cluster m1 away"];
    assert_eq!(stage.events(), expected);
}

#[tokio::test]
async fn a_converged_ingress_gets_no_write_and_no_event() {
    let (stage, _) = Stage::with(converged()).await;
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    assert_eq!(stage.events(), [""; 0]);
    assert_eq!(stage.balancer_calls(), ["ensure ns/i"]);
}

#[tokio::test]
async fn an_unblocked_cluster_is_null_in_the_status_and_recorded_once() {
    let (stage, _) = Stage::with(converged()).await;
    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
    stage.reconcile().await.unwrap();
    let status = json!({ "status": {
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": null,
    } });
    assert_eq!(
        stage.api.requests(),
        [(format!("PATCH {INGRESS}/status"), status)]
    );
    let expected = ["TrafficUnblocked: Cluster m1 is no longer blocked"];
    assert_eq!(stage.events(), expected);
}

#[tokio::test]
async fn the_load_balancer_is_updated_even_when_the_status_cannot_be_written() {
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

#[tokio::test]
async fn the_status_is_written_even_when_the_load_balancer_fails() {
    let (stage, _) = Stage::with(not_yet_blocked()).await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}/status")]);
    assert_eq!(stage.events().len(), 1);
}

#[tokio::test]
async fn the_load_balancers_addresses_are_written_when_they_change() {
    let (stage, _) = Stage::with(converged()).await;
    let status = json!({ "ingress": [{ "hostname": "lb.example.com" }] });
    stage.balancer_returns(Ok(Ensured {
        load_balancer: Some(object(status.clone())),
        obstacles: BTreeSet::new(),
    }));
    stage.reconcile().await.unwrap();
    let body = json!({ "status": { "loadBalancer": status } });
    assert_eq!(
        stage.api.requests(),
        [(format!("PATCH {INGRESS}/status"), body)]
    );
}

#[tokio::test]
async fn an_obstacle_is_recorded_once_and_retried_while_it_lasts() {
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
            reason: "GatewayClash",
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
    for expected in [vec![format!("!GatewayClash: {clash}"), problem], vec![]] {
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

#[tokio::test]
async fn an_ingress_that_moved_away_is_forgotten_cleared_and_released_in_this_order() {
    let (stage, version) = Stage::with(moved_away()).await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [""; 0]);

    stage.balancer_returns(Ok(Ensured {
        load_balancer: Some(object(json!({}))),
        obstacles: BTreeSet::new(),
    }));
    stage.reconcile().await.unwrap();
    let status = json!({ "status": {
        "serviceLocations": null,
        "trafficBlockClusters": null,
        "loadBalancer": null,
    } });
    let requests = stage.api.requests();
    // That of the status write, or else the API server would have rejected the second write.
    let cleared = requests[1].1[0]["value"].as_str().unwrap().to_owned();
    assert_ne!(cleared, version);
    let expected = [
        (format!("PATCH {INGRESS}/status"), status),
        (format!("PATCH {INGRESS}"), finalizers(&cleared, &[])),
    ];
    assert_eq!(requests, expected);
    assert_eq!(stage.balancer_calls(), ["delete ns/i", "delete ns/i"]);
}

#[tokio::test]
async fn without_a_load_balancer_of_ours_the_addresses_are_left_alone() {
    let (stage, _) = Stage::with(moved_away()).await;
    stage.reconcile().await.unwrap();
    let requests = stage.api.requests();
    let status = json!({ "serviceLocations": null, "trafficBlockClusters": null });
    assert_eq!(requests[0].1, json!({ "status": status }));
}

#[tokio::test]
async fn an_ingress_that_is_gone_is_forgotten_by_the_load_balancer_alone() {
    let (stage, _) = Stage::with(converged()).await;
    stage.observe(|index| index.observe_ingress(deleted(converged())));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_calls(), ["delete ns/i"]);
    assert_eq!(stage.api.calls(), [""; 0]);
}

#[tokio::test]
async fn an_ingress_deleted_meanwhile_is_no_failure() {
    let stage = Stage::new().await;
    stage.observe(|index| index.observe_ingress(applied(ingress("i", &["s"]))));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls().len(), 1);
    assert_eq!(stage.balancer_calls(), [""; 0]);
    assert_eq!(stage.events(), [""; 0]);
}

#[tokio::test]
async fn every_ingress_and_everything_in_the_load_balancer_is_reconciled_first() {
    let (stage, _) = Stage::with(converged()).await;
    stage.balancer.holds.lock().push(key("orphan"));
    assert_eq!(stage.reconciler.keys(), [key("i"), key("orphan")]);
}
