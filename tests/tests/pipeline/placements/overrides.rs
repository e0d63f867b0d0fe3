//! What differs between clusters in what is placed.

mod admission;

use anyhow::Result;
use fleet_api::placement::PlacementStatus;
use fleet_api::{
    ClusterResourceOverride, ClusterResourceOverrideSnapshot, ResourceEnvelope, ResourceOverride,
    ResourceOverrideSnapshot,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{fleet::Member, propagation::create, wait::until};
use serde_json::{Value, json};

use super::{COMPLETE, MAP, Stage, maps, said, stories};

const NAME: &str = "overridden";
/// The `ConfigMap` in an envelope.
const INNER: &str = "inner";
const EDITED: &str = "example.com/edited-by";

fn overrides(stage: &Stage) -> Api<ResourceOverride> {
    Api::namespaced(stage.fleet.hub.client(), NAME)
}

/// Returns a rule for the clusters of an environment.
fn rule(env: &str, patches: &Value) -> Value {
    let term = json!({ "labelSelector": { "matchLabels": { "env": env } } });
    json!({ "clusterSelector": { "clusterSelectorTerms": [term] }, "jsonPatchOverrides": patches })
}

fn set(path: &str, value: &str) -> Value {
    json!({ "op": "replace", "path": path, "value": value })
}

/// Returns the key of a `ConfigMap` and the annotation, in a member.
fn seen(map: &ConfigMap) -> [Option<&str>; 2] {
    let value = map.data.as_ref().and_then(|data| data.get("key"));
    let annotations = map.metadata.annotations.as_ref();
    let edited = annotations.and_then(|all| all.get(EDITED));
    [value, edited].map(|text| text.map(String::as_str))
}

/// Places a namespace with a `ConfigMap`, and with another in an envelope, to all members at once.
async fn place(stage: &Stage) -> Result<()> {
    stage.fill(NAME).await?;
    let inner = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": INNER, "namespace": NAME }, "data": { "key": "value" } });
    let envelopes: Api<ResourceEnvelope> = Api::namespaced(stage.fleet.hub.client(), NAME);
    let envelope = json!({ "metadata": { "name": NAME }, "data": { "inner": inner } });
    create(&envelopes, envelope).await?;
    let selector = json!({ "group": "", "version": "v1", "kind": "Namespace", "name": NAME });
    let strategy =
        json!({ "rollingUpdate": { "maxUnavailable": 3, "unavailablePeriodSeconds": 1 } });
    let spec = json!({ "resourceSelectors": [selector], "strategy": strategy });
    stage.fleet.place(NAME, spec).await
}

/// Creates an override of the whole namespace, and one of both `ConfigMaps`, which builds on the first.
async fn override_all(stage: &Stage) -> Result<()> {
    let placement = json!({ "name": NAME });
    let annotations = json!([{ "op": "add", "path": "/metadata/annotations",
        "value": { EDITED: "cluster-scoped in ${MEMBER-CLUSTER-NAME}" } }]);
    let everywhere = json!({ "clusterSelector": { "clusterSelectorTerms": [] },
        "jsonPatchOverrides": annotations });
    let of_namespace = json!({ "group": "", "version": "v1", "kind": "Namespace", "name": NAME });
    let of_cluster = json!({ "metadata": { "name": NAME }, "spec": {
        "placement": placement, "clusterResourceSelectors": [of_namespace],
        "policy": { "overrideRules": [everywhere] } } });
    let hub = stage.fleet.hub.client();
    create(&Api::<ClusterResourceOverride>::all(hub), of_cluster).await?;
    let map =
        |name: &str| json!({ "group": "", "version": "v1", "kind": "ConfigMap", "name": name });
    let mut canary = rule("canary", &json!([]));
    canary["overrideType"] = json!("Delete");
    if let Some(fields) = canary.as_object_mut() {
        fields.remove("jsonPatchOverrides");
    }
    let escaped = EDITED.replace('/', "~1");
    let region = "${MEMBER-CLUSTER-NAME} in ${MEMBER-CLUSTER-LABEL-KEY-region}";
    let patches = json!([
        set("/data/key", region),
        set(&format!("/metadata/annotations/{escaped}"), "namespaced"),
    ]);
    let of_maps = json!({ "metadata": { "name": "maps" }, "spec": {
        "placement": placement, "resourceSelectors": [map(MAP), map(INNER)],
        "policy": { "overrideRules": [rule("prod", &patches), canary] } } });
    create(&overrides(stage), of_maps).await
}

/// Changes the rules of the override of both `ConfigMaps`.
async fn change(stage: &Stage, rules: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "policy": { "overrideRules": rules } } }));
    let parameters = PatchParams::default();
    overrides(stage).patch("maps", &parameters, &patch).await?;
    Ok(())
}

/// Waits until a member has a `ConfigMap` with this value and annotation.
async fn until_seen(stage: &Stage, member: u8, name: &str, expected: [&str; 2]) -> Result<()> {
    let maps = maps(stage.fleet.member(Member(member)), NAME);
    let expected = expected.map(Some);
    until(&maps, name, "overridden", |found| {
        found.is_some_and(|map| seen(map) == expected)
    })
    .await?;
    Ok(())
}

/// Waits until the placement is available everywhere with overrides whose snapshots have this index.
async fn until_complete_at(stage: &Stage, index: u8) -> Result<()> {
    let mut complete = COMPLETE;
    complete[2] = "Overridden True OverriddenSucceeded";
    let snapshot = format!("maps-{index}");
    let lists = |status: &PlacementStatus| {
        let mut clusters = status.placement_statuses.iter();
        clusters.all(|one| {
            let mut applied = one.applicable_resource_overrides.iter();
            applied.any(|applied| applied.name == snapshot)
        })
    };
    stage
        .until_status(NAME, "complete with overrides", |status| {
            said(&status.conditions) == complete && lists(status)
        })
        .await
}

/// Waits until the override cannot be applied in one cluster, for this reason.
async fn until_failed(stage: &Stage, member: u8, reason: &str) -> Result<()> {
    let cluster = Member(member).name();
    stage
        .until_status(NAME, "failed", |status| {
            let mut clusters = status.placement_statuses.iter();
            let told = clusters.find(|one| one.cluster_name == cluster);
            told.and_then(|one| one.conditions.last())
                .is_some_and(|last| {
                    last.reason == "OverriddenFailed"
                        && last.message.contains("ResourceOverride overridden/maps")
                        && last.message.contains(&format!("for {cluster}: {reason}"))
                })
        })
        .await
}

/// Case F36: each member gets what the overrides make of it: by labels, with its name in it, one by one in their order, or
/// not at all; also what is in an envelope. An edit goes out; what cannot be applied is named with its member, and the
/// others go on.
async fn members_differ(stage: &mut Stage) -> Result<()> {
    place(stage).await?;
    stage.until_complete(NAME).await?;
    override_all(stage).await?;
    for name in [MAP, INNER] {
        until_seen(stage, 1, name, ["member1 in east", "namespaced"]).await?;
        until_seen(stage, 3, name, ["member3 in west", "namespaced"]).await?;
        let canary = maps(stage.fleet.member(Member(2)), NAME);
        until(&canary, name, "gone", |found| found.is_none()).await?;
    }
    until_complete_at(stage, 0).await?;
    stage.hand_over().await?;

    let bad = json!([set("/data/nothing/x", "y")]);
    let edited = json!([set("/data/key", "edited")]);
    change(stage, json!([rule("prod", &edited), rule("canary", &bad)])).await?;
    for member in [1, 3] {
        let annotation = format!("cluster-scoped in member{member}");
        until_seen(stage, member, MAP, ["edited", &annotation]).await?;
    }
    let reason = "replace /data/nothing/x: the object has no such place";
    until_failed(stage, 2, reason).await?;

    let zone = json!([set("/data/key", "${MEMBER-CLUSTER-LABEL-KEY-zone}")]);
    change(stage, json!([rule("prod", &edited), rule("canary", &zone)])).await?;
    until_failed(stage, 2, "replace /data/key: the cluster has no label zone").await?;
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "zone": "z1" } } }));
    let (clusters, name) = (stage.fleet.clusters(), Member(2).name());
    clusters
        .patch(&name, &PatchParams::default(), &labels)
        .await?;
    until_seen(stage, 2, MAP, ["z1", "cluster-scoped in member2"]).await?;
    until_complete_at(stage, 2).await?;
    overrides_are_taken_back(stage).await
}

async fn overrides_are_taken_back(stage: &Stage) -> Result<()> {
    let hub = &stage.fleet.hub;
    let of_cluster: Api<ClusterResourceOverride> = Api::all(hub.client());
    let parameters = DeleteParams::default();
    of_cluster.delete(NAME, &parameters).await?;
    overrides(stage).delete("maps", &parameters).await?;
    for member in 1..=3 {
        let maps = maps(stage.fleet.member(Member(member)), NAME);
        until(&maps, MAP, "as on the hub", |found| {
            found.is_some_and(|map| seen(map) == [Some("value"), None])
        })
        .await?;
    }
    until(&of_cluster, NAME, "gone", |found| found.is_none()).await?;
    until(&overrides(stage), "maps", "gone", |found| found.is_none()).await?;
    stage.until_complete(NAME).await?;
    // They stay until no binding lists them.
    let of_cluster: Api<ClusterResourceOverrideSnapshot> = Api::all(hub.client());
    let of_namespaces: Api<ResourceOverrideSnapshot> = Api::namespaced(hub.client(), NAME);
    for index in 0..=2 {
        let name = format!("maps-{index}");
        until(&of_namespaces, &name, "gone", |found| found.is_none()).await?;
    }
    let first = format!("{NAME}-0");
    until(&of_cluster, &first, "gone", |found| found.is_none()).await?;
    stage.remove(NAME).await
}

stories!(3: members_differ);
