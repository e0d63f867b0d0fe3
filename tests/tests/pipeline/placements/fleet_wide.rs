//! A placement reaches every member, with its edits and its end.

use anyhow::Result;
use fleet_api::AppliedWork;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::{create, merge},
    fleet::Member,
    wait::until,
};
use serde_json::{Value, from_str, json};

use super::{MAP, Stage, maps, stories};

/// Cases F7, F19, F46 and F48: a namespace goes to every member with all that is in it, and its status is that of
/// KubeFleet's; edits arrive, objects that leave it leave the members; it stays until nothing of it is left.
async fn namespace_goes_everywhere(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "application-1";
    stage.fill(NAME).await?;
    let mut spec = recorded()["spec"].clone();
    spec["strategy"]["rollingUpdate"]["unavailablePeriodSeconds"] = json!(1);
    stage.fleet.place(NAME, spec).await?;
    stage.until_complete(NAME).await?;
    let status = json!(stage.status(NAME).await?);
    assert_eq!(timeless(status), timeless(recorded()["status"].clone()));
    for member in stage.fleet.members() {
        let owners: Api<AppliedWork> = Api::all(stage.fleet.member(member).client());
        let owner = owners.get("application-1-work").await?;
        let objects = owner.status.unwrap_or_default().applied_resources;
        assert_eq!(objects.len(), 2, "{objects:?}");
    }

    stage.edit(NAME, "edited").await?;
    let secrets: Api<Secret> = Api::namespaced(stage.fleet.hub.client(), NAME);
    create(&secrets, json!({ "metadata": { "name": "added" } })).await?;
    for member in stage.fleet.members() {
        stage.until_value(member, NAME, "edited").await?;
        let secrets: Api<Secret> = Api::namespaced(stage.fleet.member(member).client(), NAME);
        until(&secrets, "added", "there", |found| found.is_some()).await?;
    }
    secrets.delete("added", &DeleteParams::default()).await?;
    for member in stage.fleet.members() {
        let secrets: Api<Secret> = Api::namespaced(stage.fleet.member(member).client(), NAME);
        until(&secrets, "added", "gone", |found| found.is_none()).await?;
    }
    stage.until_complete(NAME).await?;
    removal_is_told(stage, NAME).await
}

/// Deletes a placement of which one member cannot let go at once.
async fn removal_is_told(stage: &Stage, name: &str) -> Result<()> {
    let copies = maps(stage.fleet.member(Member(1)), name);
    let slow = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    merge(&copies, MAP, &slow).await?;
    let placements = stage.fleet.placements();
    placements.delete(name, &DeleteParams::default()).await?;
    stage
        .until_status(name, "removing", |status| {
            let held = format!("ConfigMap {name}/{MAP} is held by example.com/hold");
            let last = status.conditions.last();
            last.is_some_and(|last| last.message.ends_with(&held))
        })
        .await?;
    let free = json!({ "metadata": { "finalizers": null } });
    merge(&copies, MAP, &free).await?;
    stage.until_removed(name).await
}

/// Returns the placement `crp-all` of a running KubeFleet, as if our members had been in its fleet.
fn recorded() -> Value {
    let text = include_str!("../../../../placement/rules/src/fixtures/crp-all-available.json");
    from_str(&text.replace("kind-cluster-", "member")).unwrap()
}

fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("lastTransitionTime");
            fields
                .values_mut()
                .for_each(|field| *field = timeless(field.take()));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| *item = timeless(item.take())),
        _ => {}
    }
    value
}

stories!(3: namespace_goes_everywhere);
