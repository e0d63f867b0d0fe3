//! Kinds that scripts of users interpret.

use anyhow::Result;
use karmada_api::ResourceInterpreterCustomization;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, create},
    wait::until,
};
use serde_json::{Value, json};

use super::{
    WEB, a_restart_writes_nothing, deployment, deployments, divided, has_data, maps, until_work,
};

const GET_REPLICAS: &str = "
local kube = require('kube')
function GetReplicas(obj)
  return obj.spec.replicas * 2, kube.accuratePodRequirements(obj.spec.template)
end";
const REVISE_REPLICA: &str = "
function ReviseReplica(obj, replicas)
  obj.spec.replicas = replicas
  obj.spec.minReadySeconds = 5
  return obj
end";
const RETAIN: &str = "
function Retain(desired, observed)
  desired.spec.paused = observed.spec.paused
  return desired
end";
const REFLECT_STATUS: &str = "
function ReflectStatus(obj)
  if obj.status == nil then return {} end
  return { ready = obj.status.readyReplicas, at = os.date('!%Y-%m-%dT%H:%M:%SZ') }
end";
const INTERPRET_HEALTH: &str = "
function InterpretHealth(obj)
  return obj.status ~= nil and obj.status.readyReplicas ~= nil
end";
const AGGREGATE_STATUS: &str = "
function AggregateStatus(obj, items)
  if items == nil then return obj end
  local ready = 0
  for _, item in ipairs(items) do
    if item.status ~= nil and item.status.ready ~= nil then ready = ready + item.status.ready end
  end
  obj.status = { replicas = ready, readyReplicas = ready }
  return obj
end";
const GET_DEPENDENCIES: &str = "
function GetDependencies(obj)
  return { { apiVersion = 'v1', kind = 'ConfigMap', namespace = obj.metadata.namespace, name = 'web' } }
end";

/// The scripts of a customization, by the fields that they stand in.
fn scripts() -> Value {
    let scripts = [
        ("replicaResource", GET_REPLICAS),
        ("replicaRevision", REVISE_REPLICA),
        ("retention", RETAIN),
        ("statusReflection", REFLECT_STATUS),
        ("healthInterpretation", INTERPRET_HEALTH),
        ("statusAggregation", AGGREGATE_STATUS),
        ("dependencyInterpretation", GET_DEPENDENCIES),
    ];
    let scripts = scripts.into_iter();
    scripts
        .map(|(field, source)| (field.to_owned(), json!({ "luaScript": source })))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Starts a fleet whose Deployments scripts interpret, and which has one.
async fn customized(server: ApiKind) -> Result<PropagationFleet> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let customizations: Api<ResourceInterpreterCustomization> = Api::all(fleet.karmada.client());
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
    let spec = json!({ "target": target, "customizations": scripts() });
    create(
        &customizations,
        json!({ "metadata": { "name": WEB }, "spec": spec }),
    )
    .await?;
    let map = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), map).await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    let mut policy = divided(&[Member(1), Member(2)]);
    policy["propagateDeps"] = json!(true);
    fleet.create_policy(WEB, policy).await?;
    Ok(fleet)
}

/// Waits until the copy in a member has this many replicas.
async fn has_replicas(fleet: &PropagationFleet, member: Member, wanted: i32) -> Result<()> {
    let copies = deployments(fleet.member(member));
    until(&copies, WEB, &format!("{wanted} replicas"), |copy| {
        let spec = copy.and_then(|copy| copy.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(wanted))
    })
    .await?;
    Ok(())
}

/// Cases I65 and I68: scripts say how many replicas a Deployment has, how a copy looks, what it keeps, what is reported
/// of it, when it is well, what the status is, and what follows. Without them it is as it was.
async fn scripts_interpret_a_kind(server: ApiKind) -> Result<()> {
    let fleet = customized(server).await?;
    let _programs = fleet.run().await?;
    for member in [Member(1), Member(2)] {
        // Twice the template's, divided.
        has_replicas(&fleet, member, 4).await?;
        has_data(&fleet, member, &[("a", "1")]).await?;
        let copies = deployments(fleet.member(member));
        let paused = Patch::Merge(json!({ "spec": { "paused": true, "minReadySeconds": 9 } }));
        copies.patch(WEB, &PatchParams::default(), &paused).await?;
        // In place of the member's own controllers.
        let status = Patch::Merge(json!({ "status": { "replicas": 4, "readyReplicas": 3 } }));
        copies
            .patch_status(WEB, &PatchParams::default(), &status)
            .await?;
        until(&copies, WEB, "paused and otherwise right", |copy| {
            let spec = copy.and_then(|copy| copy.spec.as_ref());
            spec.is_some_and(|spec| spec.paused == Some(true) && spec.min_ready_seconds == Some(5))
        })
        .await?;
        until_work(&fleet, member, "Deployment", "reported", |work| {
            let status = work.and_then(|work| work.status.as_ref());
            let mut statuses = status
                .into_iter()
                .flat_map(|status| &status.manifest_statuses);
            statuses.any(|one| {
                let ready = one.status.as_ref().and_then(|status| status.get("ready"));
                one.health.as_deref() == Some("Healthy") && ready == Some(&json!(3))
            })
        })
        .await?;
    }
    let templates = deployments(&fleet.karmada);
    until(&templates, WEB, "ready everywhere", |template| {
        let status = template.and_then(|template| template.status.as_ref());
        status.is_some_and(|status| status.ready_replicas == Some(6))
    })
    .await?;

    let customizations: Api<ResourceInterpreterCustomization> = Api::all(fleet.karmada.client());
    customizations.delete(WEB, &DeleteParams::default()).await?;
    has_replicas(&fleet, Member(1), 2).await
}

/// Cases I77 and I78: what a script keeps in a member, and the time that it puts into a status, are no reason to write:
/// a second start writes nothing.
async fn a_second_start_writes_nothing(server: ApiKind) -> Result<()> {
    let fleet = customized(server).await?;
    let programs = fleet.run().await?;
    let member = fleet.member(Member(1));
    has_replicas(&fleet, Member(1), 4).await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    let copies = deployments(member);
    let paused = Patch::Merge(json!({ "spec": { "paused": true } }));
    copies.patch(WEB, &PatchParams::default(), &paused).await?;
    let status = Patch::Merge(json!({ "status": { "replicas": 4, "readyReplicas": 3 } }));
    copies
        .patch_status(WEB, &PatchParams::default(), &status)
        .await?;
    let templates = deployments(&fleet.karmada);
    until(&templates, WEB, "ready in one", |template| {
        let status = template.and_then(|template| template.status.as_ref());
        status.is_some_and(|status| status.ready_replicas == Some(3))
    })
    .await?;
    a_restart_writes_nothing(&fleet, programs, Member(1)).await
}

on_both!(long: scripts_interpret_a_kind, a_second_start_writes_nothing);
