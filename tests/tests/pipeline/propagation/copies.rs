//! Copies in the members that are foreign, or to be kept.

use anyhow::Result;
use karmada_api::names;
use kube::{ResourceExt, api::DeleteParams};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, create},
};
use serde_json::json;

use super::{
    WEB, change, data, has_condition, has_data, holds, maps, suspend, until_work, with_settings,
};

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

    let is_refused = |work: Option<&karmada_api::Work>| {
        let applied = work.and_then(|work| work.condition("Applied"));
        applied.is_some_and(|applied| {
            applied.reason == "AppliedFailed" && applied.message.contains("overwrite")
        })
    };
    until_work(&fleet, Member(1), "ConfigMap", "refused", is_refused).await?;
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

/// Case P9: a policy that preserves its copies releases them when the template goes; one that is missing
/// holds nothing up.
async fn preserved_copies_outlive_their_template(server: ApiKind) -> Result<()> {
    let policy = json!({ "preserveResourcesOnDeletion": true });
    let (mut fleet, _programs) = with_settings(server, 2, policy).await?;
    let members = [Member(1), Member(2)];
    for member in members {
        has_data(&fleet, member, &[("a", "1")]).await?;
    }
    // Nobody repairs it there.
    suspend(
        &fleet,
        json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } }),
    )
    .await?;
    holds(&fleet, Member(2), "1").await?;
    let missing = maps(fleet.member(Member(2)));
    missing.delete(WEB, &DeleteParams::default()).await?;

    fleet.karmada.start_controllers().await?;
    maps(&fleet.karmada)
        .delete(WEB, &DeleteParams::default())
        .await?;
    for member in members {
        until_work(&fleet, member, "ConfigMap", "gone", |work| work.is_none()).await?;
    }
    let preserved = maps(fleet.member(Member(1))).get(WEB).await?;
    assert_eq!(preserved.data, Some(data(&[("a", "1")])));
    assert_eq!(
        (preserved.labels().len(), preserved.annotations().len()),
        (0, 0)
    );
    assert!(missing.get_opt(WEB).await?.is_none());
    Ok(())
}

on_both!(
    long:
    foreign_object_stays_until_overwritten,
    preserved_copies_outlive_their_template,
);
