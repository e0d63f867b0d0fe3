//! The effect of Remedies on clusters, in whatever order both come and go.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

mod combinations;
mod with_tools;

use std::collections::BTreeSet;

use anyhow::Result;
use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use karmada_api::{
    Cluster, Remedy, TRAFFIC_CONTROL,
    condition::DNS_READY,
    remedy::{ACCEPTED, ACTIVE, EXPIRES_AT, OBSERVE_ONLY},
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane, ControlPlaneOptions},
    crds,
    fleet::{Fleet, Member, maintenance, on_dns},
    on_both,
    programs::{Binary, Profile, Running},
    wait::until,
};
use serde_json::{Value, json};

use self::combinations::combinations;

/// Starts a fleet with one cluster that a Remedy blocks, and the controller that applied it.
async fn under_maintenance(server: ApiKind) -> Result<(Fleet, Running)> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(Member(1)).await?;
    let controller = fleet.remedy_controller().await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    Ok((fleet, controller))
}

/// A Remedy without matches blocks at once and its deletion restores.
async fn unconditional_remedy_blocks_at_once(server: ApiKind) -> Result<()> {
    let fleet = Fleet::with_members(server, Profile::Debug, &[Member(1), Member(2)]).await?;
    let remedies = fleet.remedy_controller().await?;
    let ingresses = fleet.ingress_controller().await?;
    fleet.serves(&[Member(1), Member(2)]).await?;

    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    fleet.has_blocked(&[Member(1)]).await?;
    fleet.serves(&[Member(2)]).await?;

    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    fleet.has_blocked(&[]).await?;
    fleet.serves(&[Member(1), Member(2)]).await?;
    remedies.stop().await?;
    ingresses.stop().await
}

/// Writers in Go leave a zero time as null, and nothing requires a reason.
async fn bare_verdict_is_acted_on(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(Member(1)).await?;
    fleet.set_dns(Member(1), "True").await?;
    fleet.create_remedy("dns", on_dns()).await?;
    let controller = fleet.remedy_controller().await?;
    let leads = "karmada_remedy_controller_lease_holder";
    controller.until_metric(leads, |held| held > 0.0).await?;
    let bare = json!({ "type": DNS_READY, "status": "False", "reason": "", "message": null,
        "lastTransitionTime": null });
    let raw: Api<DynamicObject> =
        Api::all_with(fleet.karmada.client(), &ApiResource::erase::<Cluster>(&()));
    let mut cluster = raw.get("member1").await?;
    cluster.data["status"]["conditions"] = json!([bare]);
    // Not by a merge patch, from whose lists kube-apiserver removes null.
    raw.replace_status("member1", &PostParams::default(), &cluster)
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    let event = format!("{DNS_READY} {DNS_READY} is False");
    fleet.has_event("Cluster", "member1", &event).await?;
    controller.stop().await
}

/// Starts an API whose definition of Remedy is Karmada's own, and the controller.
async fn on_karmadas_definition(server: ApiKind) -> Result<(Fleet, Running)> {
    let mut fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.karmada = ControlPlane::start(ControlPlaneOptions::named("karmada").on(server)).await?;
    crds::install_as_karmadas(&fleet.karmada.client()).await?;
    fleet.karmada.namespace("karmada-system").await?;
    fleet.join(Member(1)).await?;
    let kubeconfig = format!("--kubeconfig={}", fleet.karmada.kubeconfig_path().display());
    let controller = Running::start(Binary::RemedyController, Profile::Debug, [kubeconfig]).await?;
    Ok((fleet, controller))
}

/// On Karmada's definition, an emptied list blocks nothing and has an event.
async fn emptied_list_blocks_nothing(server: ApiKind) -> Result<()> {
    let (fleet, controller) = on_karmadas_definition(server).await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    let emptied = json!({ "spec": { "clusterAffinity": { "clusterNames": [] } } });
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(emptied));
    let remedies = fleet.remedies();
    remedies.patch("maintenance", &parameters, &patch).await?;
    fleet.has_actions(Member(1), &[]).await?;
    let event = "SelectsNoCluster clusterAffinity has no clusterNames";
    fleet.has_event("Remedy", "maintenance", event).await?;
    let never = json!({ "decisionMatches": [], "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy("never", never).await?;
    let event = "NeverMatches decisionMatches is empty";
    fleet.has_event("Remedy", "never", event).await?;
    controller
        .until_output("Remedies get no status, but everything else works")
        .await?;
    controller.stop().await
}

/// Sets an annotation of a Remedy.
async fn annotate(fleet: &Fleet, remedy: &str, name: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { name: value } } }));
    let remedies = fleet.remedies();
    remedies
        .patch(remedy, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until a condition of a Remedy has this status and reason.
async fn says(fleet: &Fleet, remedy: &str, kind: &str, says: [&str; 2]) -> Result<()> {
    let what = format!("with {kind} {says:?}");
    let is = |remedy: Option<&Remedy>| {
        let status = remedy.and_then(|remedy| remedy.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|found| found.type_ == kind && [&found.status, &found.reason] == says)
    };
    until(&fleet.remedies(), remedy, &what, is).await?;
    Ok(())
}

/// Every combination of fields and annotations, each Remedy with an action of its own, on clusters with
/// each status of the condition. The oracle is a sentence per field of the documentation.
async fn combinations_act_as_documented(server: ApiKind) -> Result<()> {
    let mut fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.karmada = ControlPlane::start(ControlPlaneOptions::named("karmada").on(server)).await?;
    crds::install_without_rules(&fleet.karmada.client()).await?;
    fleet.karmada.namespace("karmada-system").await?;
    let statuses = [Some("True"), Some("False"), Some("Unknown"), None];
    let members = [Member(1), Member(2), Member(3), Member(4)];
    for (member, status) in members.into_iter().zip(statuses) {
        fleet.join(member).await?;
        if let Some(status) = status {
            fleet.set_dns(member, status).await?;
        }
    }
    let combinations = combinations();
    assert_eq!(combinations.len(), 5 * (3 + 2 * 3 * 2) * 8);
    let mut expected = [const { BTreeSet::new() }; 4];
    let mut remedies = Vec::new();
    for (nth, combination) in combinations.iter().enumerate() {
        let action = format!("Action{nth:03}");
        for ((set, member), status) in expected.iter_mut().zip(members).zip(statuses) {
            if combination.acts(&member.name(), status) {
                set.insert(action.clone());
            }
        }
        remedies.push(combination.remedy(&action));
    }
    // These have no action, or one that is unknown.
    for (name, actions) in [("absent", Value::Null), ("empty", json!([]))] {
        let spec = serde_json::from_value(json!({ "actions": actions }))?;
        remedies.push(Remedy::new(name, spec));
    }
    let api = fleet.remedies();
    let parameters = PostParams::default();
    for some in remedies.chunks(20) {
        try_join_all(some.iter().map(|remedy| api.create(&parameters, remedy))).await?;
    }
    let kubeconfig = format!("--kubeconfig={}", fleet.karmada.kubeconfig_path().display());
    let controller = Running::start(Binary::RemedyController, Profile::Debug, [kubeconfig]).await?;
    for (member, expected) in members.into_iter().zip(&expected) {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        fleet.has_actions(member, &expected).await?;
    }
    controller.stop().await
}

/// A status names the clusters that a remedy acts on.
async fn status_names_clusters(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    for member in [Member(1), Member(2)] {
        fleet.join(member).await?;
        fleet.set_dns(member, "True").await?;
    }
    fleet.create_remedy("dns", on_dns()).await?;
    let controller = fleet.remedy_controller().await?;
    says(&fleet, "dns", ACCEPTED, ["True", "Accepted"]).await?;
    says(&fleet, "dns", ACTIVE, ["False", "NoClusterMatches"]).await?;
    fleet.set_dns(Member(2), "False").await?;
    says(&fleet, "dns", ACTIVE, ["True", "ActionsRequired"]).await?;
    let dns = fleet.remedies().get("dns").await?;
    let status = dns.status.unwrap();
    assert_eq!(status.observed_generation, dns.metadata.generation);
    assert_eq!(status.active_clusters, Some(1));
    assert_eq!(
        status.active_cluster_names,
        Some(vec!["member2".to_owned()])
    );
    fleet.set_dns(Member(2), "True").await?;
    says(&fleet, "dns", ACTIVE, ["False", "NoClusterMatches"]).await?;
    let names = fleet.remedies().get("dns").await?.status.unwrap();
    assert_eq!(names.active_cluster_names, None);
    controller.stop().await
}

/// A Remedy expires and stays so after a restart.
async fn expiry_survives_a_restart(server: ApiKind) -> Result<()> {
    let (fleet, controller) = under_maintenance(server).await?;
    let end = (Timestamp::now() + SignedDuration::from_secs(2)).to_string();
    annotate(&fleet, "maintenance", EXPIRES_AT, &end).await?;
    fleet.has_actions(Member(1), &[]).await?;
    let event = format!("RemedyExpired it expired at {end}");
    fleet.has_event("Remedy", "maintenance", &event).await?;
    says(&fleet, "maintenance", ACTIVE, ["False", "Expired"]).await?;
    controller.stop().await?;

    fleet.join(Member(2)).await?;
    fleet.create_remedy("other", maintenance(Member(2))).await?;
    let controller = fleet.remedy_controller().await?;
    fleet.has_actions(Member(2), &[TRAFFIC_CONTROL]).await?;
    says(&fleet, "other", ACTIVE, ["True", "ActionsRequired"]).await?;
    fleet.has_actions(Member(1), &[]).await?;
    let later = (Timestamp::now() + SignedDuration::from_hours(1)).to_string();
    annotate(&fleet, "maintenance", EXPIRES_AT, &later).await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    controller.stop().await
}

/// A Remedy that only observes says what it would do.
async fn observing_remedy_tells_its_plan(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(Member(1)).await?;
    fleet.set_dns(Member(1), "False").await?;
    fleet.create_remedy("trial", on_dns()).await?;
    annotate(&fleet, "trial", OBSERVE_ONLY, "true").await?;
    let controller = fleet.remedy_controller().await?;
    let event = "RemedyWouldAct TrafficControl would be set by Remedy trial, which only observes: ServiceDomainNameResolutionReady is False";
    fleet.has_event("Cluster", "member1", event).await?;
    says(&fleet, "trial", ACTIVE, ["False", "ObserveOnly"]).await?;
    fleet.has_actions(Member(1), &[]).await?;
    annotate(&fleet, "trial", OBSERVE_ONLY, "false").await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    controller.stop().await
}

/// A Remedy deleted while the controller is down is undone when it returns.
async fn missed_deletion_is_undone(server: ApiKind) -> Result<()> {
    let (fleet, controller) = under_maintenance(server).await?;
    controller.stop().await?;
    fleet.delete_remedy("maintenance").await?;
    let _returned = fleet.remedy_controller().await?;
    fleet.has_actions(Member(1), &[]).await?;
    let cluster = fleet.clusters().get("member1").await?;
    assert_eq!(
        cluster.status.unwrap().remedy_actions,
        None,
        "absent rather than empty"
    );
    Ok(())
}

/// A killed controller is replaced once its lease has run out.
async fn killed_controller_is_replaced(server: ApiKind) -> Result<()> {
    let (fleet, leader) = under_maintenance(server).await?;
    let other = fleet.remedy_controller().await?;
    leader.kill().await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    other.stop().await
}

/// A cluster created after the remedy is acted on.
async fn new_cluster_is_acted_on(server: ApiKind) -> Result<()> {
    let fleet = Fleet::start(server, Profile::Debug).await?;
    let controller = fleet.remedy_controller().await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.create_remedy("dns", on_dns()).await?;
    fleet.join(Member(1)).await?;
    fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
    fleet.join(Member(2)).await?;
    fleet.set_dns(Member(2), "False").await?;
    fleet.has_actions(Member(2), &[TRAFFIC_CONTROL]).await?;
    controller.stop().await
}

/// A cluster deleted while blocked is neither blocked nor served any more.
async fn deleted_cluster_is_forgotten(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let fleet = Fleet::with_members(server, Profile::Debug, &members).await?;
    let _controllers = (
        fleet.remedy_controller().await?,
        fleet.ingress_controller().await?,
    );
    fleet.serves(&members).await?;
    fleet
        .create_remedy("maintenance", maintenance(Member(1)))
        .await?;
    fleet.has_blocked(&[Member(1)]).await?;

    fleet
        .clusters()
        .delete("member1", &DeleteParams::default())
        .await?;
    fleet.has_blocked(&[]).await?;
    fleet.serves(&[Member(2)]).await?;
    let cause = "TrafficControl set by Remedy maintenance: it names no condition";
    fleet.has_event("Cluster", "member1", cause).await?;
    Ok(())
}

/// A controller outlives an outage of the API.
async fn controller_outlives_api_outage(server: ApiKind) -> Result<()> {
    let (mut fleet, controller) = under_maintenance(server).await?;
    fleet.karmada.stop_api().await?;
    controller.until_output("Watch failed").await?;
    fleet.karmada.start_api().await?;
    fleet.delete_remedy("maintenance").await?;
    fleet.has_actions(Member(1), &[]).await?;
    controller.stop().await
}

/// A missing lease namespace is named once and waited for.
async fn missing_lease_namespace_is_awaited(server: ApiKind) -> Result<()> {
    let karmada = ControlPlane::start(ControlPlaneOptions::named("karmada").on(server)).await?;
    karmada.install_crds(&crds::karmada()).await?;
    let kubeconfig = format!("--kubeconfig={}", karmada.kubeconfig_path().display());
    let controller = Running::start(Binary::RemedyController, Profile::Debug, [kubeconfig]).await?;
    let warning = "namespace karmada-system does not exist; waiting for it";
    controller.until_output(warning).await?;
    karmada.namespace("karmada-system").await?;
    let holder = "karmada_remedy_controller_lease_holder";
    controller.until_metric(holder, |held| held > 0.0).await?;
    assert_eq!(controller.output()?.matches(warning).count(), 1);
    controller.stop().await
}

on_both!(
    long:
    unconditional_remedy_blocks_at_once,
    bare_verdict_is_acted_on,
    emptied_list_blocks_nothing,
    combinations_act_as_documented,
    status_names_clusters,
    expiry_survives_a_restart,
    observing_remedy_tells_its_plan,
    missed_deletion_is_undone,
    killed_controller_is_replaced,
    new_cluster_is_acted_on,
    deleted_cluster_is_forgotten,
    controller_outlives_api_outage,
    missing_lease_namespace_is_awaited,
);
