//! Objects of others in the way of copies.

use anyhow::Result;
use karmada_api::names;
use kube::ResourceExt;
use pipeline_tests::{
    api::create,
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::PropagationFleet,
};
use serde_json::json;

use super::{WEB, change, data, has_condition, has_data, maps, until_work};

/// Case P6: an object of somebody else is in the way of a copy, and stays until the policy overwrites it.
async fn foreign_object_stays_until_overwritten(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let member = fleet.member(Member(1));
    member.namespace(NAMESPACE).await?;
    let theirs = json!({ "metadata": { "name": WEB }, "data": { "a": "theirs", "b": "theirs" } });
    create(&maps(member), theirs).await?;
    let ours = json!({ "metadata": { "name": WEB }, "data": { "a": "ours" } });
    create(&maps(&fleet.karmada), ours).await?;
    let spec = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB }],
        "placement": {},
    });
    fleet.create_policy(WEB, spec).await?;
    let _programs = fleet.run().await?;

    until_work(&fleet, Member(1), "ConfigMap", "refused", |work| {
        let applied = work.and_then(|work| work.condition("Applied"));
        applied.is_some_and(|applied| {
            applied.reason == "AppliedFailed" && applied.message.contains("overwrite")
        })
    })
    .await?;
    let found = maps(member).get(WEB).await?;
    assert_eq!(found.data, Some(data(&[("a", "theirs"), ("b", "theirs")])));
    assert!(!found.labels().contains_key(names::MANAGED));

    let overwrite = json!({ "conflictResolution": "Overwrite" });
    change(&fleet, WEB, overwrite).await?;
    has_data(&fleet, Member(1), &[("a", "ours")]).await?;
    assert_eq!(
        maps(member).get(WEB).await?.labels()[names::MANAGED],
        "true"
    );
    until_work(&fleet, Member(1), "ConfigMap", "applied", |work| {
        work.is_some_and(|work| has_condition(work, "Applied", "True"))
    })
    .await
}

on_both!(long: foreign_object_stays_until_overwritten);
