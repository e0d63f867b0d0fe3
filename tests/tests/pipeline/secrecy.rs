//! A marker in every credential, kubeconfig, answer and Secret that programs and plugin read, each of them broken: nothing that
//! leaves a process has a word of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use karmada_api::{ClusterView, OverridePolicy, ResourceBinding, Work};
use kube::{Api, api::ListParams};
use pipeline_tests::{
    api::create,
    control_plane::{ApiKind, ControlPlane},
    fleet::Member,
    manifests, on_both,
    programs::{self, Binary, Profile, Running},
    propagation::{PropagationFleet, namespaced},
    wait::{until, until_event},
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::propagation::WEB;

const MARKER: &str = "not-a-real-token-4711";

/// The kubeconfig of somebody who left out a colon.
const WITHOUT_COLON: &str = "apiVersion: v1
kind: Config
users:
- name: ops
  user:
    token: not-a-real-token-4711
    client-certificate-data \"left out the colon\"
contexts: []
";

/// Whoever breaks a credential learns which one and how, in a condition, an Event, a line of the log or of a terminal, and
/// nobody else learns it.
async fn broken_credentials_are_not_told(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start_unjoined([server, server], 1, Profile::Debug).await?;
    let rights = "propagation/cluster/cluster-controller.yaml";
    manifests::apply(&fleet.karmada.client(), rights).await?;
    let folder = tempfile::tempdir()?;
    let (own, clusters) = own_kubeconfig(&fleet, folder.path()).await?;
    let programs = fleet.run().await?;
    fleet.register(Member(1)).await?;
    for (name, secret) in broken_secrets() {
        join(&fleet.karmada, name, secret).await?;
    }
    let all: Api<ClusterView> = Api::all(fleet.karmada.client());
    for (name, _) in broken_secrets() {
        until(&all, name, "not ready", |cluster| {
            let conditions = cluster.map(|cluster| &cluster.status.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one.type_ == "Ready" && one.status != "True")
        })
        .await?;
    }
    until(&all, "member1", "ready", |cluster| {
        cluster.is_some_and(super::clusters::is_ready)
    })
    .await?;
    break_text(&fleet).await?;

    fs::write(&own, WITHOUT_COLON)?;
    clusters
        .until_output("Cannot use the changed kubeconfig")
        .await?;
    let log = clusters.output()?;
    ensure!(log.contains("line 7"), "{log}");
    is_silent("a log", &log)?;
    is_silent("metrics", &clusters.metrics().await?)?;
    for (program, name) in programs.all() {
        is_silent(name, &program.output()?)?;
        is_silent(name, &program.metrics().await?)?;
    }
    is_silent("stored", &stored(&fleet.karmada).await?)?;
    commands_are_silent(folder.path()).await
}

/// Starts the cluster-controller with a kubeconfig that is a file of its own.
async fn own_kubeconfig(fleet: &PropagationFleet, folder: &Path) -> Result<(PathBuf, Running)> {
    let (karmada, name) = (&fleet.karmada, "cluster-controller");
    let own = folder.join(name);
    fs::copy(karmada.account_kubeconfig("karmada-system", name)?, &own)?;
    let flags = [format!("--kubeconfig={}", own.display())];
    let running = Running::start(Binary::ClusterController, Profile::Debug, flags).await?;
    Ok((own, running))
}

/// Returns clusters, each with its Secret.
fn broken_secrets() -> [(&'static str, Value); 3] {
    let text = |text: &str| BASE64_STANDARD.encode(text);
    let data =
        |token: &str, bundle: &str| json!({ "token": text(token), "caBundle": text(bundle) });
    [
        (
            "no-certificate",
            json!({ "data": data(MARKER, &format!("-----BEGIN {MARKER}\n{MARKER}")) }),
        ),
        (
            "no-token",
            json!({ "data": { "kubeconfig": text(WITHOUT_COLON) } }),
        ),
        (
            "moved",
            json!({ "metadata": { "annotations": { "karmada-rs.io/api-endpoint": "https://127.0.0.1:2" } },
                "data": data(MARKER, "") }),
        ),
    ]
}

/// Creates a Cluster and this Secret of it.
async fn join(karmada: &ControlPlane, name: &str, mut secret: Value) -> Result<()> {
    secret["metadata"]["name"] = name.into();
    let secrets: Api<Secret> = Api::namespaced(karmada.client(), "karmada-cluster");
    create(&secrets, secret).await?;
    let clusters: Api<ClusterView> = Api::all(karmada.client());
    let cluster = json!({ "metadata": { "name": name },
        "spec": { "syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1",
            "secretRef": { "namespace": "karmada-cluster", "name": name } } });
    create(&clusters, cluster).await
}

/// Propagates a text that an override cannot read.
async fn break_text(fleet: &PropagationFleet) -> Result<()> {
    let client = fleet.karmada.client();
    let text = format!("password: {MARKER}\nbroken: [");
    let map = json!({ "metadata": { "name": WEB }, "data": { "text": text } });
    create(&namespaced::<ConfigMap>(client.clone()), map).await?;
    let change = json!([{ "subPath": "/a", "operator": "add", "value": "b" }]);
    let overriders = json!({ "fieldOverrider": [{ "fieldPath": "/data/text", "yaml": change }] });
    let policy = json!({ "metadata": { "name": WEB },
        "spec": { "overrideRules": [{ "overriders": overriders }] } });
    create(&namespaced::<OverridePolicy>(client.clone()), policy).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let placement = json!({ "clusterAffinity": { "clusterNames": ["member1"] } });
    let spec = json!({ "resourceSelectors": [selector], "placement": placement });
    fleet.create_policy(WEB, spec).await?;
    until_event(&client, "ConfigMap", WEB, "ApplyOverridePolicyFailed").await
}

/// Returns the words of programs about these objects.
async fn stored(karmada: &ControlPlane) -> Result<String> {
    let (client, all) = (karmada.client(), ListParams::default());
    let events = Api::<Event>::all(client.clone()).list(&all).await?;
    let clusters = Api::<ClusterView>::all(client.clone()).list(&all).await?;
    let works = Api::<Work>::all(client.clone()).list(&all).await?;
    let bindings = Api::<ResourceBinding>::all(client).list(&all).await?;
    ensure!(!events.items.is_empty(), "there are no Events");
    Ok(json!([events.items, clusters.items, works.items, bindings.items]).to_string())
}

/// Runs the plugin with kubeconfigs that it cannot use.
async fn commands_are_silent(folder: &Path) -> Result<()> {
    let script = format!("echo {MARKER}; echo Log in first. >&2; exit 1");
    let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script] });
    let failing = json!({ "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "clusters": [{ "name": "c", "cluster": { "server": "https://127.0.0.1:1" } }],
        "users": [{ "name": "u", "user": { "exec": exec } }] });
    for (text, told) in [
        (WITHOUT_COLON.to_owned(), "line 7"),
        (failing.to_string(), "Log in first."),
    ] {
        let path = folder.join("given");
        fs::write(&path, text)?;
        let plugin = programs::path(Binary::KubectlRemedy, Profile::Debug)?;
        let run = Command::new(plugin)
            .arg("status")
            .env("KUBECONFIG", &path)
            .output();
        let ended = run.await.context("the plugin does not run")?;
        ensure!(!ended.status.success(), "it can be used");
        let printed = String::from_utf8([ended.stdout, ended.stderr].concat())?;
        ensure!(printed.contains(told), "{printed}");
        is_silent("the plugin", &printed)?;
    }
    Ok(())
}

fn is_silent(what: &str, text: &str) -> Result<()> {
    let encoded = BASE64_STANDARD.encode(MARKER);
    // The rest of it depends on its place.
    let encoded = &encoded[..16];
    ensure!(
        !text.contains(MARKER) && !text.contains(encoded),
        "{what}: {text}"
    );
    Ok(())
}

on_both!(long: broken_credentials_are_not_told);
