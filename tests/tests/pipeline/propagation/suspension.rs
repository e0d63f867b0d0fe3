//! A pause holds what would change in the members, and a resume lets it through at once.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind, fleet::Member, on_both, propagation::PropagationFleet, wait::until,
};
use serde_json::{Value, json};

use super::record::ran;
use super::{
    WEB, deployed, deployments, has_data, holds, maps, scale, set_data, suspend, until_work,
    with_settings, work_has,
};

/// Case P15: a pause ends a fight with another writer, which writes as it likes meanwhile; the resume is one
/// write.
async fn pause_ends_a_fight(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = deployed(server, &[Member(1)]).await?;
    let fleet = &fleet;
    let member = fleet.member(Member(1));
    let copies = deployments(member);
    let (_, ours) = ran(&copies.get(WEB).await?);
    for more in 1..4 {
        scale(&copies, ours + more).await?;
        is_scaled(&copies, ours).await?;
    }
    suspend(fleet, json!({ "dispatching": true })).await?;
    work_has(fleet, Member(1), "Dispatching", "False", "web:1").await?;
    let before = member.successful_writes().await?;
    for more in 6..16 {
        scale(&copies, ours + more).await?;
    }
    is_observed(fleet, 1).await?;
    let writes = member.successful_writes().await?;
    assert_eq!(
        writes.clone().since(&before).to_string(),
        "10 PATCH deployments.apps, 1 PATCH deployments.apps/status"
    );

    suspend(fleet, Value::Null).await?;
    is_scaled(&copies, ours).await?;
    is_observed(fleet, 2).await?;
    assert_eq!(
        member.successful_writes().await?.since(&writes).to_string(),
        "1 PATCH deployments.apps/status, 1 PUT deployments.apps"
    );
    Ok(())
}

async fn is_scaled(deployments: &Api<Deployment>, replicas: i32) -> Result<()> {
    until(deployments, WEB, &format!("{replicas} replicas"), |copy| {
        let spec = copy.and_then(|copy| copy.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(replicas))
    })
    .await?;
    Ok(())
}

/// Reports so many replicas in the first member, and waits until the Work shows them: whatever was to be done
/// about the versions before is done then.
async fn is_observed(fleet: &PropagationFleet, replicas: i32) -> Result<()> {
    let copies = deployments(fleet.member(Member(1)));
    let status = Patch::Merge(json!({ "status": { "replicas": replicas } }));
    let parameters = PatchParams::default();
    copies.patch_status(WEB, &parameters, &status).await?;
    until_work(fleet, Member(1), "Deployment", "observed", |work| {
        let status = work.and_then(|work| work.status.as_ref());
        let status = status.and_then(|status| status.manifest_statuses.first()?.status.as_ref());
        status.is_some_and(|status| status["replicas"] == replicas)
    })
    .await
}

/// Case P21: a template whose policy is paused from the start has Works, and copies with the resume only, each
/// by one write.
async fn first_placement_waits(server: ApiKind) -> Result<()> {
    let paused = json!({ "suspension": { "dispatching": true } });
    let (fleet, _programs) = with_settings(server, 2, paused).await?;
    let members = [Member(1), Member(2)];
    for value in ["1", "2"] {
        set_data(&fleet.karmada, json!({ "a": value })).await?;
        for member in members {
            holds(&fleet, member, value).await?;
            assert!(maps(fleet.member(member)).get_opt(WEB).await?.is_none());
        }
    }
    suspend(&fleet, Value::Null).await?;
    for member in members {
        has_data(&fleet, member, &[("a", "2")]).await?;
        let copy = maps(fleet.member(member)).get(WEB).await?;
        // Two managers would be two writers.
        assert_eq!(copy.metadata.managed_fields.unwrap().len(), 1);
    }
    Ok(())
}

on_both!(
    long:
    pause_ends_a_fight,
    first_placement_waits,
);
