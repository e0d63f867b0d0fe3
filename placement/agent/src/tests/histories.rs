//! Random histories of a whole fleet: both programs, a hub and its members, with users, drift, deaths and faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::{ApiServer, Fault, Verb};
use fastrand::Rng;
use karmada_api::fleet::definitions;
use karmada_runtime::program::Program;
use lab_parts::test_api::TestApi;
use objects::Metadata;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::stage::clock;
use crate::{Args, IDENTITY, NAME, assemble};

const MEMBERS: [&str; 3] = ["m0", "m1", "m2"];
const APPS: [&str; 2] = ["app-0", "app-1"];
const CLUSTERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
const PLACEMENTS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements";

/// The steps of a history.
const STEPS: usize = 25;
/// The histories of one run.
const HISTORIES: u64 = 40;

/// A fleet, and what its users have asked for.
struct Fleet {
    chance: Rng,
    hub: TestApi,
    members: Vec<TestApi>,
    controller: JoinHandle<bool>,
    agents: Vec<JoinHandle<bool>>,
    /// The maps of each namespace on the hub, with their values.
    maps: BTreeMap<String, String>,
    /// The clusters of each placement; `None` for all of them.
    placements: BTreeMap<&'static str, Option<BTreeSet<usize>>>,
}

impl Fleet {
    async fn start(seed: u64) -> Self {
        let api = || {
            let api = TestApi::of(ApiServer::starting_at(clock()));
            api.install(definitions());
            api
        };
        let (hub, members) = (
            api(),
            MEMBERS.map(|_| api()).into_iter().collect::<Vec<_>>(),
        );
        for app in APPS {
            hub.create_namespace(app).await;
        }
        for name in MEMBERS {
            hub.send("POST", CLUSTERS, &cluster(name)).await;
        }
        let controller = run_controller(&hub);
        let agents = MEMBERS.iter().zip(&members);
        let agents = agents
            .map(|(name, member)| run_agent(name, &hub, member))
            .collect();
        let fleet = Self {
            chance: Rng::with_seed(seed),
            hub,
            members,
            controller,
            agents,
            maps: BTreeMap::new(),
            placements: BTreeMap::new(),
        };
        sleep(Duration::from_secs(30)).await;
        fleet
    }

    async fn step(&mut self) {
        match self.chance.u8(..12) {
            0..=2 => self.edit_map().await,
            3 => self.delete_map().await,
            4..=5 => self.place().await,
            6 => self.end_placement().await,
            7 => self.drift().await,
            8 => {
                self.controller.abort();
                self.controller = run_controller(&self.hub);
            }
            9 => {
                let one = self.member();
                self.agents[one].abort();
                self.agents[one] = run_agent(MEMBERS[one], &self.hub, &self.members[one]);
            }
            10 => self.fault(),
            _ => sleep(Duration::from_secs(self.chance.u64(1..90))).await,
        }
        // Mostly in the middle of what the last step has set going.
        sleep(Duration::from_millis(self.chance.u64(..3_000))).await;
    }

    fn member(&mut self) -> usize {
        self.chance.usize(..MEMBERS.len())
    }

    fn map(&mut self) -> (&'static str, String) {
        let app = APPS[self.chance.usize(..APPS.len())];
        (
            app,
            format!(
                "/api/v1/namespaces/{app}/configmaps/map-{}",
                self.chance.u8(..3)
            ),
        )
    }

    async fn edit_map(&mut self) {
        let ((app, path), value) = (self.map(), self.chance.u32(..).to_string());
        let name = path.rsplit('/').next().unwrap();
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": app }, "data": { "key": value } });
        if self.maps.insert(path.clone(), value).is_some() {
            self.user("PATCH", &path, &json!({ "data": map["data"] }))
                .await;
        } else {
            let all = format!("/api/v1/namespaces/{app}/configmaps");
            self.user("POST", &all, &map).await;
        }
    }

    async fn delete_map(&mut self) {
        let (_, path) = self.map();
        if self.maps.remove(&path).is_some() {
            self.user("DELETE", &path, &json!({})).await;
        }
    }

    /// Creates the placement of one namespace, or gives it other clusters if it names them.
    async fn place(&mut self) {
        let app = APPS[self.chance.usize(..APPS.len())];
        let some: BTreeSet<_> = (0..MEMBERS.len()).filter(|_| self.chance.bool()).collect();
        let names: Vec<_> = some.iter().map(|one| MEMBERS[*one]).collect();
        let path = format!("{PLACEMENTS}/{app}");
        if self.exists(&path).await {
            // One that is being deleted, or picks all, stays as it is.
            if !names.is_empty() && matches!(self.placements.get(app), Some(Some(_))) {
                let change = json!({ "spec": { "policy": { "clusterNames": names } } });
                self.user("PATCH", &path, &change).await;
                self.placements.insert(app, Some(some));
            }
            return;
        }
        let (policy, clusters) = if names.is_empty() {
            (json!({ "placementType": "PickAll" }), None)
        } else {
            (
                json!({ "placementType": "PickFixed", "clusterNames": names }),
                Some(some),
            )
        };
        let placement = json!({
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourcePlacement",
            "metadata": { "name": app },
            "spec": {
                "resourceSelectors": [{ "group": "", "version": "v1", "kind": "Namespace", "name": app }],
                "policy": policy,
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "unavailablePeriodSeconds": 1 } },
            },
        });
        self.user("POST", PLACEMENTS, &placement).await;
        self.placements.insert(app, clusters);
    }

    async fn end_placement(&mut self) {
        let app = APPS[self.chance.usize(..APPS.len())];
        if self.placements.remove(app).is_some() {
            self.user("DELETE", &format!("{PLACEMENTS}/{app}"), &json!({}))
                .await;
        }
    }

    /// Changes or deletes in a member what was placed there.
    async fn drift(&mut self) {
        let (one, (_, path)) = (self.member(), self.map());
        let is_edit = self.chance.bool();
        let member = &self.members[one];
        let change = json!({ "data": { "key": "drifted" } });
        let method = if is_edit { "PATCH" } else { "DELETE" };
        drop(member.try_send(method, &path, &change).await);
    }

    /// Lets requests of the programs fail for some seconds.
    fn fault(&mut self) {
        let fault = match self.chance.u8(..5) {
            0 => Fault::InternalError.into(),
            1 => Fault::LoseResponse.every(3),
            2 => Fault::Conflict.verbs([Verb::Patch]).every(2),
            3 => Fault::Disconnect.into(),
            _ => Fault::ExpireWatch.every(2),
        };
        let time = Duration::from_secs(self.chance.u64(1..20));
        let apis: Vec<_> = self.members.iter().chain([&self.hub]).collect();
        let api = apis[self.chance.usize(..apis.len())];
        api.server.faults().inject(fault.lasting(time));
    }

    async fn exists(&self, path: &str) -> bool {
        loop {
            match self.hub.try_send("GET", path, &Value::Null).await {
                Ok(_) => return true,
                Err(kube::Error::Api(status)) if status.code == 404 => return false,
                Err(_) => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Sends a request of a user, who tries until it has gone through.
    async fn user(&self, method: &str, path: &str, body: &Value) {
        while let Err(error) = self.hub.try_send(method, path, body).await {
            // What a lost answer has stored already.
            let is_done = |reason: &str| ["AlreadyExists", "NotFound"].contains(&reason);
            if matches!(&error, kube::Error::Api(status) if is_done(&status.reason)) {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Compares every member with what its users have asked for.
    async fn compare(&self, seed: u64) {
        for (one, member) in self.members.iter().enumerate() {
            for app in APPS {
                let placed = self.placements.get(app).is_some_and(|clusters| {
                    clusters
                        .as_ref()
                        .is_none_or(|clusters| clusters.contains(&one))
                });
                let all = format!("/api/v1/namespaces/{app}/configmaps");
                let list = member.get(&all).await;
                let there = list["items"].as_array().unwrap().iter().map(|map| {
                    let path = format!("{all}/{}", map.name());
                    (
                        path,
                        map["data"]["key"].as_str().unwrap_or_default().to_owned(),
                    )
                });
                let there: BTreeMap<_, _> = there.collect();
                let wanted = self
                    .maps
                    .iter()
                    .filter(|(path, _)| placed && path.starts_with(&all));
                let wanted = wanted
                    .map(|(path, value)| (path.clone(), value.clone()))
                    .collect();
                assert_eq!(there, wanted, "seed {seed}, {app} in {}", MEMBERS[one]);
            }
        }
        for app in APPS {
            let placement = self.hub.find(&format!("{PLACEMENTS}/{app}")).await;
            assert_eq!(
                placement.is_some(),
                self.placements.contains_key(app),
                "seed {seed}"
            );
            let Some(placement) = placement else { continue };
            let conditions = placement["status"]["conditions"].as_array().unwrap();
            let is_true = |one: &Value| one["status"] == "True";
            assert!(conditions.iter().all(is_true), "seed {seed}: {placement:#}");
        }
    }
}

fn cluster(name: &str) -> Value {
    json!({ "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": { "name": name },
        "spec": { "identity": { "kind": "ServiceAccount", "name": "agent", "namespace": "fleet-system" } } })
}

fn run_controller(hub: &TestApi) -> JoinHandle<bool> {
    let flags = [placement_controller::NAME, "--leader-elect=false"];
    let args = placement_controller::Args::try_parse_from(flags).unwrap();
    let mut program = Program::new(placement_controller::IDENTITY, ([127, 0, 0, 1], 0).into());
    program.clock = clock;
    placement_controller::assemble(&args, hub.client(), &mut program);
    tokio::spawn(program.run_until(async || std::future::pending().await))
}

fn run_agent(name: &str, hub: &TestApi, member: &TestApi) -> JoinHandle<bool> {
    let name = format!("--cluster-name={name}");
    let args = Args::try_parse_from([NAME, "--leader-elect=false", &name]).unwrap();
    let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
    program.clock = clock;
    assemble(&args, hub.client(), member.client(), &mut program);
    tokio::spawn(program.run_until(async || std::future::pending().await))
}

/// Whatever happened, once all is quiet the members hold what users asked for, the placements say so, and nothing but
/// heartbeats is written.
#[tokio::test(start_paused = true)]
async fn random_histories_settle() {
    for seed in 0..HISTORIES {
        let mut fleet = Fleet::start(seed).await;
        for _ in 0..STEPS {
            fleet.step().await;
        }
        sleep(Duration::from_mins(15)).await;
        fleet.compare(seed).await;
        let apis = || fleet.members.iter().chain([&fleet.hub]);
        apis().for_each(|api| drop(api.writes()));
        sleep(Duration::from_mins(10)).await;
        let mut writes: Vec<_> = apis().flat_map(TestApi::writes).collect();
        writes.retain(|call| !call.contains("memberclusters/"));
        assert_eq!(writes, [""; 0], "seed {seed}");
        fleet.controller.abort();
        fleet.agents.iter().for_each(JoinHandle::abort);
    }
}
