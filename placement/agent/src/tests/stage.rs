//! The program, its hub, and the member in which it runs.

use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::ApiServer;
use fleet_api::definitions;
use jiff::{SignedDuration, Timestamp};
use karmada_runtime::program::Program;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::{Args, IDENTITY, NAME, assemble};

pub(super) const CLUSTER: &str = "kind-cluster-1";
pub(super) const NAMESPACE: &str = "fleet-member-kind-cluster-1";
pub(super) const WORKS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-kind-cluster-1/works";
pub(super) const WORK: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-kind-cluster-1/works/crp-all-work";
pub(super) const CHANNELS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-kind-cluster-1/internalmemberclusters";
pub(super) const CHANNEL: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-kind-cluster-1/internalmemberclusters/kind-cluster-1";
pub(super) const OWNERS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks";
pub(super) const OWNER: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks/crp-all-work";
pub(super) const PLACED: &str = "/api/v1/namespaces/application-1";
pub(super) const MAPS: &str = "/api/v1/namespaces/application-1/configmaps";
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
        serde_json::from_str::<Value>(text).unwrap()
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

/// The program, its hub, and its member.
pub(super) struct Stage {
    pub(super) hub: TestApi,
    pub(super) member: TestApi,
    running: Option<JoinHandle<bool>>,
}

impl Stage {
    /// Starts a hub that has the cluster, and a member, without the program.
    pub(super) async fn new() -> Self {
        /// A server with the kinds of a fleet, which take long to install.
        static PREPARED: LazyLock<ApiServer> =
            LazyLock::new(|| TestApi::with_kinds(definitions()).server);
        let [hub, member] = [(); 2].map(|()| TestApi::of(PREPARED.fork_at(clock())));
        hub.create_namespace(NAMESPACE).await;
        let stage = Self {
            hub,
            member,
            running: None,
        };
        stage.hub.send("POST", CHANNELS, &channel("Join")).await;
        stage
    }

    /// Starts all three, and waits until the cluster has joined.
    pub(super) async fn joined() -> Self {
        let mut stage = Self::new().await;
        stage.start(&[]).await;
        stage.written();
        stage
    }

    /// Starts all three, with a namespace and a map placed in the member.
    pub(super) async fn placed() -> Self {
        let stage = Self::joined().await;
        stage
            .hub
            .send("POST", WORKS, &work(&[namespace(), map()]))
            .await;
        stage.settle().await;
        stage.written();
        stage
    }

    /// Starts all three, with a member that has the namespace and this map in it.
    pub(super) async fn with_map(map: &Value) -> Self {
        let stage = Self::joined().await;
        stage.member.create_namespace("application-1").await;
        stage.member.send("POST", MAPS, map).await;
        stage
    }

    /// Creates the Work of the map alone, or gives it another strategy.
    pub(super) async fn apply_map(&self, strategy: Value) {
        let mut new = work(&[map()]);
        new["spec"]["applyStrategy"] = strategy;
        if self.hub.find(WORK).await.is_none() {
            self.hub.send("POST", WORKS, &new).await;
        } else {
            self.strategy(new["spec"]["applyStrategy"].take()).await;
        }
        self.settle().await;
    }

    /// Gives the Work another strategy.
    pub(super) async fn strategy(&self, mut strategy: Value) {
        // Fields that are not named go.
        for field in ["type", "comparisonOption", "whenToApply", "whenToTakeOver"] {
            if strategy.get(field).is_none() {
                strategy[field] = Value::Null;
            }
        }
        let patch = json!({ "spec": { "applyStrategy": strategy } });
        self.hub.send("PATCH", WORK, &patch).await;
        self.settle().await;
    }

    /// Changes the map in the member, or deletes it.
    pub(super) async fn disturb(&self, method: &str, change: &Value) {
        self.member.send(method, MAP, change).await;
        self.settle().await;
    }

    /// Checks that for an hour nothing is asked of the member, and nothing is written.
    pub(super) async fn rests(&self) {
        self.written();
        self.asked();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(self.written(), [""; 0]);
        assert_eq!(self.asked(), [""; 0]);
    }

    /// Returns the requests of the program to the member since the last call, watches and heartbeats aside.
    pub(super) fn asked(&self) -> Vec<String> {
        let mut calls = self.member.calls();
        let watched = ["configmaps", "namespaces", "appliedworks", "nodes", "pods"];
        calls.retain(|call| {
            let kind = call.rsplit('/').next().unwrap();
            let is_watch = watched.contains(&kind) || kind == "readyz";
            !(is_watch && call.starts_with("GET "))
        });
        calls
    }

    /// Returns the differences that the Work tells of the last of its manifests, as `drift` or `diff`: each with its values
    /// in the member and on the hub.
    pub(super) async fn differences(&self, what: &str) -> Vec<[String; 3]> {
        let work = self.hub.get(WORK).await;
        let manifests = work["status"]["manifestConditions"].as_array().unwrap();
        let details = &manifests.last().unwrap()[format!("{what}Details")];
        let list = match what {
            "drift" => &details["observedDrifts"],
            _ => &details["observedDiffs"],
        };
        let list = list.as_array().into_iter().flatten();
        let told = list.map(|one| {
            ["path", "valueInMember", "valueInHub"]
                .map(|field| one[field].as_str().unwrap_or_default().to_owned())
        });
        told.collect()
    }

    /// Starts the program and waits until it has nothing to do.
    pub(super) async fn start(&mut self, flags: &[&str]) {
        let name = format!("--cluster-name={CLUSTER}");
        let mut flags = [&[NAME, "--leader-elect=false", &name], flags].concat();
        // Who asks for nothing else tells of no namespace, which would be a heartbeat more.
        let mut given = flags.iter();
        if !given.any(|flag| flag.starts_with("--collect-namespaces")) {
            flags.push("--collect-namespaces=false");
        }
        let args = Args::try_parse_from(flags).unwrap();
        let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
        program.clock = clock;
        assemble(&args, self.hub.client(), self.member.client(), &mut program);
        let never = async || std::future::pending().await;
        self.running = Some(tokio::spawn(program.run_until(never)));
        self.settle().await;
    }

    pub(super) async fn kill(&mut self) {
        let running = self.running.take().unwrap();
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    }

    pub(super) async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(8)).await;
    }

    /// Returns the writes of the program since the last call, heartbeats aside: to the hub, then to the member.
    pub(super) fn written(&self) -> Vec<String> {
        let mut writes = self.hub.writes();
        writes.extend(self.member.writes());
        writes.retain(|call| !call.contains("/internalmemberclusters/"));
        writes
    }

    /// Gives the Work other manifests.
    pub(super) async fn place(&self, manifests: &[Value]) {
        let patch = json!({ "spec": { "workload": { "manifests": manifests } } });
        self.hub.send("PATCH", WORK, &patch).await;
        self.settle().await;
    }

    /// Returns the status and the reason of each condition of the Work, and those of each manifest.
    pub(super) async fn says(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let status = self.hub.get(WORK).await["status"].clone();
        let manifests = status["manifestConditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        (
            conditions(&status),
            manifests.iter().map(conditions).collect(),
        )
    }
}

fn conditions(value: &Value) -> Vec<String> {
    let conditions = value["conditions"].as_array().cloned().unwrap_or_default();
    let conditions = conditions.iter().map(|one| {
        let said = ["type", "status", "reason"].map(|field| one[field].as_str().unwrap());
        said.join(" ")
    });
    conditions.collect()
}

pub(super) fn channel(state: &str) -> Value {
    json!({ "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "InternalMemberCluster",
        "metadata": { "name": CLUSTER, "namespace": NAMESPACE },
        "spec": { "state": state, "heartbeatPeriodSeconds": 60 } })
}

pub(super) fn work(manifests: &[Value]) -> Value {
    json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "Work",
        "metadata": { "name": "crp-all-work", "namespace": NAMESPACE,
            "labels": { "kubernetes-fleet.io/parent-CRP": "crp-all" } },
        "spec": { "workload": { "manifests": manifests } } })
}

pub(super) fn namespace() -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "application-1" } })
}

pub(super) fn map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "app-config-1", "namespace": "application-1" },
        "data": { "key": "value" } })
}
