//! Bindings that are decided before their clusters report the room that the ones before take.

use std::time::Duration;

use clap::Parser;
use futures::future::join_all;
use tokio::time::Instant;

use super::evict::with_room;
use super::*;
use crate::args::Args;
use crate::estimators::Answers;
use crate::estimators::tests::server::{Script, Server};

thread_local! {
    static BEGAN: Instant = Instant::now();
}

/// Returns a time that goes on as tokio's clock does.
fn clock() -> Timestamp {
    let began: Timestamp = NOW.parse().unwrap();
    began + BEGAN.with(Instant::elapsed)
}

/// Returns a binding with so many replicas, which go to the cluster that has room for them.
fn by_room(name: &str, replicas: i32) -> Value {
    let mut placement = divided();
    placement["replicaScheduling"]["replicaDivisionPreference"] = json!("Aggregated");
    let mut binding = binding(name, "ResourceBinding", &placement);
    binding["spec"]["replicas"] = json!(replicas);
    binding
}

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

fn path(name: &str) -> String {
    format!("{BINDINGS}/{name}")
}

impl Stage {
    /// Creates a stage with room for so many pods in `m1`, that is promised only once.
    async fn of_promises(pods: u32) -> Self {
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        let stage = Self::with_promises(api().await, WriteMode::Perform(writer));
        stage.show_cluster(with_room("m1", pods));
        stage
    }

    fn with_promises(api: TestApi, writes: WriteMode) -> Self {
        let heeded = Heeded {
            promises: Some(clock),
            ..Heeded::default()
        };
        let mut stage = Self::of(default_scheduler(), heeded, api, writes);
        stage.reconciler.clock = clock;
        stage
    }

    /// Creates twenty bindings of one replica each and decides about all of them at once, before the watch shows the
    /// writes. Returns the stored ones.
    async fn burst(&self) -> Vec<Value> {
        let names: Vec<_> = (0..20).map(|nth| format!("b{nth:02}")).collect();
        for name in &names {
            self.show(&self.api.create(&by_room(name, 1)).await);
        }
        self.decide_all(&names).await
    }

    async fn decide_all(&self, names: &[String]) -> Vec<Value> {
        let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
        for decided in join_all(keys.iter().map(|key| self.reconcile(key))).await {
            decided.unwrap();
        }
        let stored = names
            .iter()
            .map(async |name| self.api.get(&path(name)).await);
        join_all(stored).await
    }

    /// Decides about a binding and shows the write.
    async fn decide_and_show(&self, name: &str) -> Value {
        self.reconcile(&key(name)).await.unwrap();
        let stored = self.api.get(&path(name)).await;
        self.show(&stored);
        stored
    }

    /// Creates two bindings of which `m1` has room for one, and decides about both: `b` waits.
    async fn two_for_one(&self) {
        for name in ["a", "b"] {
            self.show(&self.api.create(&by_room(name, 2)).await);
        }
        assert_eq!(replicas(&self.decide_and_show("a").await), Some(2));
        assert_waits(&self.decide_and_show("b").await);
        // The echo of its own write changes nothing.
        assert_waits(&self.decide_and_show("b").await);
    }

    /// Returns the bindings that an event of `a` wakes.
    fn woken_by(
        &self,
        event: fn(Decoded<ResourceBinding>) -> Seen<Decoded<ResourceBinding>>,
        a: &Value,
    ) -> Vec<Key> {
        self.observe_binding(event(Decoded::Valid(from_value(a.clone()).unwrap())))
    }
}

/// Returns the replicas of a stored binding in `m1`.
fn replicas(stored: &Value) -> Option<i64> {
    stored["spec"]["clusters"][0]["replicas"].as_i64()
}

#[track_caller]
fn assert_waits(stored: &Value) {
    assert_eq!(stored["spec"].get("clusters"), None);
    let condition = &stored["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(
        condition["message"],
        "failed to assign replicas: failed to scale up: Clusters available replicas 0 are not enough to schedule."
    );
}

/// Twenty at once want one of five places: five get one, and the others say so and go on as there is room. Case I98.
#[tokio::test]
async fn burst_fits_its_cluster() {
    let stage = Stage::of_promises(5).await;
    let stored = stage.burst().await;
    let (placed, waiting): (Vec<_>, Vec<_>) =
        stored.iter().partition(|stored| replicas(stored).is_some());
    assert_eq!((placed.len(), waiting.len()), (5, 15));
    for stored in waiting {
        assert_waits(stored);
    }

    for stored in &stored {
        stage.show(stored);
    }
    let woken = stage.show_cluster(with_room("m1", 8));
    assert_eq!(woken.len(), 15);
    let names: Vec<_> = woken.into_iter().map(|key| key.name).collect();
    let stored = stage.decide_all(&names).await;
    let placed = stored.iter().filter(|stored| replicas(stored).is_some());
    assert_eq!(placed.count(), 3);
}

/// Who waits is woken once, however often room gets free before it is decided anew. Case I98.
#[tokio::test]
async fn waiting_are_woken_once() {
    let stage = Stage::of_promises(5).await;
    let stored = stage.burst().await;
    for stored in &stored {
        stage.show(stored);
    }
    let names: Vec<_> = (0..20).map(|nth| format!("b{nth:02}")).collect();
    stage.decide_all(&names).await;
    let placed = stored.iter().filter(|stored| replicas(stored).is_some());
    let woken = placed.flat_map(|placed| stage.woken_by(Seen::Delete, placed));
    // The five themselves, and each of the others.
    assert_eq!(woken.count(), 5 + 15);
}

/// Without the feature each finds the room that the cluster reports, as in Karmada. Case I98.
#[tokio::test]
async fn promises_are_off_by_default() {
    let stage = Stage::new().await;
    stage.show_cluster(with_room("m1", 5));
    let stored = stage.burst().await;
    assert!(stored.iter().all(|stored| replicas(stored) == Some(1)));
}

/// Where only an estimator knows that there is no more room, it is asked in turn, with the assumptions of then. Case I98.
#[tokio::test]
async fn estimator_hears_of_burst() {
    let mut stage = Stage::of_promises(1000).await;
    let server = Server::start(Script::Pods(5)).await;
    stage.api.create_namespace("karmada-system").await;
    let service = json!({
        "metadata": { "name": "karmada-scheduler-estimator-m1" },
        "spec": {
            "type": "ExternalName", "externalName": "localhost",
            "ports": [{ "port": 10352, "targetPort": server.port }],
        },
    });
    let services = "/api/v1/namespaces/karmada-system/services";
    stage.api.send("POST", services, &service).await;
    let args = Args::parse_from(["scheduler", "--enable-scheduler-estimator"]).estimators;
    let client = stage.api.client();
    stage.reconciler.estimators = Some(Estimators::new(args, client, Answers::default()));
    let stored = stage.burst().await;
    let placed = stored.iter().filter(|stored| replicas(stored).is_some());
    assert_eq!(placed.count(), 5);
    let asked = server.asked();
    let workloads = asked.last().unwrap().assumed_workloads.len();
    assert_eq!((asked.len(), workloads), (20, 5));
}

/// A copy that is Healthy is in the report of its cluster: who waits goes on. Case I98.
#[tokio::test]
async fn healthy_copy_frees_promise() {
    let stage = Stage::of_promises(2).await;
    stage.two_for_one().await;
    for (health, frees) in [("Unhealthy", false), ("Healthy", true)] {
        let report = json!([{ "clusterName": "m1", "health": health }]);
        let status = json!({ "status": { "aggregatedStatus": report } });
        let a = format!("{}/status", path("a"));
        let a = stage.api.send("PATCH", &a, &status).await;
        let woken = stage.woken_by(Seen::Apply, &a);
        assert_eq!(woken.contains(&key("b")), frees, "{health}");
    }
    let b = stage.decide_and_show("b").await;
    assert_eq!(replicas(&b), Some(2));
}

/// Room that was promised to a binding which is gone, or goes elsewhere, is free. Case I98.
#[tokio::test]
async fn leaver_frees_promise() {
    for leaves in [true, false] {
        let stage = Stage::of_promises(2).await;
        stage.two_for_one().await;
        let elsewhere = json!({ "spec": { "clusters": [{ "name": "m9", "replicas": 2 }] } });
        let a = stage.api.send("PATCH", &path("a"), &elsewhere).await;
        let event = if leaves { Seen::Delete } else { Seen::Apply };
        let woken = stage.woken_by(event, &a);
        assert!(woken.contains(&key("b")), "{woken:?}");
        let b = stage.decide_and_show("b").await;
        assert_eq!(replicas(&b), Some(2));
    }
}

/// A decision that the API refuses takes no room. Case I98.
#[tokio::test]
async fn refused_write_frees_promise() {
    let stage = Stage::of_promises(2).await;
    for name in ["a", "b"] {
        stage.show(&stage.api.create(&by_room(name, 2)).await);
    }
    let call = format!("PATCH {}", path("a"));
    stage.api.refuse(&call, 409, "Conflict", "changed");
    stage.reconcile(&key("a")).await.unwrap_err();
    assert_eq!(replicas(&stage.decide_and_show("b").await), Some(2));
    assert_waits(&stage.decide_and_show("a").await);
}

/// A copy that never gets Healthy takes no room for ever: after five minutes who waits is woken, before its own next try.
/// Case I98.
#[tokio::test(start_paused = true)]
async fn time_frees_promise() {
    let stage = Stage::of_promises(2).await;
    stage.two_for_one().await;
    let began = Instant::now();
    tokio::time::advance(Duration::from_mins(1)).await;
    let (api, _program) = stage.run();
    tokio::time::sleep_until(began + Duration::from_secs(295)).await;
    assert_waits(&api.get(&path("b")).await);
    tokio::time::sleep_until(began + Duration::from_secs(305)).await;
    assert_eq!(replicas(&api.get(&path("b")).await), Some(2));
}

/// A scheduler that starts again promises no room twice: the bindings tell the placements of late. Case I98.
#[tokio::test]
async fn restart_keeps_promises() {
    let stage = Stage::of_promises(2).await;
    stage.two_for_one().await;
    let [a, b] = [
        stage.api.get(&path("a")).await,
        stage.api.get(&path("b")).await,
    ];
    let stage = Stage::with_promises(stage.api, stage.writes);
    stage.show_cluster(with_room("m1", 2));
    for stored in [&a, &b] {
        stage.show(stored);
    }
    for key in stage.reconciler.keys() {
        stage.reconcile(&key).await.unwrap();
    }
    assert_waits(&stage.api.get(&path("b")).await);
}

/// Assumptions go with their binding. Case I98.
#[tokio::test]
async fn nothing_outlives_its_binding() {
    let stage = Stage::of_promises(2).await;
    stage.two_for_one().await;
    let a = stage.api.get(&path("a")).await;
    assert!(stage.reconciler.index.lock().next_end(&key("a")).is_some());
    stage.woken_by(Seen::Delete, &a);
    assert_eq!(stage.reconciler.index.lock().next_end(&key("a")), None);
}
