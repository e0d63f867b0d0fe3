//! Users place out of their namespace, which somebody else has placed.

use anyhow::Result;
use fleet_api::{AppliedWork, Binding, PolicySnapshot, ResourceOverride, ResourceSnapshot};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use objects::Scope;
use pipeline_tests::{api::create, fleet::Member, wait::until};
use serde_json::json;

use super::{COMPLETE, KEY, MAP, Stage, maps, namespaces, said, stories, until_status};

/// The namespace, the placement that brings it to the members, and that of its user.
const NAME: &str = "scoped";

/// Has an administrator place the namespace alone, in every member.
async fn prepare(stage: &Stage) -> Result<()> {
    stage.fill(NAME).await?;
    let selector = json!({ "group": "", "version": "v1", "kind": "Namespace", "name": NAME,
        "selectionScope": "NamespaceOnly" });
    let strategy = json!({ "rollingUpdate": { "unavailablePeriodSeconds": 1 } });
    let spec = json!({ "resourceSelectors": [selector], "strategy": strategy });
    stage.fleet.place(NAME, spec).await?;
    stage.until_complete(NAME).await
}

/// Has a user place the map in two of the members.
async fn place(stage: &Stage) -> Result<()> {
    let selector = json!({ "group": "", "version": "v1", "kind": "ConfigMap", "name": MAP });
    let policy = json!({ "placementType": "PickFixed",
        "clusterNames": [Member(1).name(), Member(2).name()] });
    let strategy =
        json!({ "rollingUpdate": { "maxUnavailable": 2, "unavailablePeriodSeconds": 1 } });
    let spec = json!({ "resourceSelectors": [selector], "policy": policy, "strategy": strategy });
    stage.fleet.place_in(NAME, NAME, spec).await
}

/// Waits until the user's objects are available, and says so of his placement.
async fn until_complete(stage: &Stage, overridden: &str) -> Result<()> {
    let placements = stage.fleet.placements_of(NAME);
    until_status(&placements, NAME, "complete", |status| {
        let mut expected = COMPLETE;
        expected[2] = overridden;
        said(&status.conditions) == expected && status.placement_statuses.len() == 2
    })
    .await
}

/// Cases F91, F92 and F95: an administrator places a namespace, and its user, by a placement of the same name, a map in it:
/// it arrives where he asks for it, edits and overrides of its namespace, too, and goes with his placement, and nothing else.
async fn user_places_out_of_namespace(stage: &mut Stage) -> Result<()> {
    prepare(stage).await?;
    place(stage).await?;
    until_complete(stage, COMPLETE[2]).await?;
    for member in [1, 2].map(Member) {
        stage.until_value(member, NAME, "value").await?;
        let owners: Api<AppliedWork> = Api::all(stage.fleet.member(member).client());
        owners.get("scoped.scoped-work").await?;
        let map = maps(stage.fleet.member(member), NAME).get(MAP).await?;
        let annotations = map.annotations();
        let placement = annotations.get("kubernetes-fleet.io/placement");
        assert_eq!(placement.map(String::as_str), Some("scoped/scoped"));
    }
    let third = maps(stage.fleet.member(Member(3)), NAME);
    assert!(third.get_opt(MAP).await?.is_none());

    stage.edit(NAME, "edited").await?;
    for member in [1, 2].map(Member) {
        stage.until_value(member, NAME, "edited").await?;
    }
    overrides_apply(stage).await?;
    stage.hand_over().await?;
    user_takes_it_back(stage).await?;
    stage.remove(NAME).await
}

/// Has the user give one member another value.
async fn overrides_apply(stage: &Stage) -> Result<()> {
    let overrides: Api<ResourceOverride> = Api::namespaced(stage.fleet.hub.client(), NAME);
    let term = json!({ "labelSelector": { "matchLabels": { "env": "canary" } } });
    let rule = json!({ "clusterSelector": { "clusterSelectorTerms": [term] },
        "jsonPatchOverrides": [{ "op": "replace", "path": format!("/data/{KEY}"), "value": "own" }] });
    let selector = json!({ "group": "", "version": "v1", "kind": "ConfigMap", "name": MAP });
    let spec = json!({ "placement": { "name": NAME, "scope": "Namespaced" },
        "resourceSelectors": [selector], "policy": { "overrideRules": [rule] } });
    create(
        &overrides,
        json!({ "metadata": { "name": "own" }, "spec": spec }),
    )
    .await?;
    stage.until_value(Member(2), NAME, "own").await?;
    stage.until_value(Member(1), NAME, "edited").await?;
    until_complete(stage, "Overridden True OverriddenSucceeded").await
}

/// Has the user delete his placement, and checks that nothing of it is left.
async fn user_takes_it_back(stage: &Stage) -> Result<()> {
    let parameters = DeleteParams::default();
    let placements = stage.fleet.placements_of(NAME);
    placements.delete(NAME, &parameters).await?;
    until(&placements, NAME, "gone", |found| found.is_none()).await?;
    let hub = &stage.fleet.hub;
    let all = ListParams::default();
    let within = &Scope::Namespaced;
    let bindings: Api<Binding> = Api::namespaced_with(hub.client(), NAME, within);
    assert_eq!(bindings.list(&all).await?.items, []);
    let snapshots: Api<ResourceSnapshot> = Api::namespaced_with(hub.client(), NAME, within);
    assert_eq!(snapshots.list(&all).await?.items, []);
    let policies: Api<PolicySnapshot> = Api::namespaced_with(hub.client(), NAME, within);
    assert_eq!(policies.list(&all).await?.items, []);
    for member in stage.fleet.members() {
        let member = stage.fleet.member(member);
        let map: Option<ConfigMap> = maps(member, NAME).get_opt(MAP).await?;
        assert!(map.is_none(), "{map:?}");
        namespaces(member).get(NAME).await?;
    }
    let overrides: Api<ResourceOverride> = Api::namespaced(hub.client(), NAME);
    overrides.delete("own", &parameters).await?;
    until(&overrides, "own", "gone", |found| found.is_none()).await?;
    stage.until_complete(NAME).await
}

stories!(3: user_places_out_of_namespace);
