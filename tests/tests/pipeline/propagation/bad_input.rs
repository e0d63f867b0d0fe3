//! Bad input, and what members refuse: each has one clear message and holds up nothing else.

use anyhow::Result;
use k8s_openapi::api::{
    core::v1::{ResourceQuota, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{
    both,
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, create, namespaced},
    test_name,
    wait::{until, until_event},
};
use serde_json::json;

use super::{WEB, has_data, maps, until_work};

/// Waits until the Work of the `ConfigMap` in `member` was not applied, for a reason that has `text`.
async fn is_refused(fleet: &PropagationFleet, member: Member, text: &str) -> Result<()> {
    until_work(fleet, member, "ConfigMap", text, |work| {
        let applied = work.and_then(|work| work.condition("Applied"));
        applied.is_some_and(|applied| applied.status == "False" && applied.message.contains(text))
    })
    .await
}

/// Creates a `ConfigMap` and a policy that puts it into every member.
async fn everywhere(fleet: &PropagationFleet) -> Result<()> {
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy(WEB, spec).await
}

async fn policies_that_make_no_sense_hold_up_no_other(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let selects = |api_version: &str, kind: &str, name: &str| json!([{ "apiVersion": api_version, "kind": kind, "name": name }]);
    let everywhere = json!({});
    let contradictory = json!({
        "clusterAffinity": {},
        "clusterAffinities": [{ "affinityName": "first" }],
    });
    for (name, selectors, placement) in [
        ("absent", selects("v1", "ConfigMap", "absent"), &everywhere),
        (
            "unknown-kind",
            selects("widgets.test.io/v1", "Widget", WEB),
            &everywhere,
        ),
        (
            "unknown-version",
            selects("v7", "ConfigMap", WEB),
            &everywhere,
        ),
        (
            "contradictory",
            selects("v1", "ConfigMap", WEB),
            &contradictory,
        ),
        ("zz-everything", selects("v1", "ConfigMap", ""), &everywhere),
    ] {
        let spec = json!({ "resourceSelectors": selectors, "placement": placement });
        fleet.create_policy(name, spec).await?;
    }
    let _programs = fleet.run().await?;
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    let client = fleet.karmada.client();
    let text = "clusterAffinities cannot co-exist with clusterAffinity";
    until_event(&client, "PropagationPolicy", "contradictory", text).await
}

async fn a_cluster_without_usable_credentials_is_named_and_holds_up_no_other(
    server: ApiKind,
) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let name = Member(2).name();
    let secrets: Api<Secret> = Api::namespaced(fleet.karmada.client(), "karmada-cluster");
    let no_token = Patch::Merge(json!({ "data": { "token": null, "kubeconfig": "eA==" } }));
    secrets
        .patch(&name, &PatchParams::default(), &no_token)
        .await?;
    everywhere(&fleet).await?;
    let _programs = fleet.run().await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    is_refused(&fleet, Member(2), "token").await
}

/// Close to the 1.5 MiB that etcd takes, with what binding, Work and member add to it.
async fn a_template_of_1_4_mb_reaches_its_members(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let names: Vec<String> = (0..14_000).map(|number| format!("{number:0>97}")).collect();
    let large = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
        "resourceNames": names });
    let role = json!({ "metadata": { "name": WEB }, "rules": [large] });
    assert!(role.to_string().len() > 1_400_000);
    let templates: Api<ClusterRole> = Api::all(fleet.karmada.client());
    create(&templates, role).await?;
    let selector = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_cluster_policy(WEB, spec).await?;

    let copies: Api<ClusterRole> = Api::all(fleet.member(Member(1)).client());
    until(&copies, WEB, "whole", |copy| {
        let first = copy.and_then(|copy| copy.rules.as_deref()?.first());
        first.is_some_and(|large| large.resource_names.as_ref() == Some(&names))
    })
    .await?;
    Ok(())
}

on_both!(
    policies_that_make_no_sense_hold_up_no_other,
    a_cluster_without_usable_credentials_is_named_and_holds_up_no_other,
    a_template_of_1_4_mb_reaches_its_members,
);

// On the real API only: the embedded one has no quotas.
mod quota {
    mod real {
        use super::super::*;

        #[test]
        fn a_member_without_room_says_so_and_gets_the_copy_once_there_is_some() {
            both::run(test_name!(), ApiKind::Real, out_of_quota);
        }
    }
}

async fn out_of_quota(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let full = fleet.member(Member(2));
    full.namespace(NAMESPACE).await?;
    let quotas: Api<ResourceQuota> = namespaced(full.client());
    let none = json!({ "hard": { "configmaps": "0" } });
    let quota = json!({ "metadata": { "name": WEB }, "spec": none });
    create(&quotas, quota).await?;
    // In place of the controller of quotas.
    let used = json!({ "configmaps": "0" });
    let status = Patch::Merge(json!({ "status": { "hard": none["hard"], "used": used } }));
    let parameters = PatchParams::default();
    quotas.patch_status(WEB, &parameters, &status).await?;

    everywhere(&fleet).await?;
    let _programs = fleet.run().await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    is_refused(&fleet, Member(2), "exceeded quota").await?;
    let deletion = DeleteParams::default();
    quotas.delete(WEB, &deletion).await?;
    has_data(&fleet, Member(2), &[("a", "1")]).await
}
