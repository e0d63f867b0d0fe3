//! Kinds of other projects in a member: the reports about them, and the fields that they keep.

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

use super::*;

const CLONE_SET: (&str, &str, &str, &str) = ("apps.kruise.io", "v1alpha1", "CloneSet", "clonesets");
const GIT_REPOSITORY: (&str, &str, &str, &str) = (
    "source.toolkit.fluxcd.io",
    "v1",
    "GitRepository",
    "gitrepositories",
);

/// Serves a kind in the member, and returns its objects in the namespace `shop`.
fn serve(
    member: &ServedApi,
    (group, version, kind, plural): (&str, &str, &str, &str),
) -> Api<DynamicObject> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    });
    member.server.install(&definition).unwrap();
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let client = Client::new(member.server.service(), "default");
    Api::namespaced_with(client, "shop", &resource)
}

/// Returns the spec of a Work with an object named `web`.
fn work((group, version, kind, _): (&str, &str, &str, &str), spec: &Value) -> Value {
    json!({ "workload": { "manifests": [{
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": { "name": "web", "namespace": "shop",
            "labels": { "karmada.io/managed": "true" },
            "annotations": { "work.karmada.io/namespace": "karmada-es-m1", "work.karmada.io/name": "web",
                "resourcetemplate.karmada.io/generation": "3" } },
        "spec": spec,
    }] } })
}

/// A Work tells the status of an object that its project's users read, and whether it is well (Case P84).
#[tokio::test]
async fn clone_set_is_reported() {
    let member = member(|_| true).await;
    let sets = serve(&member, CLONE_SET);
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let spec = work(CLONE_SET, &json!({ "replicas": 2 }));
    stage.dispatch("m1", "web", spec).await;
    let _program = stage.start(&[]);
    until(sets.clone(), "web", |set| set.is_some()).await;
    // Nothing runs before its controller says so.
    stage
        .reported("web", |one| one.health.as_deref() == Some("Unhealthy"))
        .await;
    let status = json!({ "status": { "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
        "availableReplicas": 2, "collisionCount": 1 } });
    let parameters = PatchParams::default();
    sets.patch_status("web", &parameters, &Patch::Merge(&status))
        .await
        .unwrap();
    let reported = stage
        .reported("web", |one| one.health.as_deref() == Some("Healthy"))
        .await;
    let reflected = json!({ "generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": 3,
        "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 });
    assert_eq!(reported.status, Some(reflected));
}

/// Who suspends a source does it in its member. New manifests leave it suspended, and nothing is written on its account
/// (Case P84).
#[tokio::test]
async fn suspended_source_stays_suspended() {
    let member = member(|_| true).await;
    let sources = serve(&member, GIT_REPOSITORY);
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let spec = |url: &str| work(GIT_REPOSITORY, &json!({ "url": url, "suspend": false }));
    stage.dispatch("m1", "web", spec("https://a.example")).await;
    let program = stage.start(&[]);
    stage.condition("m1", "web", APPLIED, TRUE).await;
    let suspended = Patch::Merge(json!({ "spec": { "suspend": true } }));
    sources
        .patch("web", &PatchParams::default(), &suspended)
        .await
        .unwrap();
    stage
        .patch("m1", "web", json!({ "spec": spec("https://b.example") }))
        .await;
    let edited = until(sources.clone(), "web", |source| {
        source.is_some_and(|source| source.data["spec"]["url"] == "https://b.example")
    });
    let source = edited.await.unwrap();
    assert_eq!(source.data["spec"]["suspend"], true);
    drop(program);

    let _program = stage.start(&[]);
    // Its turn comes after that of those that exist already.
    stage.dispatch("m1", "last", json!({})).await;
    stage.condition("m1", "last", APPLIED, TRUE).await;
    let now = sources.get("web").await.unwrap();
    assert_eq!(
        now.metadata.resource_version,
        source.metadata.resource_version
    );
}

/// A user's script for such a kind chooses the fields that it keeps, in place of the rules for the kind (Case I65).
#[tokio::test]
async fn script_decides_suspension() {
    let member = member(|_| true).await;
    let sources = serve(&member, GIT_REPOSITORY);
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let kind = ("source.toolkit.fluxcd.io/v1", "GitRepository");
    let keeps_nothing = "function Retain(desired, observed) return desired end";
    stage
        .customize_kind(kind, &[("retention", keeps_nothing)])
        .await;
    let spec = work(GIT_REPOSITORY, &json!({ "suspend": false }));
    stage.dispatch("m1", "web", spec).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "web", APPLIED, TRUE).await;
    let suspended = Patch::Merge(json!({ "spec": { "suspend": true } }));
    let parameters = PatchParams::default();
    let written = sources.patch("web", &parameters, &suspended).await.unwrap();
    let right = until(sources, "web", |source| {
        source.is_some_and(|source| {
            source.metadata.resource_version != written.metadata.resource_version
                && source.data["spec"]["suspend"] == false
        })
    });
    right.await;
}
