//! The objects that a template refers to follow it into the members.

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use pipeline_tests::{
    api::{create, merge},
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use super::{
    WEB, change, deployment, deployments, divided, has_data, has_image, maps, policy_applied,
};

const FIRST: Member = Member(1);
const SECOND: Member = Member(2);

/// A deployment that refers to the `ConfigMap` and the Secret of its name.
fn referring() -> Value {
    let mut deployment = deployment("web:1");
    deployment["spec"]["template"]["spec"]["volumes"] = json!([
        { "name": "settings", "configMap": { "name": WEB } },
        { "name": "keys", "secret": { "secretName": WEB } },
    ]);
    deployment
}

/// A Lazy policy that places the deployment and its dependencies in one member.
fn lazily(member: Member) -> Value {
    let mut policy = divided(&[member]);
    policy["propagateDeps"] = true.into();
    policy["activationPreference"] = "Lazy".into();
    policy
}

async fn create_dependencies(fleet: &PropagationFleet) -> Result<()> {
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    let keys = json!({ "metadata": { "name": WEB }, "stringData": { "key": "secret" } });
    let secrets: Api<Secret> = namespaced(fleet.karmada.client());
    create(&secrets, keys).await
}

/// Case P38: dependencies follow a Lazy policy when the template does.
async fn dependencies_move_with_an_edit(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let _programs = fleet.run().await?;
    fleet.create_policy(WEB, lazily(FIRST)).await?;
    create_dependencies(&fleet).await?;
    create(&deployments(&fleet.karmada), referring()).await?;
    has_image(&fleet, FIRST, "web:1").await?;
    has_data(&fleet, FIRST, &[("a", "1")]).await?;

    change(&fleet, WEB, lazily(SECOND)).await?;
    policy_applied(&fleet, "Deployment", "False", "waits for the next edit").await?;
    has_image(&fleet, FIRST, "web:1").await?;
    has_data(&fleet, FIRST, &[("a", "1")]).await?;
    assert!(maps(fleet.member(SECOND)).get_opt(WEB).await?.is_none());

    let edit = json!({ "metadata": { "annotations": { "edited": "1" } } });
    let templates = deployments(&fleet.karmada);
    merge(&templates, WEB, &edit).await?;
    has_image(&fleet, SECOND, "web:1").await?;
    has_data(&fleet, SECOND, &[("a", "1")]).await?;
    let copies = maps(fleet.member(FIRST));
    until(&copies, WEB, "gone", |copy| copy.is_none()).await?;
    Ok(())
}

on_both!(long: dependencies_move_with_an_edit);
