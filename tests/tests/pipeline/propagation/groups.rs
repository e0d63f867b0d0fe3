//! Groups of clusters that are tried in order, and the room that clusters have.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::{
    ClusterResourceBinding, ClusterView, ResourceBinding, ResourceBindingSpec,
    ResourceBindingStatus, names,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, PropagationPrograms, create},
    wait::until,
};
use serde_json::{Value, json};

use super::evictions::taint;
use super::{ROLE, WEB, change, change_cluster_policy, deployment, deployments, has_image, scale};

/// The replicas of the deployment.
pub(super) const REPLICAS: i32 = 4;

/// Starts a fleet of three members with the deployment and a policy of this placement.
pub(super) async fn placed(
    server: ApiKind,
    placement: Value,
) -> Result<(PropagationFleet, PropagationPrograms)> {
    let fleet = PropagationFleet::start(server, 3).await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    let selected = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB }]);
    let policy = json!({ "resourceSelectors": selected, "placement": placement });
    fleet.create_policy(WEB, policy).await?;
    let programs = fleet.run().await?;
    Ok((fleet, programs))
}

/// Returns a group of clusters with this label.
fn group(name: &str) -> Value {
    json!({ "affinityName": name, "labelSelector": { "matchLabels": { "group": name } } })
}

pub(super) fn groups(names: &[&str]) -> Value {
    names.iter().map(|name| group(name)).collect()
}

/// Returns the division of replicas among as few clusters as have room for them.
pub(super) fn aggregated() -> Value {
    json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated" })
}

pub(super) async fn label(
    fleet: &PropagationFleet,
    member: Member,
    group: Option<&str>,
) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "group": group } } }));
    let parameters = PatchParams::default();
    clusters.patch(&member.name(), &parameters, &labels).await?;
    Ok(())
}

/// Sets the number of pods for which a member has room.
pub(super) async fn set_room(fleet: &PropagationFleet, member: Member, pods: u32) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let summary = json!({ "allocatable": { "pods": pods.to_string() } });
    let status = Patch::Merge(json!({ "status": { "resourceSummary": summary } }));
    let (name, parameters) = (member.name(), PatchParams::default());
    clusters.patch_status(&name, &parameters, &status).await?;
    Ok(())
}

pub(super) async fn place(fleet: &PropagationFleet, placement: Value) -> Result<()> {
    change(fleet, WEB, json!({ "placement": placement })).await
}

/// Waits until the binding is as wanted.
pub(super) async fn until_binding(
    fleet: &PropagationFleet,
    what: &str,
    is: impl Fn(&ResourceBinding) -> bool,
) -> Result<()> {
    let name = names::binding("Deployment", WEB);
    until(&fleet.bindings(), &name, what, |binding| {
        binding.is_some_and(&is)
    })
    .await?;
    Ok(())
}

/// Waits until the binding has these replicas in each member, and the name of their group in its status.
pub(super) async fn runs_in(
    fleet: &PropagationFleet,
    replicas: &[(Member, i32)],
    group: Option<&str>,
) -> Result<()> {
    let what = format!("{replicas:?} in {group:?}");
    until_binding(fleet, &what, |binding| {
        is_in(&binding.spec, binding.status.as_ref(), replicas, group)
    })
    .await?;
    for (member, _) in replicas {
        has_image(fleet, *member, "web:1").await?;
    }
    Ok(())
}

fn is_in(
    spec: &ResourceBindingSpec,
    status: Option<&ResourceBindingStatus>,
    replicas: &[(Member, i32)],
    group: Option<&str>,
) -> bool {
    let wanted = replicas.iter();
    let wanted: BTreeMap<_, _> = wanted.map(|(member, one)| (member.name(), *one)).collect();
    let targets = spec.clusters.iter().flatten();
    let targets = targets.map(|one| (one.name.clone(), one.replicas.unwrap_or(0)));
    let named = status.and_then(|status| status.scheduler_observed_affinity_name.as_deref());
    targets.collect::<BTreeMap<_, _>>() == wanted && named == group
}

/// Waits until the `ClusterRole` is in a member alone, and its binding has the name of the group in its status.
async fn role_is_in(fleet: &PropagationFleet, member: Member, group: Option<&str>) -> Result<()> {
    let bindings: Api<ClusterResourceBinding> = Api::all(fleet.karmada.client());
    let name = names::binding("ClusterRole", ROLE);
    let what = format!("in {} and {group:?}", member.name());
    until(&bindings, &name, &what, |binding| {
        let is = |binding: &ClusterResourceBinding| {
            is_in(
                &binding.spec,
                binding.status.as_ref(),
                &[(member, 0)],
                group,
            )
        };
        binding.is_some_and(is)
    })
    .await?;
    for other in fleet.members() {
        let copies: Api<ClusterRole> = Api::all(fleet.member(other).client());
        until(&copies, ROLE, &what, |copy| {
            copy.is_some() == (other == member)
        })
        .await?;
    }
    Ok(())
}

/// Waits until the scheduler has decided about this part of the placement, for the object [`WEB`] of a kind.
pub(super) async fn until_observed(
    fleet: &PropagationFleet,
    kind: &str,
    pointer: &str,
    part: &Value,
) -> Result<()> {
    let name = names::binding(kind, WEB);
    let is = |binding: &ResourceBinding| {
        let placement = binding.spec.placement.as_ref();
        let status = binding.status.as_ref();
        let observed = status.and_then(|status| status.scheduler_observed_generation);
        placement.and_then(|placement| placement.pointer(pointer)) == Some(part)
            && observed == binding.metadata.generation
    };
    let what = format!("observed with {part}");
    until(&fleet.bindings(), &name, &what, |binding| {
        binding.is_some_and(is)
    })
    .await?;
    Ok(())
}

/// Waits until the copy in a member is gone.
pub(super) async fn leaves(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let copies = deployments(fleet.member(member));
    until(&copies, WEB, "gone", |copy| copy.is_none()).await?;
    Ok(())
}

/// Waits until the condition `Scheduled` is False for this reason.
pub(super) async fn is_refused(fleet: &PropagationFleet, reason: &str) -> Result<()> {
    until_binding(fleet, reason, |binding| {
        let status = binding.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let mut conditions = conditions.into_iter().flatten();
        conditions
            .any(|one| one.type_ == "Scheduled" && one.status == "False" && one.reason == reason)
    })
    .await
}

/// Cases P51, P52 and P56: the first group that fits is used and named, and stays in use; when it fits no more, the
/// next ones are tried, and then those before it. Here taints and labels decide whether a group fits.
async fn first_fitting_group_is_used(server: ApiKind) -> Result<()> {
    let placement = json!({ "clusterAffinities": groups(&["first", "second", "third"]) });
    let (fleet, _programs) = placed(server, placement).await?;
    let (one, two) = (Member(1), Member(2));
    let full = json!([{ "key": "full", "effect": "NoSchedule" }]);
    taint(&fleet, one, full).await?;
    label(&fleet, one, Some("first")).await?;
    label(&fleet, two, Some("second")).await?;
    runs_in(&fleet, &[(two, REPLICAS)], Some("second")).await?;
    taint(&fleet, one, json!([])).await?;
    label(&fleet, Member(3), Some("second")).await?;
    runs_in(
        &fleet,
        &[(two, REPLICAS), (Member(3), REPLICAS)],
        Some("second"),
    )
    .await?;

    label(&fleet, Member(3), None).await?;
    label(&fleet, two, Some("third")).await?;
    runs_in(&fleet, &[(two, REPLICAS)], Some("third")).await?;
    label(&fleet, two, None).await?;
    runs_in(&fleet, &[(one, REPLICAS)], Some("first")).await
}

/// Case P52, the first story of the proposal: the private cloud is used until it has no room for a divided workload,
/// then the public one.
/// What runs does not go back by itself.
async fn full_private_cloud_gives_way(server: ApiKind) -> Result<()> {
    let placement = json!({
        "clusterAffinities": groups(&["private", "public"]), "replicaScheduling": aggregated(),
    });
    let (private, public) = (Member(1), Member(2));
    let (fleet, _programs) = placed(server, placement).await?;
    label(&fleet, private, Some("private")).await?;
    set_room(&fleet, private, 3).await?;
    is_refused(&fleet, "Unschedulable").await?;
    label(&fleet, public, Some("public")).await?;
    set_room(&fleet, public, 9).await?;
    runs_in(&fleet, &[(public, REPLICAS)], Some("public")).await?;

    set_room(&fleet, private, 99).await?;
    scale(&deployments(&fleet.karmada), REPLICAS + 2).await?;
    runs_in(&fleet, &[(public, REPLICAS + 2)], Some("public")).await
}

/// Case P55: what runs is taken away only if no cluster of any group fits, and not for a lack of room in one.
async fn lack_of_room_takes_nothing(server: ApiKind) -> Result<()> {
    let (leaving, short) = (Member(1), Member(2));
    let in_order = |names: &[&str]| json!({ "clusterAffinities": groups(names), "replicaScheduling": aggregated() });
    let (fleet, _programs) = placed(server, in_order(&["short", "gone"])).await?;
    for names in [["short", "gone"], ["gone", "short"]] {
        place(&fleet, in_order(&names)).await?;
        label(&fleet, leaving, Some("gone")).await?;
        set_room(&fleet, leaving, 9).await?;
        scale(&deployments(&fleet.karmada), REPLICAS).await?;
        runs_in(&fleet, &[(leaving, REPLICAS)], Some("gone")).await?;
        label(&fleet, short, Some("short")).await?;
        set_room(&fleet, short, 1).await?;

        // That a divided workload looks for clusters at all needs a reason.
        scale(&deployments(&fleet.karmada), 99).await?;
        label(&fleet, leaving, None).await?;
        is_refused(&fleet, "Unschedulable").await?;
        runs_in(&fleet, &[(leaving, REPLICAS)], Some("gone")).await?;

        label(&fleet, short, None).await?;
        is_refused(&fleet, "NoClusterFit").await?;
        until_binding(&fleet, "without clusters", |binding| {
            binding.spec.clusters.iter().flatten().next().is_none()
        })
        .await?;
        leaves(&fleet, leaving).await?;
    }
    Ok(())
}

/// Cases P54 and P60: a cluster that is relabelled takes what it runs to another group, whose name goes with the
/// groups; for policies of both scopes.
async fn single_affinity_has_no_name(server: ApiKind) -> Result<()> {
    let only = json!({ "clusterAffinity": { "clusterNames": ["member1"] } });
    let (fleet, _programs) = placed(server, only.clone()).await?;
    let roles: Api<ClusterRole> = Api::all(fleet.karmada.client());
    create(&roles, json!({ "metadata": { "name": ROLE } })).await?;
    let selector = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "name": ROLE });
    let policy = json!({ "resourceSelectors": [selector], "placement": only });
    fleet.create_cluster_policy(WEB, policy).await?;
    let place = async |placement: Value| {
        change_cluster_policy(&fleet, WEB, json!({ "placement": &placement })).await?;
        place(&fleet, placement).await
    };
    let both_are_in = async |member: Member, group: Option<&str>| {
        runs_in(&fleet, &[(member, REPLICAS)], group).await?;
        role_is_in(&fleet, member, group).await
    };

    both_are_in(Member(1), None).await?;
    label(&fleet, Member(2), Some("first")).await?;
    let in_order = groups(&["first", "second"]);
    place(json!({ "clusterAffinity": null, "clusterAffinities": in_order })).await?;
    both_are_in(Member(2), Some("first")).await?;
    label(&fleet, Member(2), Some("second")).await?;
    both_are_in(Member(2), Some("second")).await?;
    let single =
        json!({ "clusterAffinity": { "clusterNames": ["member1"] }, "clusterAffinities": null });
    place(single).await?;
    both_are_in(Member(1), None).await
}

/// Case P58: a group that is not in use may be edited without a move.
async fn unused_group_may_change(server: ApiKind) -> Result<()> {
    let placement = |other: &str| {
        let dynamic = json!({
            "replicaSchedulingType": "Divided",
            "weightPreference": { "dynamicWeight": "AvailableReplicas" },
        });
        json!({ "clusterAffinities": groups(&["first", other]), "replicaScheduling": dynamic })
    };
    let (fleet, _programs) = placed(server, placement("second")).await?;
    for (member, room) in [(Member(1), 3), (Member(2), 2)] {
        set_room(&fleet, member, room).await?;
        label(&fleet, member, Some("first")).await?;
    }
    let divided = [(Member(1), 2), (Member(2), 2)];
    runs_in(&fleet, &divided, Some("first")).await?;
    set_room(&fleet, Member(3), 99).await?;
    label(&fleet, Member(3), Some("first")).await?;
    place(&fleet, placement("other")).await?;
    let other = "/clusterAffinities/1/affinityName";
    until_observed(&fleet, "Deployment", other, &json!("other")).await?;
    runs_in(&fleet, &divided, Some("first")).await
}

on_both!(
    long:
    first_fitting_group_is_used,
    full_private_cloud_gives_way,
    lack_of_room_takes_nothing,
    single_affinity_has_no_name,
    unused_group_may_change,
);
