//! Copies in the members that are foreign, left over, or to be kept.

use anyhow::Result;
use karmada_api::names;
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, create},
    wait::until,
};
use serde_json::json;

use super::{
    WEB, change, data, deployed, deployments, divided, has_condition, has_data, holds, maps,
    suspend, until_work, with_settings,
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

/// Case P8: the Work and the copy of a cluster go that the placement has no longer.
async fn dropped_cluster_loses_its_copy(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = deployed(server, &[Member(1), Member(2)]).await?;
    let placement = divided(&[Member(1)])["placement"].clone();
    change(&fleet, WEB, json!({ "placement": placement })).await?;

    until_work(&fleet, Member(2), "Deployment", "gone", |work| {
        work.is_none()
    })
    .await?;
    let dropped = deployments(fleet.member(Member(2)));
    assert!(dropped.get_opt(WEB).await?.is_none());
    let kept = deployments(fleet.member(Member(1)));
    until(&kept, WEB, "with all replicas", |copy| {
        let spec = copy.and_then(|copy| copy.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(4))
    })
    .await?;
    Ok(())
}

/// Case P8: a Work that carries the binding's ID in a cluster which does not need it is deleted.
async fn orphan_work_is_deleted(server: ApiKind) -> Result<()> {
    let only_first = json!({ "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    let (fleet, _programs) = with_settings(server, 2, only_first).await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    let name = PropagationFleet::work_name("ConfigMap", WEB);
    let mut work = fleet.works(Member(1)).get(&name).await?;
    work.metadata = kube::core::ObjectMeta {
        name: Some(name),
        labels: work.metadata.labels,
        annotations: work.metadata.annotations,
        finalizers: work.metadata.finalizers,
        ..Default::default()
    };
    fleet
        .works(Member(2))
        .create(&PostParams::default(), &work)
        .await?;
    until_work(&fleet, Member(2), "ConfigMap", "gone", |work| {
        work.is_none()
    })
    .await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await
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
    dropped_cluster_loses_its_copy,
    orphan_work_is_deleted,
    preserved_copies_outlive_their_template,
);
