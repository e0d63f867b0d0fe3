use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::{ApiServer, Fault, Verb};
use http::HeaderMap;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::work::{APPLIED, DISPATCHING};
use karmada_api::{ClusterView, Condition, Work};
use karmada_runtime::program::Program;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use lab_parts::connect_proxy::{Answer, ConnectProxy};
use lab_parts::port::CLOSED;
use lab_parts::served::ServedApi;
use lab_parts::test_api::{TestApi, until};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;

mod endpoints;
mod imports;
mod metrics;
mod pull;
mod rivals;
mod scripts;
mod thirdparty;
mod webhooks;
mod withheld;

/// A Karmada API, and members that are reached over sockets.
struct Stage {
    api: TestApi,
}

/// Serves the API of a member with the namespace `shop` to requests with headers that `admit` lets pass.
async fn member(admit: fn(&HeaderMap) -> bool) -> ServedApi {
    let member = TestApi::of(ApiServer::starting_at(Timestamp::now()));
    member.create_namespace("shop").await;
    ServedApi::start(member.server, admit)
}

/// Connects the program to an API.
fn client(api: &TestApi) -> Client {
    let config = kube::Config::new("http://api".parse().unwrap());
    karmada_runtime::client::with_service(api.service(), config, NAME).unwrap()
}

/// Returns the `ConfigMap`s in a member's namespace `shop`.
fn maps(member: &ServedApi) -> Api<ConfigMap> {
    Api::namespaced(Client::new(member.server.service(), "default"), "shop")
}

async fn map(member: &ServedApi, name: &str) -> Option<ConfigMap> {
    maps(member).get_opt(name).await.unwrap()
}

/// Returns the metrics of a program.
fn metrics(program: &Program) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &program.registry).unwrap();
    text
}

/// Returns the number of panics that a program has counted. Other tests in its process may count, too.
fn panics(program: &Program) -> u64 {
    let metrics = metrics(program);
    let mut samples = metrics.lines().filter(|line| !line.starts_with('#'));
    let counted = samples.find_map(|line| line.split_once("panics_total "));
    counted.unwrap().1.parse().unwrap()
}

/// Waits until the metrics of a program have this text.
async fn counts(program: &Program, wanted: &str) {
    let counted = async {
        while !metrics(program).contains(wanted) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), counted)
        .await
        .unwrap_or_else(|_| panic!("no {wanted} in {}", metrics(program)));
}

impl Stage {
    async fn new() -> Self {
        let api = TestApi::of(ApiServer::starting_at(Timestamp::now()));
        api.install(karmada_api::crd::fleet().unwrap());
        api.create_namespace("karmada-cluster").await;
        Self { api }
    }

    /// Joins a member with a token.
    async fn join(&self, name: &str, address: SocketAddr) {
        self.api
            .create_namespace(&format!("karmada-es-{name}"))
            .await;
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name, "namespace": "karmada-cluster",
                "annotations": { "karmada-rs.io/insecure": "true" } },
            "data": { "token": "c2VjcmV0" } });
        self.api.create(&secret).await;
        let cluster = json!({ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name, "finalizers": ["karmada.io/cluster-controller"] },
            "spec": { "syncMode": "Push", "apiEndpoint": format!("http://{address}"),
                "secretRef": { "namespace": "karmada-cluster", "name": name } } });
        self.api.create(&cluster).await;
    }

    /// Creates a Work with a `ConfigMap` of the same name.
    async fn dispatch(&self, cluster: &str, name: &str, spec: Value) {
        let namespace = format!("karmada-es-{cluster}");
        let mut work = json!({ "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": { "name": name, "namespace": namespace,
                "finalizers": ["karmada.io/execution-controller"] },
            "spec": { "workload": { "manifests": [{
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": "shop",
                    "labels": { "karmada.io/managed": "true" },
                    "annotations": { "work.karmada.io/namespace": namespace,
                        "work.karmada.io/name": name } },
                "data": { "greeting": "hello" },
            }] } } });
        for (field, value) in spec.as_object().unwrap() {
            work["spec"][field] = value.clone();
        }
        self.api.create(&work).await;
    }

    fn works(&self, cluster: &str) -> Api<Work> {
        Api::namespaced(self.api.user(), &format!("karmada-es-{cluster}"))
    }

    fn clusters(&self) -> Api<ClusterView> {
        Api::all(self.api.user())
    }

    /// Waits for a status of a condition, and returns the condition.
    async fn condition(&self, cluster: &str, name: &str, kind: &str, status: &str) -> Condition {
        let work = until(self.works(cluster), name, |work| {
            let condition = work.and_then(|work| work.condition(kind));
            condition.is_some_and(|condition| condition.status == status)
        });
        work.await.unwrap().condition(kind).unwrap().clone()
    }

    async fn gone(&self, cluster: &str, name: &str) {
        until(self.works(cluster), name, |work| work.is_none()).await;
    }

    async fn patch(&self, cluster: &str, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.works(cluster)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Suspends a Work as soon as the member has its `ConfigMap`.
    async fn pause_once_applied(&self, member: &ServedApi, name: &str) {
        until(maps(member), name, |map| map.is_some()).await;
        let suspended = json!({ "spec": { "suspendDispatching": true } });
        self.patch("m1", name, suspended).await;
    }

    fn start(&self, flags: &[&str]) -> Program {
        self.start_by(flags, |connect| connect)
    }

    /// Starts the program with another way to its members.
    fn start_by(&self, flags: &[&str], way: impl FnOnce(Connect) -> Connect) -> Program {
        let flags = [&[NAME, "--leader-elect=false"], flags].concat();
        let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
        let client = client(&self.api);
        let connect = way(members::over_network(program.addresses.clone(), NAME));
        assemble(&Args::parse_from(flags), client, connect, &mut program);
        program
    }
}

/// A fault of the program at one member is shown on its Works and counted. It ends nothing for the others, and a
/// retry is as ever.
#[tokio::test]
async fn fault_stays_with_its_member() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    for (name, address) in [("bad", CLOSED), ("m1", member.address())] {
        stage.join(name, address).await;
        stage.dispatch(name, "a", json!({})).await;
    }
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&is_mended);
    let program = stage.start_by(&[], |connect| {
        Box::new(move |access, secret| {
            let is_well = access.endpoint() != format!("http://{CLOSED}") || mended.load(Relaxed);
            assert!(is_well, "deliberate");
            connect(access, secret)
        })
    });
    // Nothing of it has run yet.
    let before = panics(&program);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let failed = stage.condition("bad", "a", APPLIED, FALSE).await;
    assert!(failed.message.contains("a panic"), "{}", failed.message);
    assert!(panics(&program) > before);
    is_mended.store(true, Relaxed);
    let unreachable = until(stage.works("bad"), "a", |work| {
        let applied = work.and_then(|work| work.condition(APPLIED));
        applied.is_some_and(|applied| !applied.message.contains("a panic"))
    });
    unreachable.await;
}

/// A Work is applied and reported, paused, resumed, and deleted with its object, paused or not; one that
/// is paused from the start is applied with the resume (Cases P21 and P22).
#[tokio::test]
async fn work_lives_and_goes() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    let applied = stage.condition("m1", "a", APPLIED, TRUE).await;
    assert_eq!(applied.observed_generation, Some(1));
    assert_eq!(applied.reason, "AppliedSuccessful");
    let work = stage.works("m1").get("a").await.unwrap();
    let statuses = work.status.unwrap().manifest_statuses;
    assert_eq!(statuses[0].health.as_deref(), Some("Healthy"));
    assert!(map(&member, "a").await.is_some());

    stage
        .dispatch("m1", "b", json!({ "suspendDispatching": true }))
        .await;
    let paused = stage.condition("m1", "b", DISPATCHING, FALSE).await;
    assert_eq!(paused.reason, "SuspendDispatching");
    assert!(map(&member, "b").await.is_none());
    assert!(
        stage
            .works("m1")
            .get("b")
            .await
            .unwrap()
            .condition(APPLIED)
            .is_none()
    );
    stage
        .patch(
            "m1",
            "b",
            json!({ "spec": { "suspendDispatching": false } }),
        )
        .await;
    stage.condition("m1", "b", APPLIED, TRUE).await;
    assert!(map(&member, "b").await.is_some());

    stage
        .patch("m1", "b", json!({ "spec": { "suspendDispatching": true } }))
        .await;
    stage.condition("m1", "b", DISPATCHING, FALSE).await;
    for name in ["a", "b"] {
        stage
            .works("m1")
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        stage.gone("m1", name).await;
        assert!(map(&member, name).await.is_none());
    }
}

/// A suspension that overtakes the report of an application does not hide it.
#[tokio::test]
async fn suspension_keeps_late_report() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    let late = Fault::Slow(Duration::from_secs(1)).verbs([Verb::Patch]);
    stage.api.server.faults().inject(late.client(NAME).times(1));
    let _program = stage.start(&[]);
    stage.pause_once_applied(&member, "a").await;
    stage.condition("m1", "a", DISPATCHING, FALSE).await;
    stage.condition("m1", "a", APPLIED, TRUE).await;
}

/// An application is reported although the Work was paused before any report got through.
#[tokio::test]
async fn suspension_recovers_lost_report() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    let refused = Fault::InternalError.verbs([Verb::Patch]).kind("works");
    stage.api.server.faults().inject(refused.client(NAME));
    let _program = stage.start(&[]);
    stage.pause_once_applied(&member, "a").await;
    stage.api.server.faults().clear();
    stage.condition("m1", "a", DISPATCHING, FALSE).await;
    let applied = stage.condition("m1", "a", APPLIED, TRUE).await;
    assert_eq!(applied.observed_generation, Some(2));
}

/// A failure that the watch has not shown yet when it ends does not stay in the status.
#[tokio::test]
async fn ended_failure_leaves_status() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let (by, coalesce) = (Duration::from_secs(5), false);
    let late = Fault::DelayEvents { by, coalesce };
    stage.api.server.faults().inject(late.kind("works"));
    let refused = Fault::InternalError.verbs([Verb::Create]).client(NAME);
    member.server.faults().inject(refused.times(1));
    let copies = maps(&member);
    copies.delete("a", &DeleteParams::default()).await.unwrap();
    stage.condition("m1", "a", APPLIED, FALSE).await;
    until(copies, "a", |map| map.is_some()).await;
    stage.condition("m1", "a", APPLIED, TRUE).await;
}

/// A report does not wait until the watch shows the one before.
#[tokio::test]
async fn report_needs_no_echo() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let _program = stage.start(&[]);
    stage.dispatch("m1", "a", json!({})).await;
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let (by, coalesce) = (Duration::from_mins(1), false);
    let late = Fault::DelayEvents { by, coalesce };
    let late = late.kind("works").client(NAME);
    stage.api.server.faults().inject(late);
    let refused = Fault::InternalError.verbs([Verb::Create]).client(NAME);
    member.server.faults().inject(refused.times(1));
    let copies = maps(&member);
    copies.delete("a", &DeleteParams::default()).await.unwrap();
    stage.condition("m1", "a", APPLIED, FALSE).await;
    stage.condition("m1", "a", APPLIED, TRUE).await;
}

/// Case P10: a dead member delays no other, and keeps its deleted Works until its cluster leaves.
#[tokio::test]
async fn dead_member_delays_none() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("dead", CLOSED).await;
    stage.join("m1", member.address()).await;
    for number in 0..5 {
        stage
            .dispatch("dead", &format!("a{number}"), json!({}))
            .await;
    }
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let failed = stage.condition("dead", "a0", APPLIED, FALSE).await;
    assert!(
        failed.message.contains("the cluster cannot be reached"),
        "{}",
        failed.message
    );
    stage
        .works("dead")
        .delete("a0", &DeleteParams::default())
        .await
        .unwrap();
    // Each Work gets its turn meanwhile.
    stage.condition("dead", "a4", APPLIED, FALSE).await;
    assert!(stage.works("dead").get_opt("a0").await.unwrap().is_some());
    stage
        .clusters()
        .delete("dead", &DeleteParams::default())
        .await
        .unwrap();
    stage.gone("dead", "a0").await;
}

/// Case P86: every Work that waits for a dead member shows the outage, the last one's turn would come after minutes;
/// and no Work that is applied does, nor any object of another.
#[tokio::test]
async fn each_work_shows_outage() {
    let mut member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "settled", json!({})).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "settled", APPLIED, TRUE).await;
    member.stop().await;
    let names: Vec<_> = (0..40).map(|number| format!("a{number}")).collect();
    for name in &names {
        stage.dispatch("m1", name, json!({})).await;
    }
    let mut of_another = 0;
    for name in &names {
        let shown = stage.condition("m1", name, APPLIED, FALSE).await;
        let why = shown.message;
        assert!(why.contains("the cluster cannot be reached"), "{why}");
        of_another += usize::from(why.contains("shop/a") && !why.contains(name));
    }
    assert_eq!(of_another, 0);
    // As the program does when anything about the Cluster changes: all of its Works are looked at.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "tier": "prod" } } }));
    let clusters = stage.clusters();
    clusters
        .patch("m1", &PatchParams::default(), &label)
        .await
        .unwrap();
    stage.dispatch("m1", "later", json!({})).await;
    stage.condition("m1", "later", APPLIED, FALSE).await;
    stage.condition("m1", "settled", APPLIED, TRUE).await;
    member.restart();
    for name in names.iter().map(String::as_str).chain(["later"]) {
        stage.condition("m1", name, APPLIED, TRUE).await;
    }
}

/// Case P10: a member that is back gets the changes that it missed.
#[tokio::test]
async fn returned_member_catches_up() {
    let mut member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    member.stop().await;
    let _program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, FALSE).await;
    member.restart();
    stage.condition("m1", "a", APPLIED, TRUE).await;
}

/// A changed Secret is used at once.
#[tokio::test]
async fn new_credentials_are_used() {
    let member = member(|headers| {
        let token = headers.get("authorization");
        token.is_some_and(|token| token == "Bearer renewed")
    });
    let member = member.await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    let failed = stage.condition("m1", "a", APPLIED, FALSE).await;
    assert!(failed.message.contains("403"), "{}", failed.message);
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(stage.api.user(), "karmada-cluster");
    let renewed = Patch::Merge(json!({ "data": { "token": "cmVuZXdlZA==" } }));
    secrets
        .patch("m1", &PatchParams::default(), &renewed)
        .await
        .unwrap();
    stage.condition("m1", "a", APPLIED, TRUE).await;
}

/// A member behind a proxy is reached through it, by a name that only the proxy knows.
#[tokio::test]
async fn proxy_leads_to_member() {
    let member = member(|_| true).await;
    let proxy = ConnectProxy::start(Answer::Leads(member.address()));
    let proxy = proxy.await.unwrap();
    let stage = Stage::new().await;
    stage.join("m1", CLOSED).await;
    let behind = Patch::Merge(json!({ "spec": {
        "apiEndpoint": "http://m1.invalid:6443",
        "proxyURL": format!("http://{}", proxy.address()),
        "proxyHeader": { "x-team": "shop" },
    } }));
    let clusters = stage.clusters();
    let parameters = PatchParams::default();
    clusters.patch("m1", &parameters, &behind).await.unwrap();
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let asked = proxy.asked().remove(0);
    assert!(asked.starts_with("CONNECT m1.invalid:6443 "), "{asked}");
    assert!(asked.contains("x-team: shop"), "{asked}");
}

/// A cluster with another proxy than one by HTTP, or without its Secret, is named in its Works.
#[tokio::test]
async fn unusable_cluster_is_named() {
    let stage = Stage::new().await;
    stage.join("proxied", CLOSED).await;
    stage.join("keyless", CLOSED).await;
    let proxy = Patch::Merge(json!({ "spec": { "proxyURL": "socks5://proxy" } }));
    stage
        .clusters()
        .patch("proxied", &PatchParams::default(), &proxy)
        .await
        .unwrap();
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(stage.api.user(), "karmada-cluster");
    secrets
        .delete("keyless", &DeleteParams::default())
        .await
        .unwrap();
    for (cluster, text) in [
        ("proxied", "proxyURL"),
        ("keyless", "karmada-cluster/keyless"),
    ] {
        stage.dispatch(cluster, "a", json!({})).await;
        let _program = stage.start(&[]);
        let failed = stage.condition(cluster, "a", APPLIED, FALSE).await;
        assert!(failed.message.contains(text), "{}", failed.message);
    }
}

/// A restart writes neither a Work nor an object.
#[tokio::test]
async fn restart_writes_nothing() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let names: BTreeSet<_> = (0..20).map(|number| format!("a{number}")).collect();
    for name in &names {
        stage.dispatch("m1", name, json!({})).await;
    }
    let program = stage.start(&[]);
    for name in &names {
        stage.condition("m1", name, APPLIED, TRUE).await;
    }
    drop(program);
    let mut versions = Vec::new();
    for round in 0..2 {
        let works = stage
            .works("m1")
            .list(&ListParams::default())
            .await
            .unwrap();
        let works = works
            .items
            .into_iter()
            .filter(|work| names.contains(work.metadata.name.as_ref().unwrap()));
        let works = works.map(|work| work.metadata.resource_version.unwrap());
        let maps = maps(&member)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .into_iter();
        let maps = maps.filter(|map| names.contains(map.metadata.name.as_ref().unwrap()));
        let maps = maps.map(|map| map.metadata.resource_version.unwrap());
        versions.push(works.chain(maps).collect::<Vec<_>>());
        if round == 0 {
            let program = stage.start(&[]);
            // Its turn comes after that of those that exist already.
            stage.dispatch("m1", "last", json!({})).await;
            stage.condition("m1", "last", APPLIED, TRUE).await;
            drop(program);
        }
    }
    assert_eq!(versions[0].len(), 40);
    assert_eq!(versions[0], versions[1]);
}

/// With `--observe-only` everything is decided and counted, and nothing written.
#[tokio::test]
async fn observe_only_writes_nothing() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.dispatch("m1", "a", json!({})).await;
    let before = stage.works("m1").get("a").await.unwrap();
    let program = stage.start(&["--observe-only"]);
    counts(&program, r#"would_write_total{target="work_status"} 1"#).await;
    let text = metrics(&program);
    assert!(
        text.contains(r#"would_write_total{target="member_create"} 1"#),
        "{text}"
    );
    assert!(map(&member, "a").await.is_none());
    assert_eq!(stage.works("m1").get("a").await.unwrap(), before);
}

/// Whatever write fails or is lost, the end is the same.
#[tokio::test]
async fn lost_writes_change_nothing() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let writes = [Verb::Create, Verb::Patch, Verb::Update, Verb::Delete];
    for server in [&member.server, &stage.api.server] {
        for fault in [Fault::LoseResponse, Fault::InternalError, Fault::Conflict] {
            let injection = fault.verbs(writes).client(NAME).every(3).times(4);
            server.faults().inject(injection);
        }
    }
    let names: Vec<_> = (0..6).map(|number| format!("a{number}")).collect();
    for name in &names {
        stage.dispatch("m1", name, json!({})).await;
    }
    let _program = stage.start(&[]);
    for name in &names {
        stage.condition("m1", name, APPLIED, TRUE).await;
        assert!(map(&member, name).await.is_some());
    }
    for name in &names[..3] {
        let works = stage.works("m1");
        works.delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in &names[..3] {
        stage.gone("m1", name).await;
        assert!(map(&member, name).await.is_none());
    }
    for name in &names[3..] {
        assert!(map(&member, name).await.is_some());
    }
    let hits = [&member.server, &stage.api.server].map(|server| server.faults().hits());
    assert!(hits.iter().all(|hits| hits.len() == 3), "{hits:?}");
}
