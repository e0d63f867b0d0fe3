//! What somebody changes in a member is left and told of where that is asked for, and what he has there may only be looked at.

use anyhow::Result;
use fleet_api::{AppliedWork, placement::PlacementStatus};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use pipeline_tests::{fleet::Member, propagation::create};
use serde_json::json;

use super::{KEY, MAP, REPORTED, Stage, edit, maps, names, said, spec_of, stories, values};

const MEMBER: Member = Member(1);

/// Returns `true` if the placement says of the `ConfigMap` that it has drifted so.
fn has_drifted(status: &PlacementStatus, drifts: &[[&str; 3]]) -> bool {
    let clusters = status.placement_statuses.iter();
    let mut drifted = clusters.flat_map(|one| &one.drifted_placements);
    drifted.any(|one| one.identifier.name == MAP && values(&one.observed_drifts) == drifts)
}

fn has_none(status: &PlacementStatus) -> bool {
    let mut clusters = status.placement_statuses.iter();
    clusters.all(|one| one.drifted_placements.is_empty() && one.diffed_placements.is_empty())
}

/// Case F71: drift is left as it is, and named, until it is undone or the hub has something new.
async fn drift_is_left(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "drift-left";
    let member = stage.fleet.member(MEMBER);
    stage
        .place_by(NAME, json!({ "whenToApply": "IfNotDrifted" }))
        .await?;
    stage.until_complete(NAME).await?;
    edit(member, NAME, "drift").await?;
    stage.until_failed(NAME, "FoundDrifts").await?;
    let drifts = [["/data/key", "drift", "value"]];
    stage
        .until_status(NAME, "drifted", |status| has_drifted(status, &drifts))
        .await?;
    stage.until_value(MEMBER, NAME, "drift").await?;
    stage.hand_over().await?;
    edit(stage.fleet.member(MEMBER), NAME, "value").await?;
    stage.until_complete(NAME).await?;
    stage.until_status(NAME, "as it was", has_none).await?;

    edit(stage.fleet.member(MEMBER), NAME, "drift").await?;
    stage.until_failed(NAME, "FoundDrifts").await?;
    stage.edit(NAME, "edited").await?;
    stage.until_value(MEMBER, NAME, "edited").await?;
    stage.until_complete(NAME).await?;
    stage.remove(NAME).await
}

/// Case F71: what somebody adds is named where everything is compared, and what he changes is put right all the same.
async fn additions_are_told(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "drift-told";
    let member = stage.fleet.member(MEMBER);
    stage
        .place_by(NAME, json!({ "comparisonOption": "FullComparison" }))
        .await?;
    stage.until_complete(NAME).await?;
    stage.until_status(NAME, "without drift", has_none).await?;
    let add = Patch::Merge(json!({ "data": { KEY: "other", "added": "x" } }));
    let copies = maps(member, NAME);
    copies.patch(MAP, &PatchParams::default(), &add).await?;
    let added = [["/data/added", "x", ""]];
    stage
        .until_status(NAME, "drifted", |status| has_drifted(status, &added))
        .await?;
    stage.until_value(MEMBER, NAME, "value").await?;
    stage.until_complete(NAME).await?;
    let remove = Patch::Merge(json!({ "data": { "added": null } }));
    copies.patch(MAP, &PatchParams::default(), &remove).await?;
    stage.until_status(NAME, "as it was", has_none).await?;
    stage.remove(NAME).await
}

fn has_differences(status: &PlacementStatus, diffs: &[[&str; 3]]) -> bool {
    let clusters = status.placement_statuses.iter();
    let mut diffed = clusters.flat_map(|one| &one.diffed_placements);
    said(&status.conditions) == REPORTED
        && diffed.any(|one| one.identifier.name == MAP && values(&one.observed_diffs) == diffs)
}

/// Case F72: a member's own namespace is compared with the hub's, owned by nobody, and stays with all in it when the
/// placement goes; what the placement wrote before it only looked goes with it.
async fn looking_owns_nothing(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "report";
    const OWNER: &str = "report-work";
    let member = stage.fleet.member(MEMBER);
    member.namespace(NAME).await?;
    let copies = maps(member, NAME);
    for name in [MAP, "own"] {
        let theirs = json!({ "metadata": { "name": name }, "data": { KEY: "theirs" } });
        create(&copies, theirs).await?;
    }
    let before = copies.get(MAP).await?;
    let report = |option: &str| json!({ "type": "ReportDiff", "comparisonOption": option });
    stage.place_by(NAME, report("FullComparison")).await?;
    let theirs = [["/data/key", "theirs", "value"]];
    stage
        .until_status(NAME, "compared", |status| has_differences(status, &theirs))
        .await?;
    stage.edit(NAME, "edited").await?;
    let edited = [["/data/key", "theirs", "edited"]];
    stage
        .until_status(NAME, "compared anew", |status| {
            has_differences(status, &edited)
        })
        .await?;
    stage.hand_over().await?;
    stage.end(NAME).await?;
    let member = stage.fleet.member(MEMBER);
    let owners = names::<AppliedWork>(member, &ListParams::default()).await?;
    assert!(!owners.contains(&OWNER.to_owned()), "{owners:?}");
    let copies = maps(member, NAME);
    assert_eq!(
        copies.get(MAP).await?.resource_version(),
        before.resource_version()
    );
    assert!(copies.get_opt("own").await?.is_some());

    let apply = |kind: &str| json!({ "type": kind, "comparisonOption": "PartialComparison" });
    stage
        .fleet
        .place(NAME, spec_of(NAME, apply("ClientSideApply")))
        .await?;
    stage.until_complete(NAME).await?;
    stage.apply_by(NAME, apply("ReportDiff")).await?;
    stage
        .until_status(NAME, "compared", |status| {
            said(&status.conditions) == REPORTED && has_none(status)
        })
        .await?;
    stage.end(NAME).await?;
    let member = stage.fleet.member(MEMBER);
    let owners = names::<AppliedWork>(member, &ListParams::default()).await?;
    assert!(!owners.contains(&OWNER.to_owned()), "{owners:?}");
    assert!(maps(member, NAME).get_opt(MAP).await?.is_none());
    Ok(())
}

stories!(1: drift_is_left, additions_are_told, looking_owns_nothing);
