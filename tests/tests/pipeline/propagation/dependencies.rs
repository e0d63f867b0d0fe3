//! The objects that a template refers to follow it into the members.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use karmada_api::names;
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, PropagationPrograms, create, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use super::lazy::{edit, policy_applied, second_passes, until_claimed};
use super::{WEB, change, deployment, deployments, divided, has_data, has_image, maps, set_data};

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

/// A policy that lets dependencies follow the deployment into these members.
fn following(members: &[Member]) -> Value {
    let mut policy = divided(members);
    policy["propagateDeps"] = true.into();
    policy
}

/// A Lazy policy that places the deployment in one member.
fn lazily(member: Member) -> Value {
    let mut policy = following(&[member]);
    policy["activationPreference"] = "Lazy".into();
    policy
}

/// Returns a Lazy policy that places the deployment in one member, and selects its `ConfigMap`, too.
fn both(member: Member, follow: bool) -> Value {
    let mut policy = lazily(member);
    policy["propagateDeps"] = follow.into();
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let deployment = policy["resourceSelectors"][0].take();
    policy["resourceSelectors"] = json!([deployment, map]);
    policy
}

async fn create_dependencies(fleet: &PropagationFleet) -> Result<()> {
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    let keys = json!({ "metadata": { "name": WEB }, "stringData": { "key": "secret" } });
    let secrets: Api<Secret> = namespaced(fleet.karmada.client());
    create(&secrets, keys).await
}

/// Starts a fleet with two members, and its programs, and waits until both have the deployment and what it
/// refers to.
async fn followed(server: ApiKind) -> Result<(PropagationFleet, PropagationPrograms)> {
    let fleet = PropagationFleet::start(server, 2).await?;
    create_dependencies(&fleet).await?;
    create(&deployments(&fleet.karmada), referring()).await?;
    let policy = following(&[FIRST, SECOND]);
    fleet.create_policy(WEB, policy).await?;
    let programs = fleet.run().await?;
    for member in [FIRST, SECOND] {
        has_image(&fleet, member, "web:1").await?;
        has_data(&fleet, member, &[("a", "1")]).await?;
        let secrets: Api<Secret> = namespaced(fleet.member(member).client());
        until(&secrets, WEB, "there", |secret: Option<&Secret>| {
            secret.is_some()
        })
        .await?;
    }
    Ok((fleet, programs))
}

async fn has_no_map(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let copies = maps(fleet.member(member));
    until(&copies, WEB, "gone", |copy: Option<&ConfigMap>| {
        copy.is_none()
    })
    .await?;
    Ok(())
}

/// The plain way, and back: an edit of a dependency flows, what is dropped goes, and the rest goes with the
/// template.
async fn dependencies_follow_a_deployment(server: ApiKind) -> Result<()> {
    let (mut fleet, programs) = followed(server).await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    for member in [FIRST, SECOND] {
        has_data(&fleet, member, &[("a", "2")]).await?;
    }
    change(&fleet, WEB, following(&[SECOND])).await?;
    has_no_map(&fleet, FIRST).await?;
    has_data(&fleet, SECOND, &[("a", "2")]).await?;

    // Who starts anew finds everything as it is.
    programs.settled().await?;
    programs.rest().await?;
    drop(programs);
    let before = fleet.karmada.successful_writes().await?;
    let programs = fleet.run().await?;
    programs.settled().await?;
    programs.rest().await?;
    let writes = fleet.karmada.successful_writes().await?;
    let writes = writes.since(&before).to_string();
    assert!(!writes.contains("bindings"), "{writes}");
    assert!(!writes.contains("works"), "{writes}");

    fleet.karmada.start_controllers().await?;
    let templates = deployments(&fleet.karmada);
    templates.delete(WEB, &DeleteParams::default()).await?;
    has_no_map(&fleet, SECOND).await?;
    let bindings = fleet.bindings();
    let name = names::binding("Deployment", WEB);
    until(&bindings, &name, "gone", |binding| binding.is_none()).await?;
    assert!(maps(&fleet.karmada).get_opt(WEB).await?.is_some());
    Ok(())
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
    policy_applied(&fleet, "False", "waits for the next edit").await?;
    has_image(&fleet, FIRST, "web:1").await?;
    has_data(&fleet, FIRST, &[("a", "1")]).await?;
    assert!(maps(fleet.member(SECOND)).get_opt(WEB).await?.is_none());

    edit(&fleet, "first").await?;
    has_image(&fleet, SECOND, "web:1").await?;
    has_data(&fleet, SECOND, &[("a", "1")]).await?;
    has_no_map(&fleet, FIRST).await
}

/// Case P39: a dependency that a Lazy policy selects, too, has no binding of that policy before it is edited,
/// and follows the template once the policy says so and the template is edited.
async fn dependencies_begin_with_an_edit(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    create_dependencies(&fleet).await?;
    let templates = deployments(&fleet.karmada);
    create(&templates, referring()).await?;
    second_passes(&fleet).await?;
    fleet.create_policy(WEB, both(FIRST, false)).await?;
    let programs = fleet.run().await?;
    let name = names::binding("ConfigMap", WEB);
    until_claimed(&maps(&fleet.karmada)).await?;
    programs.rest().await?;
    assert_eq!(fleet.bindings().get_opt(&name).await?, None);
    edit(&fleet, "first").await?;
    has_image(&fleet, FIRST, "web:1").await?;
    assert_eq!(fleet.bindings().get_opt(&name).await?, None);

    change(&fleet, WEB, both(SECOND, true)).await?;
    policy_applied(&fleet, "False", "waits for the next edit").await?;
    has_image(&fleet, FIRST, "web:1").await?;
    assert_eq!(fleet.bindings().get_opt(&name).await?, None);

    edit(&fleet, "second").await?;
    has_image(&fleet, SECOND, "web:1").await?;
    has_data(&fleet, SECOND, &[("a", "1")]).await?;
    let binding = fleet.bindings().get(&name).await?;
    assert_eq!(binding.spec.placement, None);
    Ok(())
}

on_both!(
    long:
    dependencies_follow_a_deployment,
    dependencies_move_with_an_edit,
    dependencies_begin_with_an_edit,
);
