use std::collections::BTreeSet;

use karmada_rules::ingress::Desired;
use karmada_rules::ingress::kubernetes::Clash;
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteError;
use kube::runtime::events::EventType;
use parking_lot::Mutex;

use super::*;
use crate::fake::{FakeApi, refusal};
use crate::fixtures::{
    CONTROLLER, applied, binding, class, cluster, deleted, ingress, key, object, template,
};
use crate::known::{Backends, Known};
use crate::provider::ProviderError;

const INGRESS: &str = "/apis/networking.karmada.io/v1alpha1/namespaces/ns/multiclusteringresses/i";

/// A load balancer that keeps what it was asked and answers what it is told to.
#[derive(Default)]
struct FakeBalancer {
    asked: Mutex<Vec<String>>,
    answers: Mutex<Vec<Result<Ensured, ProviderError>>>,
    holds: Vec<Key>,
}

impl FakeBalancer {
    fn answer(&self, call: String) -> Result<Ensured, ProviderError> {
        self.asked.lock().push(call);
        self.answers
            .lock()
            .pop()
            .unwrap_or_else(|| Ok(Ensured::default()))
    }
}

impl LoadBalancer for FakeBalancer {
    async fn ensure(&self, desired: &Desired) -> Result<Ensured, ProviderError> {
        self.answer(format!("ensure {}", desired.key))
    }

    async fn delete(&self, key: &Key) -> Result<Ensured, ProviderError> {
        self.answer(format!("delete {key}"))
    }

    fn keys(&self) -> Vec<Key> {
        self.holds.clone()
    }
}

/// A controller on a stage: its Karmada API, its load balancer and its Events.
struct Stage {
    api: FakeApi,
    told: Arc<Mutex<Vec<String>>>,
    reconciler: Reconciler<FakeBalancer>,
}

/// An ingress `i` of ours to Service s, in m1, which is blocked, and m2, which is not.
fn stage() -> Stage {
    let api = FakeApi::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let index = Index::new(Queue::default(), Some(Backends::default()));
    index.observe(|known| {
        known.observe_class(applied(class("ours", CONTROLLER)));
        known.observe_class(applied(class("other", "example.com/other")));
        known.observe_cluster(applied(cluster("m1", &["TrafficControl"])));
        known.observe_cluster(applied(cluster("m2", &[])));
        known.observe_binding(applied(binding("s", &["m1", "m2"])));
        known.observe_template(applied(template("s", 80)))
    });
    let events = Arc::clone(&told);
    Stage {
        reconciler: Reconciler {
            index: Arc::new(index),
            controller: CONTROLLER.parse().unwrap(),
            balancer: FakeBalancer::default(),
            client: api.client(),
            writer: Writer::new(Leadership::always(), WriteMetrics::default()),
            notices: Notices::new(move |regarding, event| {
                assert_eq!(regarding.name.as_deref(), Some("i"));
                assert_eq!(regarding.namespace.as_deref(), Some("ns"));
                let warning = matches!(event.type_, EventType::Warning);
                let sign = if warning { "!" } else { "" };
                let note = event.note.unwrap_or_default();
                events
                    .lock()
                    .push(format!("{sign}{}: {note}", event.reason));
            }),
        },
        api,
        told,
    }
}

impl Stage {
    fn observe(&self, observe: impl FnOnce(&mut Known) -> Vec<Key>) {
        self.reconciler.index.observe(observe);
    }

    fn with_ingress(self, ingress: MultiClusterIngress) -> Self {
        self.observe(|known| known.observe_ingress(applied(ingress)));
        self
    }

    fn balancer_answers(&self, answer: Result<Ensured, ProviderError>) {
        self.reconciler.balancer.answers.lock().push(answer);
    }

    async fn reconcile(&self) -> Result<(), BoxError> {
        self.reconciler.reconcile(&key("i")).await
    }

    fn balancer_was_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.reconciler.balancer.asked.lock())
    }

    fn was_told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock())
    }
}

fn stored(version: &str) -> (u16, Value) {
    let metadata = json!({ "name": "i", "namespace": "ns", "resourceVersion": version });
    (200, json!({ "metadata": metadata }))
}

/// The ingress as it is once everything is written.
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

fn finalizers(version: &str, finalizers: &[&str]) -> Value {
    json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
        { "op": "add", "path": "/metadata/finalizers", "value": finalizers },
    ])
}

#[tokio::test]
async fn a_new_ingress_gets_our_finalizer_before_anything_reaches_the_load_balancer() {
    let stage = stage().with_ingress(ingress("i", &["s"]));
    stage.api.answers([refusal(409, "Conflict")]);
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}")]);
    assert_eq!(stage.balancer_was_asked(), [""; 0]);

    stage.api.answers([stored("6"), stored("7")]);
    stage.reconcile().await.unwrap();
    let status = json!({ "status": {
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": ["m1"],
    } });
    let expected = [
        (format!("PATCH {INGRESS}"), finalizers("5", &[CONTROLLER])),
        (format!("PATCH {INGRESS}/status"), status),
    ];
    assert_eq!(stage.api.asked(), expected);
    assert_eq!(stage.balancer_was_asked(), ["ensure ns/i"]);
    let expected = ["!TrafficBlocked: A Remedy takes the traffic of cluster m1 away"];
    assert_eq!(stage.was_told(), expected);
}

#[tokio::test]
async fn a_converged_ingress_gets_no_write_and_no_event() {
    let stage = stage().with_ingress(converged());
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    assert_eq!(stage.was_told(), [""; 0]);
    assert_eq!(stage.balancer_was_asked(), ["ensure ns/i"]);
}

#[tokio::test]
async fn an_unblocked_cluster_is_null_in_the_status_and_told_of_once() {
    let stage = stage().with_ingress(converged());
    stage.observe(|known| known.observe_cluster(applied(cluster("m1", &[]))));
    stage.api.answers([stored("6")]);
    stage.reconcile().await.unwrap();
    let status = json!({ "status": {
        "serviceLocations": [{ "name": "s", "clusters": ["m1", "m2"] }],
        "trafficBlockClusters": null,
    } });
    assert_eq!(
        stage.api.asked(),
        [(format!("PATCH {INGRESS}/status"), status)]
    );
    let expected = ["TrafficUnblocked: Cluster m1 is no longer blocked"];
    assert_eq!(stage.was_told(), expected);
}

#[tokio::test]
async fn the_load_balancer_is_told_even_when_the_status_cannot_be_written() {
    let mut unblocked = converged();
    unblocked.status.as_mut().unwrap().traffic_block_clusters = None;
    let stage = stage().with_ingress(unblocked);
    stage.api.answers([refusal(503, "ServiceUnavailable")]);
    let error = stage.reconcile().await.unwrap_err();
    assert!(error.downcast_ref::<WriteError>().is_some(), "{error}");
    assert_eq!(stage.balancer_was_asked(), ["ensure ns/i"]);
    assert_eq!(stage.was_told(), [""; 0]);
    assert_eq!(stage.api.calls().len(), 1);
}

#[tokio::test]
async fn the_status_is_written_even_when_the_load_balancer_fails() {
    let mut unblocked = converged();
    unblocked.status.as_mut().unwrap().traffic_block_clusters = None;
    let stage = stage().with_ingress(unblocked);
    stage.api.answers([stored("6")]);
    stage.balancer_answers(Err(ProviderError::Stale {
        kind: "Service",
        key: key("x"),
    }));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESS}/status")]);
    assert_eq!(stage.was_told().len(), 1);
}

#[tokio::test]
async fn the_load_balancers_addresses_are_written_when_they_change() {
    let stage = stage().with_ingress(converged());
    let status = json!({ "ingress": [{ "hostname": "lb.example.com" }] });
    stage.balancer_answers(Ok(Ensured {
        load_balancer: Some(object(status.clone())),
        obstacles: BTreeSet::new(),
    }));
    stage.api.answers([stored("6")]);
    stage.reconcile().await.unwrap();
    let body = json!({ "status": { "loadBalancer": status } });
    assert_eq!(
        stage.api.asked(),
        [(format!("PATCH {INGRESS}/status"), body)]
    );
}

#[tokio::test]
async fn what_is_wrong_is_told_once_and_tried_again_while_it_lasts() {
    let mut ingress = converged();
    let paths = &mut ingress.spec.ingress.rules.as_mut().unwrap()[0];
    let backend = &mut paths.http.as_mut().unwrap().paths[0].backend;
    backend.service.as_mut().unwrap().port = Some(object(json!({ "name": "web" })));
    let stage = stage().with_ingress(ingress);
    let clashing = || {
        let clash = Clash {
            kind: "Ingress",
            key: key("i"),
        };
        Ok(Ensured {
            load_balancer: None,
            obstacles: [Obstacle::Clash(clash)].into(),
        })
    };
    stage.balancer_answers(clashing());
    stage.balancer_answers(clashing());
    let clash = "Ingress ns/i exists in the gateway cluster and was not made for this ingress; delete or rename it";
    for told in [2, 0] {
        let error = stage.reconcile().await.unwrap_err();
        assert_eq!(error.to_string(), clash);
        assert_eq!(stage.was_told().len(), told);
    }
    stage.reconcile().await.unwrap();
    assert_eq!(stage.was_told(), [""; 0]);
    stage.balancer_answers(clashing());
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.was_told(), [format!("!GatewayClash: {clash}")]);
}

#[tokio::test]
async fn an_ingress_that_moved_away_is_forgotten_cleared_and_let_go_in_this_order() {
    let mut moved = converged();
    moved.spec.ingress.ingress_class_name = Some("other".to_owned());
    let stage = stage().with_ingress(moved);
    stage.balancer_answers(Err(ProviderError::Stale {
        kind: "Ingress",
        key: key("i"),
    }));
    stage.reconcile().await.unwrap_err();
    assert_eq!(stage.api.calls(), [""; 0]);

    stage.balancer_answers(Ok(Ensured {
        load_balancer: Some(object(json!({}))),
        obstacles: BTreeSet::new(),
    }));
    stage.api.answers([stored("6"), stored("7")]);
    stage.reconcile().await.unwrap();
    let status = json!({ "status": {
        "serviceLocations": null,
        "trafficBlockClusters": null,
        "loadBalancer": null,
    } });
    let expected = [
        (format!("PATCH {INGRESS}/status"), status),
        (format!("PATCH {INGRESS}"), finalizers("6", &[])),
    ];
    assert_eq!(stage.api.asked(), expected);
    assert_eq!(stage.balancer_was_asked(), ["delete ns/i", "delete ns/i"]);
}

#[tokio::test]
async fn without_a_load_balancer_of_ours_the_addresses_are_left_alone() {
    let mut moved = converged();
    moved.spec.ingress.ingress_class_name = Some("other".to_owned());
    let stage = stage().with_ingress(moved);
    stage.api.answers([stored("6"), stored("7")]);
    stage.reconcile().await.unwrap();
    let asked = stage.api.asked();
    let status = json!({ "serviceLocations": null, "trafficBlockClusters": null });
    assert_eq!(asked[0].1, json!({ "status": status }));
}

#[tokio::test]
async fn an_ingress_that_is_gone_is_forgotten_by_the_load_balancer_alone() {
    let stage = stage().with_ingress(converged());
    stage.observe(|known| known.observe_ingress(deleted(converged())));
    stage.reconcile().await.unwrap();
    assert_eq!(stage.balancer_was_asked(), ["delete ns/i"]);
    assert_eq!(stage.api.calls(), [""; 0]);
}

#[tokio::test]
async fn an_ingress_that_goes_meanwhile_is_no_failure() {
    let stage = stage().with_ingress(ingress("i", &["s"]));
    stage.api.answers([refusal(404, "NotFound")]);
    stage.reconcile().await.unwrap();
    assert_eq!(stage.api.calls().len(), 1);
    assert_eq!(stage.balancer_was_asked(), [""; 0]);
    assert_eq!(stage.was_told(), [""; 0]);
}

#[tokio::test]
async fn every_ingress_and_all_that_the_load_balancer_holds_is_looked_at_first() {
    let mut stage = stage().with_ingress(converged());
    stage.reconciler.balancer.holds = vec![key("orphan")];
    assert_eq!(stage.reconciler.keys(), [key("i"), key("orphan")]);
}
