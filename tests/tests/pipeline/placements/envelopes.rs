//! Objects that would have an effect on the hub are placed in envelopes.

use anyhow::{Context, Result};
use fleet_api::{ClusterResourceEnvelope, ResourceEnvelope};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::DynamicObject,
    core::{GroupVersionKind, TypeMeta},
    discovery::{Scope, pinned_kind},
};
use pipeline_tests::{
    api::{create, merge},
    control_plane::ControlPlane,
    wait::until,
};
use serde_json::{Map, Value, from_value, json};

use super::{Stage, stories};

const NAME: &str = "wrapped";
const CONFIG_MAP: &str = "envelope";

/// Returns an object of each kind for which KubeFleet's users are told to wrap it.
fn with_effects() -> Vec<Value> {
    let role =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" });
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let queue = json!({ "name": "global-default" });
    [
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            json!({}),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            json!({}),
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            json!({ "roleRef": role }),
        ),
        (
            "v1",
            "ResourceQuota",
            json!({ "spec": { "hard": { "pods": "10" } } }),
        ),
        (
            "storage.k8s.io/v1",
            "StorageClass",
            json!({ "provisioner": "example.com/disks" }),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            json!({ "spec": { "priorityLevelConfiguration": queue } }),
        ),
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({ "value": 10 }),
        ),
        (
            "networking.k8s.io/v1",
            "IngressClass",
            json!({ "spec": { "controller": "example.com/x" } }),
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({ "spec": { "defaultBackend": backend } }),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({ "spec": { "podSelector": {} } }),
        ),
    ]
    .map(|(api_version, kind, mut object)| {
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({ "name": NAME });
        if ["ResourceQuota", "Ingress", "NetworkPolicy"].contains(&kind) {
            object["metadata"]["namespace"] = json!(NAME);
        }
        object
    })
    .into()
}

/// Returns the way to objects of the kind of a manifest, unless the API does not serve it.
async fn of_kind(api: &ControlPlane, manifest: &Value) -> Result<Option<Api<DynamicObject>>> {
    let kind = GroupVersionKind::try_from(from_value::<TypeMeta>(manifest.clone())?)?;
    let (resource, capabilities) = match pinned_kind(&api.client(), &kind).await {
        Ok(found) => found,
        Err(kube::Error::Discovery(_)) => return Ok(None),
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let client = api.client();
    Ok(Some(match capabilities.scope {
        Scope::Namespaced => Api::namespaced_with(client, NAME, &resource),
        Scope::Cluster => Api::all_with(client, &resource),
    }))
}

/// Waits until each member has an object of this manifest, and checks that the hub has none.
async fn only_in_members(stage: &Stage, manifest: &Value) -> Result<()> {
    let name = manifest["metadata"]["name"].as_str().context("no name")?;
    for member in stage.fleet.members() {
        let objects = of_kind(stage.fleet.member(member), manifest).await?;
        let objects = objects.context("not served")?;
        until(&objects, name, "there", |found| found.is_some()).await?;
    }
    let objects = of_kind(&stage.fleet.hub, manifest).await?;
    let on_hub = objects.context("not served")?.get_opt(name).await?;
    assert!(on_hub.is_none(), "{on_hub:?}");
    Ok(())
}

/// Puts each object into an envelope of a kind on the hub, and places these: those with effects as texts of a `ConfigMap`.
async fn place_wrapped(
    stage: &Stage,
    with_effects: &[Value],
    [role, map]: [&Value; 2],
) -> Result<()> {
    let hub = stage.fleet.hub.client();
    let data: Map<_, _> = with_effects
        .iter()
        .map(|manifest| {
            let kind = manifest["kind"].as_str().unwrap_or_default();
            (format!("{kind}.yaml"), Value::from(manifest.to_string()))
        })
        .collect();
    let annotations = json!({ "kubernetes-fleet.io/envelope-configmap": "true" });
    let of_map =
        json!({ "metadata": { "name": CONFIG_MAP, "annotations": annotations }, "data": data });
    create(&Api::<ConfigMap>::namespaced(hub.clone(), NAME), of_map).await?;
    let of_cluster = json!({ "metadata": { "name": NAME }, "data": { "role": role } });
    create(
        &Api::<ClusterResourceEnvelope>::all(hub.clone()),
        of_cluster,
    )
    .await?;
    let of_namespace = json!({ "metadata": { "name": NAME }, "data": { "map": map } });
    create(
        &Api::<ResourceEnvelope>::namespaced(hub, NAME),
        of_namespace,
    )
    .await?;
    let selectors = json!([
        { "group": "", "version": "v1", "kind": "Namespace", "name": NAME },
        { "group": "placement.kubernetes-fleet.io", "version": "v1beta1",
            "kind": "ClusterResourceEnvelope", "name": NAME },
    ]);
    let strategy = json!({ "rollingUpdate": { "unavailablePeriodSeconds": 1 } });
    let spec = json!({ "resourceSelectors": selectors, "strategy": strategy });
    stage.fleet.place(NAME, spec).await
}

/// Cases F37 and F38: each member gets the objects in envelopes of all three kinds, and the hub has no such object. One bad
/// entry is named, and nothing changes until it is mended.
async fn wrapped_objects_reach_members(stage: &mut Stage) -> Result<()> {
    stage.fill(NAME).await?;
    let mut wrapped = Vec::new();
    for manifest in with_effects() {
        // The embedded API has few of them.
        if of_kind(&stage.fleet.hub, &manifest).await?.is_some() {
            wrapped.push(manifest);
        }
    }
    assert!(wrapped.len() >= 3, "{wrapped:?}");
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "wrapped-role" }, "rules": [] });
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "inner", "namespace": NAME }, "data": { "a": "b" } });
    place_wrapped(stage, &wrapped, [&role, &map]).await?;
    stage.until_complete(NAME).await?;
    for manifest in wrapped.iter().chain([&role, &map]) {
        only_in_members(stage, manifest).await?;
    }
    bad_entry_is_named(stage).await?;
    stage.remove(NAME).await?;
    for member in stage.fleet.members() {
        let roles = of_kind(stage.fleet.member(member), &role).await?;
        let roles = roles.context("not served")?;
        until(&roles, "wrapped-role", "gone", |found| found.is_none()).await?;
    }
    Ok(())
}

async fn bad_entry_is_named(stage: &Stage) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(stage.fleet.hub.client(), NAME);
    let bad = json!({ "data": { "added": "a: [" } });
    merge(&maps, CONFIG_MAP, &bad).await?;
    stage.edit(NAME, "edited").await?;
    stage
        .until_status(NAME, "refused", |status| {
            let clusters = &status.placement_statuses;
            let mut told = clusters.iter().flat_map(|one| &one.conditions);
            told.any(|one| {
                one.reason == "SyncWorkFailed"
                    && one
                        .message
                        .contains("ConfigMap wrapped/envelope cannot be opened: added is no YAML")
            })
        })
        .await?;
    for member in stage.fleet.members() {
        stage.until_value(member, NAME, "value").await?;
    }
    let mended = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "added", "namespace": NAME } });
    let mended = json!({ "data": { "added": mended.to_string() } });
    merge(&maps, CONFIG_MAP, &mended).await?;
    for member in stage.fleet.members() {
        stage.until_value(member, NAME, "edited").await?;
    }
    stage.until_complete(NAME).await
}

stories!(2: wrapped_objects_reach_members);
