//! What goes on while dispatching is suspended: conditions, deletions, the members' own changes.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::names;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, create},
    wait::{until, until_event},
};
use serde_json::{Value, json};

use super::{
    ROLE, WEB, all_have, all_hold, change_cluster_policy, deployed, has_condition, has_data, holds,
    maps, set_data, set_image, suspend, until_work, with_settings, work_has,
};

/// Waits until the `ConfigMap` is gone from a member.
async fn is_gone(fleet: &PropagationFleet, member: Member) -> Result<()> {
    until(&maps(fleet.member(member)), WEB, "gone", |copy| {
        copy.is_none()
    })
    .await?;
    Ok(())
}

/// Cases P22 and P23: while paused, drift stays, and a deleted binding takes its copies with it.
async fn pause_holds_no_deletion(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = with_settings(server, 1, json!({})).await?;
    let fleet = &fleet;
    has_data(fleet, Member(1), &[("a", "1")]).await?;

    suspend(fleet, json!({ "dispatching": true })).await?;
    holds(fleet, Member(1), "1").await?;
    set_data(fleet.member(Member(1)), json!({ "a": "drifted" })).await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    holds(fleet, Member(1), "2").await?;
    has_data(fleet, Member(1), &[("a", "drifted")]).await?;

    fleet
        .bindings()
        .delete(&names::binding("ConfigMap", WEB), &DeleteParams::default())
        .await?;
    is_gone(fleet, Member(1)).await
}

/// Case P22: a policy that is deleted while it pauses takes its claims along; the copies and the pause stay.
async fn deleted_policy_leaves_its_pause(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = with_settings(server, 1, json!({})).await?;
    let fleet = &fleet;
    has_data(fleet, Member(1), &[("a", "1")]).await?;
    suspend(fleet, json!({ "dispatching": true })).await?;
    holds(fleet, Member(1), "1").await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    holds(fleet, Member(1), "2").await?;
    let policies = fleet.policies();
    policies.delete(WEB, &DeleteParams::default()).await?;
    until(&policies, WEB, "gone", |policy| policy.is_none()).await?;
    let template = maps(&fleet.karmada).get(WEB).await?;
    assert!(
        !template
            .metadata
            .labels
            .unwrap_or_default()
            .contains_key(names::POLICY_ID)
    );
    let name = PropagationFleet::work_name("ConfigMap", WEB);
    assert!(fleet.works(Member(1)).get(&name).await?.is_suspended());
    has_data(fleet, Member(1), &[("a", "1")]).await
}

/// Case P19: a suspended Work says so in its spec, a condition and an Event; the binding names the clusters.
async fn suspension_is_shown(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = with_settings(server, 2, json!({})).await?;
    pause_one_member(&fleet).await?;
    let work = PropagationFleet::work_name("ConfigMap", WEB);
    for (_, _, message) in [SUSPENDED, DISPATCHED] {
        let text = format!("WorkDispatching {message}");
        until_event(&fleet.karmada.client(), "Work", &work, &text).await?;
    }
    Ok(())
}

/// Pauses one of two members, edits the `ConfigMap`, and resumes.
async fn pause_one_member(fleet: &PropagationFleet) -> Result<()> {
    all_have(fleet, "1").await?;
    let paused = json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } });
    suspend(fleet, paused).await?;
    holds(fleet, Member(2), "1").await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    holds(fleet, Member(2), "2").await?;
    has_data(fleet, Member(1), &[("a", "2")]).await?;

    dispatches(fleet, Member(2), SUSPENDED).await?;
    dispatches(fleet, Member(1), DISPATCHED).await?;

    let binding = names::binding("ConfigMap", WEB);
    until(
        &fleet.bindings(),
        &binding,
        "suspended for member2",
        |binding| {
            let status = binding.and_then(|binding| binding.status.as_ref());
            let conditions = status.and_then(|status| status.conditions.as_deref());
            let is = |kind: &str, reason: &str| {
                let mut conditions = conditions.unwrap_or_default().iter();
                conditions.any(|condition| {
                    condition.type_ == kind
                        && condition.status == "False"
                        && condition.reason == reason
                        && condition.message.contains("member2")
                        && !condition.message.contains("member1")
                })
            };
            is("Dispatching", "SuspendDispatching") && is("FullyApplied", "DispatchSuspended")
        },
    )
    .await?;

    suspend(fleet, Value::Null).await?;
    has_data(fleet, Member(2), &[("a", "2")]).await?;
    dispatches(fleet, Member(2), DISPATCHED).await
}

/// The status, reason and message of a condition, with the texts that users know.
type Shown = (&'static str, &'static str, &'static str);

const SUSPENDED: Shown = (
    "False",
    "SuspendDispatching",
    "Work dispatching is in a suspended state.",
);

const DISPATCHED: Shown = (
    "True",
    "Dispatching",
    "Work is being dispatched to member clusters.",
);

/// Waits until the Work of the `ConfigMap` in `member` shows in its spec and by a condition whether it is
/// suspended.
async fn dispatches(fleet: &PropagationFleet, member: Member, shown: Shown) -> Result<()> {
    until_work(fleet, member, "ConfigMap", shown.1, |work| {
        work.is_some_and(|work| {
            let condition = work.condition("Dispatching");
            work.spec.suspend_dispatching == Some(shown == SUSPENDED)
                && condition.is_some_and(|condition| {
                    (
                        condition.status.as_str(),
                        condition.reason.as_str(),
                        condition.message.as_str(),
                    ) == shown
                })
        })
    })
    .await
}

/// A start on a paused fleet writes nothing but leases, neither here nor in a member.
async fn restart_writes_nothing(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let (fleet, programs) = deployed(server, &members).await?;
    let names = json!({ "clusterNames": ["member2", "unknown"] });
    suspend(&fleet, json!({ "dispatchingOnClusters": names })).await?;
    work_has(&fleet, Member(2), "Dispatching", "False", "web:1").await?;
    set_image(&fleet, "web:2").await?;
    work_has(&fleet, Member(1), "Applied", "True", "web:2").await?;
    let client = fleet.karmada.client();
    until_event(&client, "PropagationPolicy", WEB, "UnknownCluster").await?;
    programs.settled().await?;
    programs.stop().await?;
    let apis = [
        &fleet.karmada,
        fleet.member(Member(1)),
        fleet.member(Member(2)),
    ];
    let mut before = Vec::new();
    for api in apis {
        before.push(api.successful_writes().await?);
    }
    let programs = fleet.run().await?;
    programs.settled().await?;
    programs.stop().await?;
    for (api, before) in apis.into_iter().zip(before) {
        let written = api.successful_writes().await?.since(&before);
        assert_eq!(written.to_string(), "no writes");
    }
    Ok(())
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
    all_have(fleet, "1").await?;

    let suspend = async |suspension: Value| {
        change_cluster_policy(fleet, WEB, json!({ "suspension": suspension })).await
    };
    suspend(json!({ "dispatching": true })).await?;
    all_hold(fleet, "1").await?;
    holds_role(fleet, "get").await?;
    let edit = Patch::Merge(json!({ "rules": rules("list") }));
    let parameters = PatchParams::default();
    templates.patch(ROLE, &parameters, &edit).await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    all_hold(fleet, "2").await?;
    holds_role(fleet, "list").await?;
    allows(fleet, "get").await?;
    all_have(fleet, "1").await?;

    suspend(Value::Null).await?;
    allows(fleet, "list").await?;
    all_have(fleet, "2").await
}

on_both!(
    long:
    pause_holds_no_deletion,
    deleted_policy_leaves_its_pause,
    suspension_is_shown,
    restart_writes_nothing,
    cluster_policy_pauses_both_scopes,
);
