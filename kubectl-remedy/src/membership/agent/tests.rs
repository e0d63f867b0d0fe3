//! Clusters that join, leave and get new tokens, on the embedded API. It grants no tokens: here one beside it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clap::Parser;
use embedded_apiserver::{ApiServer, Fault, Verb};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use karmada_api::condition::{DECLARED_READY_REASON, DNS_READY, REPORTER_READY};
use karmada_api::{Cluster, Work};
use karmada_runtime::client::Source;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::member::Found;
use super::{join, leave, renew, work};
use crate::answer::Answer;
use crate::args::{Args, Command, FleetCommand};
use crate::error::Error;
use crate::fixtures::jwt;

/// A Karmada API, and the way to it.
struct Karmada {
    server: ApiServer,
    client: Client,
    folder: TempDir,
    /// The clock of the program, and of the tokens.
    now: Arc<AtomicI64>,
}

impl Karmada {
    /// Creates one with these clusters.
    async fn with(clusters: &[&str]) -> Self {
        let server = ApiServer::new();
        let definitions = karmada_api::crd::fleet().unwrap();
        for definition in definitions {
            server.install(&definition).unwrap();
        }
        let now = Arc::new(AtomicI64::new(1_000_000));
        let karmada = Self {
            client: granting_tokens(&server, &now),
            folder: tempfile::tempdir().unwrap(),
            server,
            now,
        };
        for name in clusters {
            let cluster = json!({ "metadata": { "name": name }, "spec": { "syncMode": "Push" } });
            karmada.create::<Cluster>(None, cluster).await;
            let namespace = json!({ "metadata": { "name": format!("karmada-es-{name}") } });
            karmada.create::<Namespace>(None, namespace).await;
            karmada.report(name).await;
        }
        karmada
    }

    /// Stands for the agents of a cluster.
    async fn report(&self, cluster: &str) {
        let fresh = json!({ "type": REPORTER_READY, "status": "True", "reason": "Reporting",
            "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" });
        self.set_conditions(cluster, &json!([fresh])).await;
    }

    async fn set_conditions(&self, cluster: &str, conditions: &Value) {
        let status = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        let clusters: Api<Cluster> = Api::all(self.client.clone());
        let parameters = PatchParams::default();
        clusters
            .patch_status(cluster, &parameters, &status)
            .await
            .unwrap();
    }

    async fn create<K>(&self, namespace: Option<&str>, object: Value)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let mut object: DynamicObject = from_value(object).unwrap();
        let kind = kube::api::ApiResource::erase::<K>(&());
        object.types = Some(kube::core::TypeMeta {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
        });
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// Runs a command.
    async fn run(&self, line: &str) -> Result<Answer, Error> {
        let kubeconfig = json!({
            "current-context": "k",
            "contexts": [{ "name": "k", "context": { "cluster": "k", "user": "k" } }],
            "clusters": [{ "name": "k", "cluster": { "server": "https://127.0.0.1:5443" } }],
            "users": [{ "name": "k", "user": {} }],
        });
        let path = self.folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        let source = Source {
            kubeconfig: Some(path),
            ..Source::default()
        };
        let now = Timestamp::from_second(self.now.load(Ordering::Relaxed)).unwrap();
        let words = std::iter::once("kubectl-remedy").chain(line.split(' '));
        let Command::Fleet(command) = Args::try_parse_from(words).unwrap().command else {
            panic!("{line}");
        };
        match command {
            FleetCommand::Join(args) => join(&args, &source, &self.client, now).await,
            FleetCommand::Leave(args) => leave(&args, &source, &self.client).await,
            FleetCommand::Renew(args) => renew(&args, &self.client, now).await,
            other => panic!("{other:?}"),
        }
    }

    fn works(&self, cluster: &str) -> Api<Work> {
        Api::namespaced(self.client.clone(), &format!("karmada-es-{cluster}"))
    }

    /// Stands for who carries Works out.
    async fn apply_works(&self, cluster: &str) {
        let works = self.works(cluster);
        for work in works.list(&ListParams::default()).await.unwrap() {
            let applied = json!({ "type": "Applied", "status": "True", "reason": "Applied",
                "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" });
            let patch = Patch::Merge(json!({ "status": { "conditions": [applied] } }));
            let parameters = PatchParams::default();
            let name = work.name_any();
            works
                .patch_status(&name, &parameters, &patch)
                .await
                .unwrap();
        }
    }

    /// Stands for who carries Works out: lets those of a cluster go once they are being deleted.
    async fn take_works_away(&self, cluster: &str) {
        let works = self.works(cluster);
        for name in [work::AGENT, work::NAMESPACE] {
            let is_deleted = |work: Option<&Work>| {
                work.is_some_and(|work| work.metadata.deletion_timestamp.is_some())
            };
            let waiting = await_condition(works.clone(), name, is_deleted);
            waiting.await.unwrap();
            let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            let parameters = PatchParams::default();
            works.patch(name, &parameters, &free).await.unwrap();
        }
    }

    /// Joins clusters, and has their Works carried out.
    async fn joined(clusters: &[&str]) -> Self {
        let karmada = Self::with(clusters).await;
        assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::No);
        for cluster in clusters {
            karmada.apply_works(cluster).await;
        }
        assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::Yes);
        karmada
    }

    async fn agent(&self, cluster: &str) -> Found {
        let work = self.works(cluster).get(work::AGENT).await.unwrap();
        Found::in_objects(&work.spec.workload.manifests)
    }

    async fn token(&self, cluster: &str) -> String {
        self.agent(cluster).await.token.unwrap()
    }

    /// Returns the version of every object that the commands write.
    async fn versions(&self) -> BTreeMap<String, Option<String>> {
        let mut versions = BTreeMap::new();
        self.add::<Work>(&mut versions).await;
        self.add::<Secret>(&mut versions).await;
        self.add::<ServiceAccount>(&mut versions).await;
        self.add::<Role>(&mut versions).await;
        self.add::<RoleBinding>(&mut versions).await;
        self.add::<ClusterRole>(&mut versions).await;
        self.add::<ClusterRoleBinding>(&mut versions).await;
        self.add::<Lease>(&mut versions).await;
        self.add::<Cluster>(&mut versions).await;
        versions
    }

    async fn add<K>(&self, versions: &mut BTreeMap<String, Option<String>>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        for object in api.list(&ListParams::default()).await.unwrap() {
            let namespace = object.namespace().unwrap_or_default();
            let key = format!("{} {namespace}/{}", K::kind(&()), object.name_any());
            versions.insert(key, object.resource_version());
        }
    }
}

const JOIN: &str =
    "join --all --image registry.example/agent:1 --server https://203.0.113.7:5443 --timeout 200ms";

/// Returns a client of `server` to which tokens are granted, by the account and the Secret as they are.
fn granting_tokens(server: &ApiServer, now: &Arc<AtomicI64>) -> Client {
    let (service, now) = (server.service(), Arc::clone(now));
    let plain = Client::new(server.service(), "default");
    let service = tower::service_fn(move |request: Request<Body>| {
        let (service, plain, now) = (service.clone(), plain.clone(), Arc::clone(&now));
        async move {
            let path = request.uri().path().to_owned();
            let parts: Vec<&str> = path.split('/').collect();
            let [
                ..,
                "namespaces",
                namespace,
                "serviceaccounts",
                account,
                "token",
            ] = parts[..]
            else {
                return service.oneshot(request).await;
            };
            let body = request.into_body().collect_bytes().await;
            let asked: Value = serde_json::from_slice(&body.unwrap()).unwrap();
            let now = now.load(Ordering::Relaxed);
            let token = grant(&plain, namespace, account, &asked, now).await;
            let granted = json!({ "spec": asked["spec"], "status": { "token": token,
                "expirationTimestamp": "2026-11-20T08:00:00Z" } });
            let body = Full::from(granted.to_string()).map_err(|never| match never {});
            Ok(Response::new(body.boxed_unsync()))
        }
    });
    Client::new(service, "default")
}

async fn grant(client: &Client, namespace: &str, name: &str, asked: &Value, now: i64) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let bound = asked["spec"]["boundObjectRef"]["name"].as_str().unwrap();
    let (account, secret) = (accounts.get(name).await, secrets.get(bound).await);
    // As a managed cluster, it grants a day at most.
    let seconds = asked["spec"]["expirationSeconds"]
        .as_i64()
        .unwrap()
        .min(86_400);
    jwt(&json!({
        "iat": now, "exp": now + seconds,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "kubernetes.io": { "serviceaccount": { "uid": account.unwrap().uid() },
            "secret": { "uid": secret.unwrap().uid() } },
    }))
}

/// One command gives each cluster its account, its rights, a token and its agent, and says of none that it runs before
/// somebody has carried it out.
#[tokio::test]
async fn clusters_join_at_once() {
    let karmada = Karmada::with(&["m1", "m2"]).await;
    assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::No);
    for cluster in ["m1", "m2"] {
        let agent = karmada.agent(cluster).await;
        assert_eq!(agent.image.as_deref(), Some("registry.example/agent:1"));
        let kubeconfig = agent.kubeconfig.unwrap();
        assert!(
            kubeconfig.contains("https://203.0.113.7:5443"),
            "{kubeconfig}"
        );
        let claims = karmada_runtime::client::Claims::of(&agent.token.unwrap()).unwrap();
        assert_eq!(claims.namespace(), Some(&*format!("karmada-es-{cluster}")));
        karmada.apply_works(cluster).await;
    }
    assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::Yes);
}

/// A cluster has joined once its agents report, unless nobody wants to wait for that.
#[tokio::test]
async fn silent_agents_fail() {
    let karmada = Karmada::joined(&["m1"]).await;
    karmada.set_conditions("m1", &json!([])).await;
    assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::No);
    let brought = karmada.run(&format!("{JOIN} --wait=false")).await;
    assert_eq!(brought.unwrap(), Answer::Yes);
}

/// Whoever runs it again, or without the flags of before, changes nothing.
#[tokio::test]
async fn second_run_writes_nothing() {
    let karmada = Karmada::joined(&["m1", "m2"]).await;
    let before = karmada.versions().await;
    for again in [JOIN, "join --all", "join m1 m2 m1"] {
        assert_eq!(karmada.run(again).await.unwrap(), Answer::Yes, "{again}");
        assert_eq!(karmada.versions().await, before, "{again}");
    }
}

async fn works_of(karmada: &Karmada, cluster: &str) -> Vec<Work> {
    let works = karmada.works(cluster);
    works.list(&ListParams::default()).await.unwrap().items
}

/// A run that is cut short is completed by the next, and another image reaches all.
#[tokio::test]
async fn next_run_completes() {
    let karmada = Karmada::with(&["m1"]).await;
    let faults = karmada.server.faults();
    let fault = faults.inject(Fault::InternalError.verbs([Verb::Patch]).kind("works"));
    assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::No);
    assert!(works_of(&karmada, "m1").await.is_empty());
    faults.remove(fault);
    assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::No);
    karmada.apply_works("m1").await;
    let token = karmada.token("m1").await;
    let image = "registry.example/agent:2";
    karmada
        .run(&format!("join m1 --image {image} --timeout 1s"))
        .await
        .unwrap();
    let agent = karmada.agent("m1").await;
    assert_eq!(agent.image.as_deref(), Some(image));
    assert_eq!(agent.token.as_ref(), Some(&token));
}

/// One cluster that does not exist, or lacks something, holds up no other.
#[tokio::test]
async fn missing_cluster_delays_no_other() {
    let karmada = Karmada::joined(&["m1"]).await;
    let namespace = json!({ "metadata": { "name": "karmada-es-m2" } });
    karmada.create::<Namespace>(None, namespace).await;
    let cluster = json!({ "metadata": { "name": "m2" }, "spec": {} });
    karmada.create::<Cluster>(None, cluster).await;
    // Nobody has said which image m2 is to have, and m9 does not exist.
    assert_eq!(karmada.run("join m1 m2 m9").await.unwrap(), Answer::No);
    let rights: Api<ServiceAccount> = Api::namespaced(karmada.client.clone(), "karmada-es-m2");
    assert!(
        rights
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let line = "join m2 m9 --image i --server https://203.0.113.7 --timeout 100ms";
    assert_eq!(karmada.run(line).await.unwrap(), Answer::No);
    assert_eq!(karmada.agent("m2").await.image.as_deref(), Some("i"));
}

/// An address that no member reaches is refused before anything is written.
#[tokio::test]
async fn loopback_server_writes_nothing() {
    let karmada = Karmada::with(&["m1"]).await;
    let before = karmada.versions().await;
    assert_eq!(karmada.run("join m1 --image i").await.unwrap(), Answer::No);
    assert_eq!(karmada.versions().await, before);
}

/// A token that was taken back, or has a third of its life left, is replaced; another is kept.
#[tokio::test]
async fn dead_token_is_replaced() {
    let karmada = Karmada::joined(&["m1"]).await;
    let first = karmada.token("m1").await;
    let secrets: Api<Secret> = Api::namespaced(karmada.client.clone(), "karmada-es-m1");
    let parameters = DeleteParams::default();
    secrets
        .delete("cluster-health-agent-token", &parameters)
        .await
        .unwrap();
    karmada.run("join m1").await.unwrap();
    let second = karmada.token("m1").await;
    assert_ne!(second, first);
    karmada.now.fetch_add(86_400 * 2 / 3 + 1, Ordering::Relaxed);
    karmada.run("join m1").await.unwrap();
    assert_ne!(karmada.token("m1").await, second);
}

/// Renewal replaces the tokens that are due, and nothing else.
#[tokio::test]
async fn due_tokens_are_renewed() {
    let karmada = Karmada::joined(&["m1", "m2"]).await;
    let before = karmada.versions().await;
    assert_eq!(karmada.run("renew").await.unwrap(), Answer::Yes);
    assert_eq!(karmada.versions().await, before);
    let (first, other) = (karmada.token("m1").await, karmada.token("m2").await);
    karmada.now.fetch_add(10, Ordering::Relaxed);
    let one = karmada.run("renew m1 --when-less-than 24h").await.unwrap();
    assert_eq!(one, Answer::Yes);
    assert_ne!(karmada.token("m1").await, first);
    assert_eq!(karmada.token("m2").await, other);
    karmada.now.fetch_add(86_400, Ordering::Relaxed);
    assert_eq!(karmada.run("renew").await.unwrap(), Answer::Yes);
    assert_ne!(karmada.token("m2").await, other);
    assert_eq!(
        karmada.agent("m2").await.image.as_deref(),
        Some("registry.example/agent:1")
    );
    assert_eq!(karmada.run("renew m9").await.unwrap(), Answer::No);
}

/// A status that is written during a renewal does not end it, but another token does.
#[tokio::test]
async fn renewal_outlasts_statuses() {
    let karmada = Karmada::joined(&["m1"]).await;
    let (works, old) = (karmada.works("m1"), karmada.token("m1").await);
    let written = Fault::Conflict.verbs([Verb::Patch]).kind("works").times(1);
    karmada.server.faults().inject(written);
    let new = jwt(&json!({ "exp": 2_000_000 }));
    let renewed = renew::replace(&works, &old, &new).await;
    renewed.unwrap();
    assert_eq!(karmada.token("m1").await, new);
    let late = renew::replace(&works, &old, "other").await;
    assert!(late.unwrap_err().to_string().contains("somebody else"));
    assert_eq!(karmada.token("m1").await, new);
    // One that never gets through is told of.
    let faults = karmada.server.faults();
    faults.inject(Fault::Conflict.verbs([Verb::Patch]).kind("works"));
    karmada.now.fetch_add(86_400, Ordering::Relaxed);
    assert_eq!(karmada.run("renew m1").await.unwrap(), Answer::No);
    assert_eq!(karmada.token("m1").await, new);
}

/// Who leaves leaves nothing, and nothing of others goes with it.
#[tokio::test]
async fn leaving_restores_everything() {
    let karmada = Karmada::with(&["m1", "m2"]).await;
    let role = json!({ "metadata": { "name": "karmada-rs:other" } });
    karmada.create::<ClusterRole>(None, role).await;
    let of_another =
        json!({ "metadata": { "name": "web" }, "spec": { "workload": { "manifests": [] } } });
    karmada
        .create::<Work>(Some("karmada-es-m1"), of_another)
        .await;
    let before: Vec<String> = karmada.versions().await.into_keys().collect();

    karmada.run(JOIN).await.unwrap();
    let lease = json!({ "metadata": { "name": "cluster-health-agent" }, "spec": {} });
    karmada.create::<Lease>(Some("karmada-es-m1"), lease).await;
    let conditions = [
        (DNS_READY, "R"),
        ("Ready", "R"),
        (REPORTER_READY, "R"),
        ("ImageRegistryReady", DECLARED_READY_REASON),
    ];
    let conditions = conditions.map(|(kind, reason)| {
        json!({ "type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-20T08:00:00Z" })
    });
    karmada.set_conditions("m1", &json!(conditions)).await;
    let clusters: Api<Cluster> = Api::all(karmada.client.clone());

    let (left, (), ()) = tokio::join!(
        karmada.run("leave --all"),
        karmada.take_works_away("m1"),
        karmada.take_works_away("m2"),
    );
    assert_eq!(left.unwrap(), Answer::Yes);
    let after: Vec<String> = karmada.versions().await.into_keys().collect();
    assert_eq!(after, before);
    let left = clusters.get("m1").await.unwrap();
    let left: Vec<_> = left.conditions().iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(left, ["Ready"]);
    assert_eq!(karmada.run("leave m1").await.unwrap(), Answer::Yes);
    assert_eq!(karmada.run("leave m9").await.unwrap(), Answer::No);
}

/// A Work that nobody takes away is told of, and the agents' rights are gone all the same.
#[tokio::test]
async fn held_work_is_told() {
    let karmada = Karmada::joined(&["m1"]).await;
    let line = "leave m1 --timeout 200ms";
    assert_eq!(karmada.run(line).await.unwrap(), Answer::No);
    let accounts: Api<ServiceAccount> = Api::namespaced(karmada.client.clone(), "karmada-es-m1");
    assert!(
        accounts
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

/// Who may not is told the missing right, in one line.
#[tokio::test]
async fn missing_right_is_named() {
    let karmada = Karmada::with(&["m1"]).await;
    karmada
        .server
        .faults()
        .inject(Fault::Forbidden.kind("clusterroles"));
    let role = super::rights::objects("m1").unwrap().remove(1);
    let error = crate::requests::write(&karmada.client, &role)
        .await
        .unwrap_err();
    let line = error.to_string();
    for part in [
        "ClusterRole karmada-rs:cluster-health-agent:m1",
        "forbidden",
        "docs/kubectl-remedy.md",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(karmada.run(JOIN).await.unwrap(), Answer::No);
}
