//! The program, its hub, and the member in which it runs.

use std::time::Duration;

use clap::Parser;
use embedded_apiserver::ApiServer;
use jiff::{SignedDuration, Timestamp};
use karmada_api::fleet::definitions;
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
        let [hub, member] = [(), ()].map(|()| {
            let api = TestApi::of(ApiServer::starting_at(clock()));
            api.install(definitions());
            api
        });
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

    /// Starts the program and waits until it has nothing to do.
    pub(super) async fn start(&mut self, flags: &[&str]) {
        let name = format!("--cluster-name={CLUSTER}");
        let flags = [&[NAME, "--leader-elect=false", &name], flags].concat();
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

    /// Returns what the program has written since the last call, heartbeats aside: to the hub, then to the member.
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
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    let conditions = conditions.iter().map(|one| {
        let (kind, status, reason) = (text(one, "type"), text(one, "status"), text(one, "reason"));
        format!("{kind} {status} {reason}")
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
