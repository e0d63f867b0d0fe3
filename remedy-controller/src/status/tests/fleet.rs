//! An API with three clusters, and the program.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::ApiServer;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use karmada_api::condition::DNS_READY;
use karmada_api::{Cluster, Remedy, RemedyStatus};
use karmada_runtime::metrics::Registry;
use karmada_runtime::program::Program;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, from_value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The time at which a test begins.
const BEGINNING: &str = "2026-11-20T08:00:00Z";
/// Longer than everything but an expiry takes.
pub(super) const SETTLED: Duration = Duration::from_secs(20);

thread_local! {
    static START: OnceCell<Instant> = const { OnceCell::new() };
}

/// A clock that advances with tokio's.
pub(super) fn clock() -> Timestamp {
    let start = START.with(|start| *start.get_or_init(Instant::now));
    let elapsed = SignedDuration::try_from(start.elapsed()).unwrap();
    BEGINNING.parse::<Timestamp>().unwrap() + elapsed
}

/// Returns the definition of Remedy, with its status or as Karmada's own.
pub(super) fn definition(with_status: bool) -> Value {
    let mut remedies = karmada_api::crd::installed().unwrap().remove(0);
    let version = &mut remedies["spec"]["versions"][0];
    let schema = &mut version["schema"]["openAPIV3Schema"]["properties"];
    if !with_status {
        schema.as_object_mut().unwrap().remove("status");
        version.as_object_mut().unwrap().remove("subresources");
    }
    // Karmada's own has no rules either.
    remove_rules(&mut remedies);
    remedies
}

fn remove_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(remove_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rules),
        _ => {}
    }
}

/// An API with three clusters, and the program.
pub(super) struct Fleet {
    pub(super) server: ApiServer,
    pub(super) running: Option<JoinHandle<bool>>,
    metrics: Option<Registry>,
}

impl Fleet {
    pub(super) async fn start(with_status: bool, flags: &[&str]) -> Self {
        clock();
        let server = ApiServer::starting_at(clock());
        for definition in karmada_api::crd::stand_ins().unwrap() {
            server.install(&definition).unwrap();
        }
        server.install(&definition(with_status)).unwrap();
        let mut fleet = Self {
            server,
            running: None,
            metrics: None,
        };
        for name in ["m1", "m2", "m3"] {
            let cluster = from_value(json!({ "metadata": { "name": name }, "spec": {} })).unwrap();
            let (clusters, parameters) = (fleet.clusters(), PostParams::default());
            clusters.create(&parameters, &cluster).await.unwrap();
            fleet.dns(name, "True").await;
        }
        fleet.run(flags);
        sleep(SETTLED).await;
        fleet
    }

    /// Starts the program, in place of the one that runs.
    pub(super) fn run(&mut self, flags: &[&str]) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
        let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        program.clock = clock;
        let own = [crate::identity::NAME, "--leader-elect=false"];
        let args = crate::Args::try_parse_from(own.iter().chain(flags)).unwrap();
        crate::assemble(&args, self.client(), &mut program);
        self.metrics = Some(std::mem::take(&mut program.registry));
        let running = program.run_until(async || std::future::pending().await);
        self.running = Some(tokio::spawn(running));
    }

    pub(super) fn client(&self) -> Client {
        Client::new(self.server.service(), "default")
    }

    pub(super) fn clusters(&self) -> Api<Cluster> {
        Api::all(self.client())
    }

    pub(super) fn remedies(&self) -> Api<Remedy> {
        Api::all(self.client())
    }

    pub(super) async fn dns(&self, cluster: &str, status: &str) {
        let condition = json!({ "type": DNS_READY, "status": status, "reason": "R",
            "message": "", "lastTransitionTime": BEGINNING });
        let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
        let patched = self
            .clusters()
            .patch_status(cluster, &PatchParams::default(), &patch)
            .await;
        patched.unwrap();
    }

    pub(super) async fn create(&self, name: &str, spec: Value, annotations: &[(&str, &str)]) {
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        let remedy = from_value(json!({
            "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
            "metadata": { "name": name, "annotations": annotations }, "spec": spec,
        }));
        let created = self
            .remedies()
            .create(&PostParams::default(), &remedy.unwrap())
            .await;
        created.unwrap();
    }

    /// Returns the names of the clusters with an action.
    pub(super) async fn blocked(&self) -> Vec<String> {
        let all = self.clusters().list(&ListParams::default()).await.unwrap();
        let blocked = all
            .iter()
            .filter(|cluster| !cluster.remedy_actions().is_empty());
        blocked.map(ResourceExt::name_any).collect()
    }

    pub(super) async fn status(&self, remedy: &str) -> RemedyStatus {
        let remedy = self.remedies().get(remedy).await.unwrap();
        remedy.status.unwrap_or_default()
    }

    /// Returns status and reason of a condition of a Remedy.
    pub(super) async fn condition(&self, remedy: &str, kind: &str) -> (String, String) {
        let status = self.status(remedy).await;
        let mut conditions = status.conditions.into_iter().flatten();
        let found = conditions
            .find(|condition| condition.type_ == kind)
            .unwrap();
        (found.status, found.reason)
    }

    /// Returns how often an Event was recorded about an object.
    pub(super) async fn events(&self, name: &str, reason: &str) -> i32 {
        let api: Api<Event> = Api::all(self.client());
        let all = api.list(&ListParams::default()).await.unwrap();
        let about = all.iter().filter(|event| {
            let regarding = event
                .regarding
                .as_ref()
                .and_then(|about| about.name.as_deref());
            regarding == Some(name) && event.reason.as_deref() == Some(reason)
        });
        about
            .map(|event| event.series.as_ref().map_or(1, |series| series.count))
            .sum()
    }

    /// Returns the value of a metric.
    pub(super) fn metric(&self, series: &str) -> u64 {
        let text = self.metrics.as_ref().unwrap().encode().unwrap();
        let series = format!("karmada_remedy_controller_{series} ");
        let line = text.lines().find(|line| line.starts_with(&series));
        let line = line.unwrap_or_else(|| panic!("{series}\n{text}"));
        line[series.len()..].parse().unwrap()
    }

    pub(super) async fn version(&self, remedy: &str) -> Option<String> {
        self.remedies()
            .get(remedy)
            .await
            .unwrap()
            .resource_version()
    }
}
