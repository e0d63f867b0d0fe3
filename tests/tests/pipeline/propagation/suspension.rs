//! A pause holds changes back from the members, and a resume lets them through at once.

use anyhow::Result;
use k8s_openapi::api::{apps::v1::Deployment, rbac::v1::ClusterRole};
use karmada_api::{ClusterPropagationPolicy, ClusterView, names};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::{create, merge, merge_status},
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::PropagationFleet,
    wait::until,
};
use serde_json::{Value, json};

use super::record::ran;
use super::{
    ROLE, WEB, data, deployed, deployments, has_condition, has_data, holds, maps, scale, set_data,
    suspend, until_work, with_settings, work_has,
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
    let status = json!({ "replicas": replicas });
    merge_status(&copies, WEB, &status).await?;
    until_work(fleet, Member(1), "Deployment", "observed", |work| {
        let status = work.and_then(|work| work.status.as_ref());
        let status = status.and_then(|status| status.manifest_statuses.first()?.status.as_ref());
        status.is_some_and(|status| status["replicas"] == replicas)
    })
    .await
}

/// Fails unless the one member has the `ConfigMap`, and the other one has not.
async fn is_only_in(fleet: &PropagationFleet, one: Member, other: Member) -> Result<()> {
    assert_eq!(
        maps(fleet.member(one)).get(WEB).await?.data,
        Some(data(&[("a", "1")]))
    );
    assert_eq!(maps(fleet.member(other)).get_opt(WEB).await?, None);
    Ok(())
}

/// Case P27: a cluster that is lost while paused has its replacement at the resume; its copies are not
/// deleted.
async fn lost_cluster_is_replaced(server: ApiKind) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    let one_of_two = json!({ "placement": {
        "clusterAffinity": { "clusterNames": ["member1", "member2"] },
        "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
    } });
    let (fleet, _programs) = with_settings(server, 2, one_of_two).await?;
    has_data(&fleet, first, &[("a", "1")]).await?;
    suspend(&fleet, json!({ "dispatching": true })).await?;
    holds(&fleet, first, "1").await?;
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    clusters
        .delete(&first.name(), &DeleteParams::default())
        .await?;
    holds(&fleet, next, "1").await?;
    is_only_in(&fleet, first, next).await?;

    suspend(&fleet, Value::Null).await?;
    has_data(&fleet, next, &[("a", "1")]).await?;
    has_data(&fleet, first, &[("a", "1")]).await
}

fn rules(verb: &str) -> Value {
    json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] }])
}

/// Waits until the role in the first member allows this.
async fn allows(fleet: &PropagationFleet, verb: &str) -> Result<()> {
    let copies: Api<ClusterRole> = Api::all(fleet.member(Member(1)).client());
    until(&copies, ROLE, verb, |role| {
        let rules = role.and_then(|role| role.rules.as_ref());
        rules.is_some_and(|rules| rules[0].verbs == [verb])
    })
    .await?;
    Ok(())
}

/// Waits until the role's Work is suspended and holds this verb.
async fn holds_role(fleet: &PropagationFleet, verb: &str) -> Result<()> {
    let work = names::work("ClusterRole", "", ROLE);
    let what = format!("suspended with {verb}");
    until(&fleet.works(Member(1)), &work, &what, |work| {
        work.is_some_and(|work| {
            let manifest = work.spec.workload.manifests.first();
            let held = manifest.and_then(|manifest| manifest.pointer("/rules/0/verbs/0"));
            has_condition(work, "Dispatching", "False") && held == Some(&json!(verb))
        })
    })
    .await?;
    Ok(())
}

/// Case P25: a cluster's policy pauses templates of a namespace and of none.
async fn cluster_policy_pauses_both_scopes(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let fleet = &fleet;
    let templates: Api<ClusterRole> = Api::all(fleet.karmada.client());
    let role = json!({ "metadata": { "name": ROLE }, "rules": rules("get") });
    create(&templates, role).await?;
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    let selectors = json!([
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": ROLE },
        { "apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": WEB },
    ]);
    let spec = json!({ "resourceSelectors": selectors, "placement": {} });
    fleet.create_cluster_policy(WEB, spec).await?;
    allows(fleet, "get").await?;
    has_data(fleet, Member(1), &[("a", "1")]).await?;

    let policies: Api<ClusterPropagationPolicy> = Api::all(fleet.karmada.client());
    let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
    merge(&policies, WEB, &pause).await?;
    holds(fleet, Member(1), "1").await?;
    holds_role(fleet, "get").await?;
    let edit = json!({ "rules": rules("list") });
    merge(&templates, ROLE, &edit).await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    holds(fleet, Member(1), "2").await?;
    holds_role(fleet, "list").await?;
    allows(fleet, "get").await?;
    has_data(fleet, Member(1), &[("a", "1")]).await?;

    let resume = json!({ "spec": { "suspension": null } });
    merge(&policies, WEB, &resume).await?;
    allows(fleet, "list").await?;
    has_data(fleet, Member(1), &[("a", "2")]).await
}

on_both!(
    long:
    pause_ends_a_fight,
    lost_cluster_is_replaced,
    cluster_policy_pauses_both_scopes,
);
