//! Drains on an embedded API, with the real scheduler, remedy-controller and ingress-controller, in virtual time. What
//! members report is the test's.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::ApiServer;
use karmada_api::{ClusterView, Remedy, ResourceBinding, names};
use karmada_runtime::program::Program;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::*;
use crate::args::{Args, Command, FleetCommand, UncordonArgs};
use crate::fixtures::{
    NAMESPACE, binding, class, ingress, run_ingress_controller, run_remedy_controller, slice,
};

mod on_hub;

const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];
const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";
const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings";
const INGRESS: &str =
    "/apis/networking.karmada.io/v1alpha1/namespaces/shop/multiclusteringresses/shop";

/// The flags of a drain.
fn drain_args(line: &str) -> DrainArgs {
    let words = ["kubectl-remedy", "drain"].into_iter();
    let args = Args::try_parse_from(words.chain(line.split_whitespace())).unwrap();
    match args.command {
        Command::Fleet(FleetCommand::Drain(args)) => args,
        _ => unreachable!("the line has the command drain"),
    }
}

fn uncordon_args(line: &str) -> UncordonArgs {
    let words = ["kubectl-remedy", "uncordon"].into_iter();
    let args = Args::try_parse_from(words.chain(line.split_whitespace())).unwrap();
    match args.command {
        Command::Fleet(FleetCommand::Uncordon(args)) => args,
        _ => unreachable!("the line has the command uncordon"),
    }
}

/// A fleet of three clusters, each with a copy of a Service that an ingress serves.
struct Stage {
    api: TestApi,
}

/// Everything that a drain may change, and its end has to give back.
#[derive(Debug, PartialEq, Eq)]
struct Whole {
    /// The replicas of each binding by cluster.
    replicas: BTreeMap<String, BTreeMap<String, i32>>,
    annotations: Vec<String>,
    taints: Vec<String>,
    remedies: Vec<String>,
    blocked: Value,
}

impl Stage {
    /// Creates the fleet; each cluster has room for so many CPUs.
    async fn new(cpu: u32) -> Self {
        let definitions = karmada_api::crd::fleet().unwrap().into_iter();
        let installed = karmada_api::crd::installed().unwrap();
        let api = TestApi::with_kinds(definitions.chain(installed));
        for namespace in ["karmada-system", NAMESPACE] {
            api.create_namespace(namespace).await;
        }
        for member in MEMBERS {
            api.create(&cluster(member, cpu)).await;
        }
        api.create(&class()).await;
        api.create(&binding("web", &MEMBERS)).await;
        let ports = json!([{ "name": "http", "port": 80 }]);
        api.create(&json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "namespace": NAMESPACE }, "spec": { "ports": ports } }))
            .await;
        for (number, member) in MEMBERS.iter().enumerate() {
            let address = format!("10.0.{number}.1");
            api.create(&slice("web", member, &address, true)).await;
        }
        api.create(&ingress("shop", &["web"], None)).await;
        Self { api }
    }

    /// Runs the programs, and waits until the workloads are placed.
    async fn run(&self, workloads: &[Value]) -> Whole {
        run_remedy_controller(self.api.user(), &[]);
        let gateway = Client::new(ApiServer::new().service(), "default");
        run_ingress_controller(self.api.user(), gateway);
        self.run_scheduler(workloads).await;
        self.is(|whole| whole.replicas.values().all(|placed| !placed.is_empty()))
            .await;
        let located = async || self.api.get(INGRESS).await["status"]["serviceLocations"].is_array();
        while !located().await {
            sleep(Duration::from_millis(100)).await;
        }
        self.whole().await
    }

    async fn run_scheduler(&self, workloads: &[Value]) {
        let mut program = Program::new(scheduler::IDENTITY, ([127, 0, 0, 1], 0).into());
        let flags = [scheduler::NAME, "--evict-untolerated"];
        let args = scheduler::Args::try_parse_from(flags).unwrap();
        scheduler::assemble(&args, self.api.user(), &mut program);
        tokio::spawn(program.run_until(async || std::future::pending().await));
        tokio::spawn(report(self.api.user()));
        for workload in workloads {
            self.api.create(workload).await;
        }
    }

    /// Lets each cluster report that so many of its CPUs are taken.
    async fn fill(&self, cpu: u32) {
        let taken = json!({ "cpu": cpu.to_string(), "pods": cpu.to_string() });
        let status = json!({ "status": { "resourceSummary": { "allocated": taken } } });
        for member in MEMBERS {
            let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/status");
            self.api.send("PATCH", &path, &status).await;
        }
    }

    async fn whole(&self) -> Whole {
        let bindings = bindings(&self.api.user()).await;
        let mut replicas = BTreeMap::new();
        let mut annotations = Vec::new();
        for binding in &bindings {
            let targets = binding.spec.clusters.iter().flatten();
            let targets = targets.map(|one| (one.name.clone(), one.replicas.unwrap_or(0)));
            replicas.insert(binding.name_any(), targets.collect());
            let notes = binding.annotations().keys();
            annotations.extend(notes.filter(|key| key.starts_with("drain.")).cloned());
        }
        let clusters: Api<ClusterView> = Api::all(self.api.user());
        let clusters = clusters.list(&ListParams::default()).await.unwrap();
        let taints = clusters.iter().flat_map(|cluster| &cluster.spec.taints);
        let remedies: Api<Remedy> = Api::all(self.api.user());
        let remedies = remedies.list(&ListParams::default()).await.unwrap();
        let ingress = self.api.get(INGRESS).await;
        Whole {
            replicas,
            annotations,
            taints: taints.map(objects::taint::show).collect(),
            remedies: remedies.iter().map(ResourceExt::name_any).collect(),
            blocked: ingress["status"]["trafficBlockClusters"].clone(),
        }
    }

    /// Waits until the fleet is as `wanted`.
    async fn is(&self, wanted: impl Fn(&Whole) -> bool) {
        let waiting = async {
            while !wanted(&self.whole().await) {
                sleep(Duration::from_millis(100)).await;
            }
        };
        let ended = timeout(Duration::from_mins(30), waiting).await;
        assert!(ended.is_ok(), "{:?}", self.whole().await);
    }

    async fn drain(&self, line: &str) -> Result<Answer, Error> {
        run(&drain_args(line), &self.api.client(), Timestamp::now()).await
    }

    async fn uncordon(&self, line: &str) -> Result<Answer, Error> {
        uncordon(&uncordon_args(line), &self.api.client()).await
    }
}

fn cluster(name: &str, cpu: u32) -> Value {
    let kinds = json!([{ "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] }]);
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": { "name": name }, "spec": { "syncMode": "Push" },
        "status": {
            "apiEnablements": kinds,
            "resourceSummary": { "allocatable": { "cpu": cpu.to_string(), "pods": "100" } },
        },
    })
}

/// Returns the binding of a Deployment that is to be scheduled, with replicas of one CPU.
fn workload(name: &str, replicas: i32, scheduling: &Value) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { names::POLICY_ID: "1" } },
        "spec": {
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": name },
            "replicas": replicas, "replicaRequirements": { "resourceRequest": { "cpu": "1" } },
            "placement": { "replicaScheduling": scheduling },
        },
    })
}

fn weighted() -> Value {
    let weights = [("m1", 2), ("m2", 1), ("m3", 1)].map(
        |(name, weight)| json!({ "targetCluster": { "clusterNames": [name] }, "weight": weight }),
    );
    json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": { "staticWeightList": weights } })
}

fn by_room() -> Value {
    json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": { "dynamicWeight": "AvailableReplicas" } })
}

fn duplicated() -> Value {
    json!({ "replicaSchedulingType": "Duplicated" })
}

async fn bindings(client: &Client) -> Vec<ResourceBinding> {
    let bindings: Api<ResourceBinding> = Api::namespaced(client.clone(), NAMESPACE);
    let listed = bindings.list(&ListParams::default()).await.unwrap();
    listed.items
}

/// Reports every copy as healthy, a second after it is scheduled, as members do.
async fn report(client: Client) {
    let api: Api<ResourceBinding> = Api::namespaced(client.clone(), NAMESPACE);
    loop {
        sleep(Duration::from_secs(1)).await;
        for binding in bindings(&client).await {
            let targets = binding.spec.clusters.iter().flatten();
            let healthy = targets.map(|target| {
                json!({ "clusterName": target.name, "applied": true, "health": "Healthy" })
            });
            let status = json!({ "aggregatedStatus": healthy.collect::<Vec<_>>() });
            let (name, parameters) = (binding.name_any(), PatchParams::default());
            let patch = Patch::Merge(json!({ "status": status }));
            api.patch_status(&name, &parameters, &patch).await.unwrap();
        }
    }
}

/// A drain empties a cluster, the traffic first, and its end gives everything back. Case T21.
#[tokio::test(start_paused = true)]
async fn drain_is_taken_back() {
    let stage = Stage::new(20).await;
    let all = [
        workload("divided", 4, &weighted()),
        workload("everywhere", 2, &duplicated()),
    ];
    let before = stage.run(&all).await;
    assert_eq!(before.replicas["divided"]["m1"], 2);
    stage.api.calls();

    let answer = stage.drain("m1 --workloads --wait=1h").await.unwrap();
    assert_eq!(answer, Answer::Yes);
    let drained = stage.whole().await;
    assert_eq!(drained.blocked, json!(["m1"]));
    assert_eq!(drained.remedies, ["drain-m1"]);
    assert_eq!(drained.taints.len(), 2);
    for name in ["divided", "everywhere"] {
        assert!(!drained.replicas[name].contains_key("m1"), "{drained:?}");
    }
    assert_eq!(drained.replicas["divided"].values().sum::<i32>(), 4);
    let writes = stage.api.writes();
    let [first, second, noted @ .., last] = &*writes else {
        panic!("{writes:?}");
    };
    assert!(first.contains(CLUSTER) && last.contains(CLUSTER));
    assert!(second.contains("/remedies/drain-m1"), "{writes:?}");
    assert!(noted.iter().all(|write| write.contains(BINDINGS)));

    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::Yes);
    stage.is(|whole| *whole == before).await;
    // Once more is one time too many.
    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::No);
}

/// Of a cluster that is taken from the fleet once it is empty, neither the Remedy stays nor a note. Case T21.
#[tokio::test(start_paused = true)]
async fn gone_cluster_is_forgotten() {
    let stage = Stage::new(20).await;
    stage.run(&[workload("divided", 4, &weighted())]).await;
    let answer = stage.drain("m1 --workloads --wait=1h").await.unwrap();
    assert_eq!(answer, Answer::Yes);
    assert_eq!(stage.whole().await.annotations.len(), 1);
    stage.api.send("DELETE", CLUSTER, &Value::Null).await;
    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::Yes);
    let after = stage.whole().await;
    assert_eq!((after.annotations.len(), after.remedies.len()), (0, 0));
    let error = stage.uncordon("m1").await.unwrap_err().to_string();
    assert_eq!(error, "there is no cluster m1");
}

/// Of two who take a drain back at once, the second does not stop at the writes of the first. Case T21.
#[tokio::test(start_paused = true)]
async fn gone_remedy_stops_nothing() {
    let stage = Stage::new(20).await;
    assert_eq!(stage.drain("m1").await.unwrap(), Answer::Yes);
    let deletion = "DELETE /apis/remedy.karmada.io/v1alpha1/remedies/drain-m1";
    stage.api.refuse(deletion, 404, "NotFound", "gone");
    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::Yes);
    assert_eq!(stage.whole().await.taints, [""; 0]);
}

/// While the traffic does not leave, no workload has to. Case T21.
#[tokio::test(start_paused = true)]
async fn workloads_wait_for_traffic() {
    let stage = Stage::new(20).await;
    let mut ingress = stage.api.get(INGRESS).await;
    ingress["status"] = json!({ "serviceLocations": [{ "name": "web", "clusters": MEMBERS }] });
    stage
        .api
        .send("PATCH", &format!("{INGRESS}/status"), &ingress)
        .await;
    stage
        .run_scheduler(&[workload("divided", 4, &weighted())])
        .await;
    stage
        .is(|whole| !whole.replicas["divided"].is_empty())
        .await;
    let answer = stage.drain("m1 --workloads --wait=1m").await.unwrap();
    assert_eq!(answer, Answer::No);
    let after = stage.whole().await;
    assert_eq!(after.replicas["divided"]["m1"], 2);
    assert_eq!(after.taints, ["remedy.karmada-rs.io/drain:NoSchedule"]);
    assert_eq!(after.annotations, [""; 0]);
}

/// Has drains of new stages die, each one write later than the last, until one is whole, and takes back the writes of each:
/// the state that `observe` returns is as it was. Returns the number of writes of the whole one.
async fn dies_at_each_write<S: Debug + PartialEq>(
    start: impl AsyncFn() -> Stage,
    observe: impl AsyncFn(&Stage) -> S,
) -> usize {
    let mut allowed = 0;
    loop {
        let stage = start().await;
        let before = observe(&stage).await;
        stage.api.limit_writes(allowed);
        let is_whole = tokio::select! {
            answer = stage.drain("m1 --workloads --wait=1h") => answer.unwrap() == Answer::Yes,
            () = stage.api.hung() => false,
        };
        stage.api.limit_writes(usize::MAX);
        let was_drained = allowed > 0;
        let answer = stage.uncordon("m1").await.unwrap();
        assert_eq!(answer, was_drained.into(), "after {allowed} writes");
        let restored = async {
            while observe(&stage).await != before {
                sleep(Duration::from_millis(100)).await;
            }
        };
        let ended = timeout(Duration::from_mins(30), restored).await;
        let now = observe(&stage).await;
        assert!(ended.is_ok(), "after {allowed} writes: {now:?}");
        if is_whole {
            return allowed;
        }
        allowed += 1;
    }
}

/// A drain that dies before any of its writes is taken back. Case T22.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    let start = async || {
        let stage = Stage::new(20).await;
        stage.run(&[workload("divided", 4, &weighted())]).await;
        stage
    };
    let writes = dies_at_each_write(start, Stage::whole).await;
    // Two taints, a Remedy and a note.
    assert_eq!(writes, 4);
}

/// A cluster of workloads without room elsewhere is not drained, unless that is asked for, and nothing is written. Case T23.
#[tokio::test(start_paused = true)]
async fn lack_of_room_refuses() {
    let stage = Stage::new(2).await;
    let before = stage.run(&[workload("divided", 6, &by_room())]).await;
    stage.fill(2).await;
    let answer = stage.drain("m1 --workloads").await.unwrap();
    assert_eq!(answer, Answer::No);
    assert_eq!(stage.api.writes(), [""; 0]);
    assert_eq!(stage.whole().await, before);
    // The traffic alone needs no room.
    assert_eq!(stage.drain("m1").await.unwrap(), Answer::Yes);
    let taints = stage.whole().await.taints;
    assert_eq!(taints, ["remedy.karmada-rs.io/drain:NoSchedule"]);
    let forced = stage.drain("m1 --workloads --force").await.unwrap();
    assert_eq!(forced, Answer::Yes);
    assert_eq!(stage.whole().await.taints.len(), 2);
}

/// Of two who drain two clusters at once, of which the fleet can do without one, not both succeed, and who does not has
/// written nothing that stays. Case T23.
#[tokio::test(start_paused = true)]
async fn rivals_do_not_both_drain() {
    let stage = Stage::new(4).await;
    stage.run(&[workload("divided", 6, &by_room())]).await;
    stage.fill(2).await;
    let (one, other) = tokio::join!(stage.drain("m1 --workloads"), stage.drain("m2 --workloads"));
    let succeeded = [one.unwrap(), other.unwrap()].map(|answer| answer == Answer::Yes);
    let drained: Vec<String> = ["m1", "m2"]
        .iter()
        .zip(succeeded)
        .filter(|(_, succeeded)| *succeeded)
        .map(|(name, _)| format!("drain-{name}"))
        .collect();
    assert!(drained.len() < 2);
    let after = stage.whole().await;
    assert_eq!(after.remedies, drained);
    assert_eq!(after.taints.len(), 2 * drained.len());
}

/// A dry run writes nothing, and neither does a wrong name or a Remedy of somebody else's.
#[tokio::test(start_paused = true)]
async fn nothing_is_written() {
    let stage = Stage::new(20).await;
    let before = stage.run(&[workload("divided", 4, &weighted())]).await;
    let dry = stage.drain("m1 --workloads --dry-run=client").await;
    assert_eq!(dry.unwrap(), Answer::Yes);
    for wrong in ["nowhere", "m1/status"] {
        let error = stage.drain(wrong).await.unwrap_err().to_string();
        assert_eq!(error, format!("there is no cluster {wrong}"));
        let error = stage.uncordon(wrong).await.unwrap_err().to_string();
        assert_eq!(error, format!("there is no cluster {wrong}"));
    }
    assert_eq!(stage.whole().await, before);

    let others = json!({ "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": { "name": "drain-m1" }, "spec": { "actions": [] } });
    stage.api.create(&others).await;
    let error = stage.drain("m1").await.unwrap_err().to_string();
    assert!(error.contains("drain-m1 exists and is not of"), "{error}");
    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::No);
    assert_eq!(stage.whole().await.remedies, ["drain-m1"]);
    assert_eq!(stage.api.writes(), [""; 0]);
}
