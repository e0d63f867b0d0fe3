//! Templates whose names Karmada makes the same, or not valid.

use std::collections::BTreeSet;

use karmada_api::Work;
use kube::api::ListParams;

use super::works::{work, works};
use super::*;

/// Names that the API allows for a role.
fn allowed() -> Vec<String> {
    let names = [
        "shop:reader",
        "shop.reader",
        "Shop:reader",
        "shop::reader",
        "shop@reader",
        "shop_reader",
        "-",
        "a b",
        "view",
        "view?x",
        "view#x",
        "rôle",
    ];
    let long = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(249)));
    names.map(str::to_owned).into_iter().chain(long).collect()
}

async fn cluster_bindings(stage: &Stage) -> Vec<ClusterResourceBinding> {
    let bindings: Api<ClusterResourceBinding> = Api::all(stage.user());
    bindings.list(&ListParams::default()).await.unwrap().items
}

/// Every role gets a binding and Works of its own, whatever others are called, and keeps them over a restart and
/// when the others are gone.
#[tokio::test(start_paused = true)]
async fn every_role_has_its_own() {
    let mut stage = Stage::new().await;
    stage.join("m1").await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "roles" },
        "spec": { "resourceSelectors": [
            { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole" },
        ], "placement": {} },
    });
    stage.send("POST", CLUSTER_POLICY, &policy).await;
    for name in allowed() {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name }, "rules": [],
        });
        stage.send("POST", ROLE, &role).await;
    }
    stage.start(&[]).await;

    let mut bound = BTreeSet::new();
    for binding in cluster_bindings(&stage).await {
        let name = binding.metadata.name.unwrap();
        assert!(bound.insert(binding.spec.resource.name), "{name}");
        let clusters = json!({ "spec": { "clusters": [{ "name": "m1" }] } });
        let path = format!("{CLUSTER_BINDING}/{name}");
        stage.send("PATCH", &path, &clusters).await;
    }
    assert_eq!(bound, allowed().into_iter().collect());
    stage.settle().await;
    let made: Api<Work> = Api::namespaced(stage.user(), "karmada-es-m1");
    let made = made.list(&ListParams::default()).await.unwrap().items;
    let manifests = made.iter().map(|work| &work.spec.workload.manifests[0]);
    let manifests = manifests.filter(|manifest| manifest["kind"] == "ClusterRole");
    let roles: BTreeSet<_> = manifests
        .map(|manifest| manifest["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, bound);

    stage.written();
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    let first = format!("{ROLE}/shop:reader");
    stage.send("DELETE", &first, &json!({})).await;
    stage.settle().await;
    let left = cluster_bindings(&stage).await;
    let left: BTreeSet<_> = left
        .into_iter()
        .filter(|binding| binding.metadata.deletion_timestamp.is_none())
        .map(|binding| binding.spec.resource.name)
        .collect();
    assert!(left.contains("shop.reader"), "{left:?}");
}

/// Case P66: a kind of the same name in another group has Karmada's name: the binding of a Deployment is another, which
/// follows it like any.
#[tokio::test(start_paused = true)]
async fn kinds_of_two_groups_are_apart() {
    let mut stage = Stage::new().await;
    let other = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": { "name": "web-deployment", "namespace": "shop" },
        "spec": { "resource": {
            "apiVersion": "example.com/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
        } },
    });
    stage.send("POST", BINDING, &other).await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    let name = names::bindings("apps", "Deployment", "web").last().unwrap();
    let binding = stage.get(&format!("{BINDING}/{name}")).await;
    assert_eq!(binding["spec"]["resource"]["apiVersion"], "apps/v1");
    let scale = json!({ "spec": { "replicas": 5 } });
    stage.change("PATCH", &web(DEPLOYMENT), &scale).await;
    let binding = stage.get(&format!("{BINDING}/{name}")).await;
    assert_eq!(binding["spec"]["replicas"], 5);
}

/// Where every name of a template's binding is another's, an Event says so.
#[tokio::test(start_paused = true)]
async fn lack_of_names_is_told() {
    let mut stage = Stage::new().await;
    for name in names::bindings("apps", "Deployment", "web") {
        let other = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": { "name": name, "namespace": "shop" },
            "spec": { "resource": { "apiVersion": "v1", "kind": "Other", "name": "web" } },
        });
        stage.send("POST", BINDING, &other).await;
    }
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    assert_eq!(
        stage.events("Deployment").await,
        ["ApplyPolicyFailed: the names that its binding may have are those of other bindings"]
    );
}

/// A Work of its name that another binding has is left alone, and an Event says so.
#[tokio::test(start_paused = true)]
async fn taken_work_is_told() {
    let stage = settled().await;
    stage.join("m1").await;
    let path = work("m1");
    let (_, name) = path.rsplit_once('/').unwrap();
    let annotations = json!({
        names::BINDING_NAMESPACE: "other", names::BINDING_NAME: "web-deployment",
    });
    let other = json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "workload": { "manifests": [] } },
    });
    stage.send("POST", &works("m1"), &other).await;
    stage.schedule(&["m1"]).await;
    let taken = stage.work("m1").await;
    assert!(taken.spec.workload.manifests.is_empty(), "{taken:?}");
    let told = stage.events("Deployment").await;
    let note = format!(
        "SyncWorkFailed: Sync work of binding(shop/web-deployment) failed: cluster m1: work {name} \
         is that of binding(other/web-deployment)"
    );
    assert!(told.contains(&note), "{told:?}");
    stage.send("DELETE", &path, &json!({})).await;
    stage.settle().await;
    assert_eq!(stage.work("m1").await.spec.workload.manifests.len(), 1);
}
