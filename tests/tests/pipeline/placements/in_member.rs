//! A placement in a member: beside objects of others, under the next programs, and when the member leaves.

use anyhow::Result;
use fleet_api::AppliedWork;
use kube::{Api, ResourceExt};
use pipeline_tests::{
    api::{create, merge},
    fleet::Member,
};
use serde_json::json;

use super::{KEY, MAP, Stage, maps, namespaces, said, stories};

const MEMBER: Member = Member(1);

/// Case F47: an object of another in the member is left to it, and the placement says of which object and why; once
/// it is free, it is taken.
async fn foreign_object_is_named(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "foreign";
    let member = stage.fleet.member(MEMBER);
    member.namespace(NAME).await?;
    let propagated = json!({ "metadata": { "name": MAP, "labels": { "karmada.io/managed": "true" } },
        "data": { KEY: "theirs" } });
    create(&maps(member, NAME), propagated).await?;
    stage.fill(NAME).await?;
    stage
        .place(NAME, json!({ "placementType": "PickAll" }))
        .await?;
    stage
        .until_status(NAME, "refused", |status| {
            let is_failed =
                said(&status.conditions).contains(&"Applied False ApplyFailed".to_owned());
            let clusters = status.placement_statuses.iter();
            let mut failed = clusters.flat_map(|one| &one.failed_placements);
            is_failed
                && failed.any(|failed| {
                    failed.identifier.name == MAP
                        && failed.condition.reason == "FailedToTakeOver"
                        && failed.condition.message.contains("propagated by Karmada")
                })
        })
        .await?;
    stage.until_value(MEMBER, NAME, "theirs").await?;
    let free = json!({ "metadata": { "labels": null } });
    let maps = maps(member, NAME);
    merge(&maps, MAP, &free).await?;
    stage.until_complete(NAME).await?;
    stage.until_value(MEMBER, NAME, "value").await?;
    stage.remove(NAME).await
}

/// Case F50: programs that take over from others write nothing but heartbeats.
async fn next_programs_write_nothing(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "handover";
    stage.placed(NAME).await?;
    stage.hand_over().await?;
    stage.remove(NAME).await
}

/// Case F49: a member that leaves keeps its objects; when it joins again, none of them is written, and edits arrive.
async fn leaving_keeps_objects(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "leaving";
    stage.placed(NAME).await?;
    let member = stage.fleet.member(MEMBER);
    let copy = maps(member, NAME).get(MAP).await?;
    stage.leave(MEMBER).await?;
    let owners: Api<AppliedWork> = Api::all(member.client());
    owners.get("leaving-work").await?;
    assert!(namespaces(member).get_opt(NAME).await?.is_some());
    stage
        .until_status(NAME, "nowhere", |status| {
            status.placement_statuses.is_empty()
        })
        .await?;

    stage.fleet.register(MEMBER, json!({})).await?;
    stage.until_joined(MEMBER).await?;
    stage.until_complete(NAME).await?;
    let kept = maps(member, NAME).get(MAP).await?;
    assert_eq!(kept.resource_version(), copy.resource_version());
    stage.edit(NAME, "edited").await?;
    stage.until_value(MEMBER, NAME, "edited").await?;
    stage.until_complete(NAME).await?;
    stage.remove(NAME).await
}

stories!(
    1:
    foreign_object_is_named,
    next_programs_write_nothing,
    leaving_keeps_objects,
);
