//! What a member has before it is placed there is taken over, or not.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use pipeline_tests::{fleet::Member, propagation::create};
use serde_json::{Value, json};

use super::{KEY, MAP, Stage, edit, maps, namespaces, spec_of, stories, values};

const MEMBER: Member = Member(1);

/// Returns a strategy that takes over so.
fn taking_over(when: &str) -> Value {
    json!({ "whenToTakeOver": when })
}

/// Case F70: what is in a member before stays as it is, with a name and a reason; then it is taken over where it does not
/// differ, and at last in any case.
async fn objects_are_taken_over(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "takeover";
    let member = stage.fleet.member(MEMBER);
    member.namespace(NAME).await?;
    let theirs =
        json!({ "metadata": { "name": MAP }, "data": { KEY: "theirs", "other": "stays" } });
    create(&maps(member, NAME), theirs).await?;
    stage.place_by(NAME, taking_over("Never")).await?;
    stage.until_failed(NAME, "NotTakenOver").await?;
    stage.apply_by(NAME, taking_over("IfNoDiff")).await?;
    stage.until_failed(NAME, "FailedToTakeOver").await?;
    stage
        .until_status(NAME, "differing", |status| {
            let clusters = status.placement_statuses.iter();
            let mut differ = clusters.flat_map(|one| &one.diffed_placements);
            differ.any(|one| {
                one.identifier.name == MAP
                    && values(&one.observed_diffs) == [["/data/key", "theirs", "value"]]
            })
        })
        .await?;
    let kept = maps(member, NAME).get(MAP).await?;
    assert_eq!(kept.owner_references(), []);
    // The namespace does not differ.
    let namespace = namespaces(member).get(NAME).await?;
    assert_eq!(namespace.owner_references().len(), 1);

    edit(member, NAME, "value").await?;
    stage.until_complete(NAME).await?;
    stage.apply_by(NAME, taking_over("Always")).await?;
    stage.until_complete(NAME).await?;
    let taken = maps(member, NAME).get(MAP).await?;
    assert_eq!(taken.uid(), kept.uid());
    assert_eq!(taken.data.unwrap_or_default()["other"], "stays");
    stage.disturb(MEMBER, NAME).await?;
    stage.remove(NAME).await
}

/// Case F73: of two placements of one namespace the first has it; the second says so, and gets it when the first goes.
async fn second_placement_waits(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "first";
    stage.placed(NAME).await?;
    stage
        .fleet
        .place("second", spec_of(NAME, json!({})))
        .await?;
    stage.until_failed("second", "FailedToTakeOver").await?;
    let owner = namespaces(stage.fleet.member(MEMBER)).get(NAME).await?;
    let owners = owner.owner_references().iter().map(|one| &*one.name);
    assert_eq!(owners.collect::<Vec<_>>(), ["first-work"]);
    stage.end(NAME).await?;
    stage.until_complete("second").await?;
    stage.until_value(MEMBER, NAME, "value").await?;
    stage.remove("second").await
}

/// Case F74: what another owns in the member is shared where that is asked for, and stays to it.
async fn shared_objects_stay(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "shared";
    let member = stage.fleet.member(MEMBER);
    let roles: Api<ClusterRole> = Api::all(member.client());
    create(&roles, json!({ "metadata": { "name": NAME } })).await?;
    let role = roles.get(NAME).await?;
    let owner = json!({ "metadata": { "ownerReferences": [role.controller_owner_ref(&())] } });
    member.namespace(NAME).await?;
    create(
        &maps(member, NAME),
        json!({ "metadata": { "name": MAP }, "data": { KEY: "theirs" } }),
    )
    .await?;
    let (parameters, owner) = (PatchParams::default(), Patch::Merge(owner));
    maps(member, NAME).patch(MAP, &parameters, &owner).await?;
    namespaces(member).patch(NAME, &parameters, &owner).await?;
    let sharing = |may: bool| json!({ "allowCoOwnership": may });
    stage.place_by(NAME, sharing(false)).await?;
    stage.until_failed(NAME, "FailedToTakeOver").await?;
    stage.apply_by(NAME, sharing(true)).await?;
    stage.until_complete(NAME).await?;
    stage.until_value(MEMBER, NAME, "value").await?;
    stage.end(NAME).await?;
    let (map, namespace) = (
        maps(member, NAME).get(MAP).await?,
        namespaces(member).get(NAME).await?,
    );
    for owners in [map.owner_references(), namespace.owner_references()] {
        let names: Vec<_> = owners.iter().map(|one| &*one.name).collect();
        assert_eq!(names, [NAME]);
    }
    Ok(())
}

stories!(1: objects_are_taken_over, second_placement_waits, shared_objects_stay);
