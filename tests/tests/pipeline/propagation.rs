//! A workload travels from a policy to the members, and a pause holds it.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use anyhow::Result;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap, rbac::v1::ClusterRole};
use karmada_api::{ClusterResourceBinding, OverridePolicy, ResourceBinding, names};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{Propagation, PropagationFleet, create, namespaced},
    wait::until,
};
use serde_json::{Value, json};

const WEB: &str = "web";
const IMAGE: &str = "/spec/template/spec/containers/0/image";

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": WEB, "namespace": NAMESPACE, "labels": { "app": WEB } },
        "spec": {
            "replicas": 4,
            "selector": { "matchLabels": { "app": WEB } },
            "template": {
                "metadata": { "labels": { "app": WEB } },
                "spec": { "containers": [{ "name": WEB, "image": image }] },
            },
        },
    })
}

/// A policy for the deployment: half of its replicas in each of two members.
fn divided(members: &[Member]) -> Value {
    let names: Vec<_> = members.iter().map(|member| member.name()).collect();
    let weight =
        |name: &String| json!({ "targetCluster": { "clusterNames": [name] }, "weight": 1 });
    json!({
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB }],
        "placement": {
            "clusterAffinity": { "clusterNames": names },
            "replicaScheduling": {
                "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {
                    "staticWeightList": names.iter().map(weight).collect::<Vec<_>>(),
                },
            },
        },
    })
}

/// Starts a fleet of these members and its programs, and waits until all members run the deployment in
/// its first version.
async fn deployed(server: ApiKind, members: &[Member]) -> Result<(PropagationFleet, Propagation)> {
    let fleet = PropagationFleet::start(server, u8::try_from(members.len())?).await?;
    let templates: Api<Deployment> = namespaced(fleet.karmada.client());
    create(&templates, deployment("web:1")).await?;
    fleet.create_policy(WEB, divided(members)).await?;
    let programs = fleet.run().await?;
    for &member in members {
        has_image(&fleet, member, "web:1").await?;
    }
    Ok((fleet, programs))
}

fn image(deployment: &Deployment) -> Option<String> {
    let value = serde_json::to_value(deployment).ok()?;
    Some(value.pointer(IMAGE)?.as_str()?.to_owned())
}

async fn has_image(fleet: &PropagationFleet, member: Member, wanted: &str) -> Result<()> {
    let deployments: Api<Deployment> = namespaced(fleet.member(member).client());
    let runs = |object: Option<&Deployment>| object.and_then(image).as_deref() == Some(wanted);
    until(&deployments, WEB, wanted, runs).await?;
    Ok(())
}

async fn set_image(fleet: &PropagationFleet, wanted: &str) -> Result<()> {
    let deployments: Api<Deployment> = namespaced(fleet.karmada.client());
    let containers = json!([{ "name": WEB, "image": wanted }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    deployments
        .patch(WEB, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

async fn suspend(fleet: &PropagationFleet, suspension: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "suspension": suspension } }));
    fleet
        .policies()
        .patch(WEB, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until the Work of the deployment in `member` has the condition.
async fn work_has(
    fleet: &PropagationFleet,
    member: Member,
    kind: &str,
    status: &str,
    image: &str,
) -> Result<()> {
    let name = PropagationFleet::work_name("Deployment", WEB);
    let what = format!("{kind} {status} with {image}");
    until(&fleet.works(member), &name, &what, |work| {
        work.is_some_and(|work| {
            let manifest = work.spec.workload.manifests.first();
            let runs = manifest.and_then(|manifest| manifest.pointer(IMAGE));
            let condition = work.condition(kind);
            condition.is_some_and(|condition| condition.status == status)
                && runs.and_then(Value::as_str) == Some(image)
        })
    })
    .await?;
    Ok(())
}

/// Case 1: a Deployment and a policy lead to a binding, Works, objects in the members with their share of
/// the replicas, and a status back.
async fn a_deployment_travels_to_its_members_and_its_status_back(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let members = [Member(1), Member(2)];
    let templates: Api<Deployment> = namespaced(fleet.karmada.client());
    create(&templates, deployment("web:1")).await?;
    let _programs = fleet.run().await?;
    fleet.create_policy(WEB, divided(&members)).await?;

    for member in members {
        has_image(&fleet, member, "web:1").await?;
        let deployments: Api<Deployment> = namespaced(fleet.member(member).client());
        let copy = deployments.get(WEB).await?;
        assert_eq!(copy.spec.as_ref().unwrap().replicas, Some(2));
        assert_eq!(
            copy.metadata.labels.as_ref().unwrap()[names::MANAGED],
            "true"
        );
        // In place of the member's own controllers.
        let status = json!({ "status": { "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            "availableReplicas": 2, "observedGeneration": copy.metadata.generation } });
        deployments
            .patch_status(WEB, &PatchParams::default(), &Patch::Merge(status))
            .await?;
    }
    is_fully_applied(&fleet).await?;
    until(&templates, WEB, "ready everywhere", |template| {
        let status = template.and_then(|template| template.status.as_ref());
        status.is_some_and(|status| status.ready_replicas == Some(4))
    })
    .await?;
    Ok(())
}

/// Cases 4 and 7: an edit reaches the members; what is changed or deleted there is put right.
async fn an_edit_reaches_the_members_and_drift_is_put_right(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = deployed(server, &[Member(1)]).await?;
    set_image(&fleet, "web:2").await?;
    has_image(&fleet, Member(1), "web:2").await?;

    let copies: Api<Deployment> = namespaced(fleet.member(Member(1)).client());
    let drift = Patch::Merge(json!({ "spec": { "paused": true, "replicas": 1 } }));
    copies.patch(WEB, &PatchParams::default(), &drift).await?;
    until(&copies, WEB, "as before", |copy| {
        let spec = copy.and_then(|copy| copy.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(4))
    })
    .await?;
    let first = copies.get(WEB).await?.metadata.uid;
    copies.delete(WEB, &DeleteParams::default()).await?;
    until(&copies, WEB, "created again", |copy| {
        copy.is_some_and(|copy| copy.metadata.uid != first)
    })
    .await?;
    Ok(())
}

/// Case 2: a cluster-scoped template has a `ClusterResourceBinding`.
async fn a_cluster_role_travels_by_a_cluster_policy(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let templates: Api<ClusterRole> = Api::all(fleet.karmada.client());
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    create(
        &templates,
        json!({ "metadata": { "name": "shop:reader" }, "rules": rules }),
    )
    .await?;
    let selector = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "name": "shop:reader" });
    let placement = json!({ "clusterAffinities": [
        { "affinityName": "first", "clusterNames": ["nowhere"] },
        { "affinityName": "second", "clusterNames": ["member1"] },
    ] });
    let spec = json!({ "resourceSelectors": [selector], "placement": placement });
    fleet.create_cluster_policy("reader", spec).await?;

    let copies: Api<ClusterRole> = Api::all(fleet.member(Member(1)).client());
    until(&copies, "shop:reader", "there", |role| role.is_some()).await?;
    let bindings: Api<ClusterResourceBinding> = Api::all(fleet.karmada.client());
    let name = names::binding("ClusterRole", "shop:reader");
    until(&bindings, &name, "in the second group", |binding| {
        let status = binding.and_then(|binding| binding.status.as_ref());
        let group = status.and_then(|status| status.scheduler_observed_affinity_name.as_deref());
        group == Some("second")
    })
    .await?;
    Ok(())
}

/// Case 16: a new version is held everywhere, goes to one member, then to the next; a version that is
/// taken back half-way never reaches the last.
async fn a_new_version_goes_member_by_member(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2), Member(3)];
    let (fleet, _programs) = deployed(server, &members).await?;

    suspend(&fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:1").await?;
    }
    set_image(&fleet, "web:2").await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:2").await?;
        assert_eq!(running(&fleet, member).await?, "web:1");
    }

    let paused = |names: &[&str]| {
        json!({ "dispatching": null,
        "dispatchingOnClusters": { "clusterNames": names } })
    };
    suspend(&fleet, paused(&["member2", "member3"])).await?;
    has_image(&fleet, Member(1), "web:2").await?;
    assert_eq!(running(&fleet, Member(2)).await?, "web:1");
    suspend(&fleet, paused(&["member3"])).await?;
    has_image(&fleet, Member(2), "web:2").await?;
    assert_eq!(running(&fleet, Member(3)).await?, "web:1");

    set_image(&fleet, "web:1").await?;
    has_image(&fleet, Member(1), "web:1").await?;
    has_image(&fleet, Member(2), "web:1").await?;
    let last: Api<Deployment> = namespaced(fleet.member(Member(3)).client());
    let before = last.get(WEB).await?.spec;
    suspend(&fleet, Value::Null).await?;
    work_has(&fleet, Member(3), "Dispatching", "True", "web:1").await?;
    assert_eq!(last.get(WEB).await?.spec, before);
    Ok(())
}

/// Cases 22 and 23: while paused, drift stays, and a deleted Work takes its object with it.
async fn a_pause_holds_repairs_and_no_deletion(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
    create(
        &maps,
        json!({ "metadata": { "name": WEB }, "data": { "a": "1" } }),
    )
    .await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    fleet
        .create_policy(
            WEB,
            json!({ "resourceSelectors": [selector], "placement": {} }),
        )
        .await?;
    let _programs = fleet.run().await?;
    let copies: Api<ConfigMap> = namespaced(fleet.member(Member(1)).client());
    until(&copies, WEB, "there", |copy| copy.is_some()).await?;

    suspend(&fleet, json!({ "dispatching": true })).await?;
    let work = PropagationFleet::work_name("ConfigMap", WEB);
    until(&fleet.works(Member(1)), &work, "suspended", |work| {
        work.and_then(|work| work.condition("Dispatching"))
            .is_some_and(|condition| condition.reason == "SuspendDispatching")
    })
    .await?;
    let drift = Patch::Merge(json!({ "data": { "a": "2" } }));
    copies.patch(WEB, &PatchParams::default(), &drift).await?;
    let edit = Patch::Merge(json!({ "data": { "b": "1" } }));
    maps.patch(WEB, &PatchParams::default(), &edit).await?;
    until(&fleet.works(Member(1)), &work, "edited", |work| {
        let manifest = work.and_then(|work| work.spec.workload.manifests.first());
        manifest.is_some_and(|manifest| manifest["data"]["b"] == "1")
    })
    .await?;
    assert_eq!(
        copies.get(WEB).await?.data.unwrap(),
        [("a".to_owned(), "2".to_owned())].into()
    );

    fleet
        .bindings()
        .delete(&names::binding("ConfigMap", WEB), &DeleteParams::default())
        .await?;
    until(&copies, WEB, "gone", |copy| copy.is_none()).await?;
    Ok(())
}

/// Cases 10 and 4: a member that does not answer holds up no other, and gets what it missed.
async fn a_member_that_is_gone_for_a_while_delays_no_other(server: ApiKind) -> Result<()> {
    let (mut fleet, _programs) = deployed(server, &[Member(1), Member(2)]).await?;
    fleet.member_mut(Member(2)).stop_api().await?;
    set_image(&fleet, "web:2").await?;
    has_image(&fleet, Member(1), "web:2").await?;
    work_has(&fleet, Member(2), "Applied", "False", "web:2").await?;
    fleet.member_mut(Member(2)).start_api().await?;
    has_image(&fleet, Member(2), "web:2").await?;
    work_has(&fleet, Member(2), "Applied", "True", "web:2").await?;
    Ok(())
}

/// Case 17: while paused, the template is scaled and an override made for one member; each member gets its
/// part at resume, and the other nothing of the override.
async fn what_changes_while_paused_arrives_at_resume(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let (fleet, _programs) = deployed(server, &members).await?;
    let templates: Api<Deployment> = namespaced(fleet.karmada.client());
    suspend(&fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:1").await?;
    }
    let scale = Patch::Merge(json!({ "spec": { "replicas": 6 } }));
    templates
        .patch(WEB, &PatchParams::default(), &scale)
        .await?;
    let tag = json!({ "component": "Tag", "operator": "replace", "value": "canary" });
    let rule = json!({ "targetCluster": { "clusterNames": ["member2"] },
        "overriders": { "imageOverrider": [tag] } });
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "overrideRules": [rule] });
    let overrides: Api<OverridePolicy> = namespaced(fleet.karmada.client());
    create(
        &overrides,
        json!({ "metadata": { "name": WEB }, "spec": spec }),
    )
    .await?;
    work_has(&fleet, Member(2), "Dispatching", "False", "web:canary").await?;
    for member in members {
        let copies: Api<Deployment> = namespaced(fleet.member(member).client());
        let copy = copies.get(WEB).await?;
        assert_eq!(image(&copy).as_deref(), Some("web:1"));
        assert_eq!(copy.spec.unwrap().replicas, Some(2));
    }

    // A merge patch: what stays is `suspension: {}`.
    suspend(&fleet, json!({ "dispatching": null })).await?;
    has_image(&fleet, Member(2), "web:canary").await?;
    for member in members {
        let copies: Api<Deployment> = namespaced(fleet.member(member).client());
        until(&copies, WEB, "scaled", |copy| {
            let spec = copy.and_then(|copy| copy.spec.as_ref());
            spec.is_some_and(|spec| spec.replicas == Some(3))
        })
        .await?;
    }
    assert_eq!(running(&fleet, Member(1)).await?, "web:1");
    Ok(())
}

/// Case 5: without its policy a template loses its claim and keeps its copies.
async fn a_deleted_policy_leaves_the_copies(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = deployed(server, &[Member(1)]).await?;
    let templates: Api<Deployment> = namespaced(fleet.karmada.client());
    fleet
        .policies()
        .delete(WEB, &DeleteParams::default())
        .await?;
    until(&fleet.policies(), WEB, "gone", |policy| policy.is_none()).await?;
    until(&templates, WEB, "unclaimed", |template| {
        let labels = template.and_then(|template| template.metadata.labels.as_ref());
        labels.is_some_and(|labels| !labels.contains_key(names::POLICY_ID))
    })
    .await?;
    assert_eq!(running(&fleet, Member(1)).await?, "web:1");
    let work = PropagationFleet::work_name("Deployment", WEB);
    fleet.works(Member(1)).get(&work).await?;
    Ok(())
}

/// A start on a fleet where nothing changed writes nothing but leases, neither here nor in a member.
async fn a_second_start_writes_nothing(server: ApiKind) -> Result<()> {
    let (fleet, programs) = deployed(server, &[Member(1)]).await?;
    is_fully_applied(&fleet).await?;
    programs.settled().await?;
    programs.stop().await?;
    let member = fleet.member(Member(1));
    let (before, there) = (
        fleet.karmada.successful_writes().await?,
        member.successful_writes().await?,
    );
    let programs = fleet.run().await?;
    programs.settled().await?;
    programs.stop().await?;
    let written = fleet.karmada.successful_writes().await?.since(&before);
    assert_eq!(written.to_string(), "no writes");
    let written = member.successful_writes().await?.since(&there);
    assert_eq!(written.to_string(), "no writes");
    Ok(())
}

/// Waits until the binding of the deployment is scheduled and applied everywhere.
async fn is_fully_applied(fleet: &PropagationFleet) -> Result<()> {
    let binding = names::binding("Deployment", WEB);
    until(
        &fleet.bindings(),
        &binding,
        "fully applied",
        |binding: Option<&ResourceBinding>| {
            let status = binding.and_then(|binding| binding.status.as_ref());
            let conditions = status.and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|conditions| {
                let is = |kind| {
                    conditions
                        .iter()
                        .any(|c| c.type_ == kind && c.status == "True")
                };
                is("Scheduled") && is("FullyApplied")
            })
        },
    )
    .await?;
    Ok(())
}

/// Returns the image that a member runs.
async fn running(fleet: &PropagationFleet, member: Member) -> Result<String> {
    let deployments: Api<Deployment> = namespaced(fleet.member(member).client());
    Ok(image(&deployments.get(WEB).await?).unwrap_or_default())
}

on_both!(
    a_deployment_travels_to_its_members_and_its_status_back,
    an_edit_reaches_the_members_and_drift_is_put_right,
    a_cluster_role_travels_by_a_cluster_policy,
    a_new_version_goes_member_by_member,
    a_pause_holds_repairs_and_no_deletion,
    a_member_that_is_gone_for_a_while_delays_no_other,
    what_changes_while_paused_arrives_at_resume,
    a_deleted_policy_leaves_the_copies,
    a_second_start_writes_nothing,
);
