//! What a Remedy does to clusters, whenever it and they come and go.

use anyhow::Result;
use api::{TRAFFIC_CONTROL, condition::DNS_READY};
use kube::api::{DeleteParams, Patch, PatchParams};
use pipeline_tests::{
    control_plane::{ControlPlane, Options},
    crds,
    fleet::{Fleet, Member, isolated, maintenance, on_dns},
    programs::{Profile, Program, Running},
    test_name,
};
use serde_json::json;

/// Writes the verdict as an agent would.
async fn set_dns(fleet: &Fleet, member: Member, status: &str) -> Result<()> {
    let clusters = fleet.clusters();
    let cluster = clusters.get(&member.name()).await?;
    let mut conditions = serde_json::to_value(cluster.conditions())?;
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| condition["type"] != DNS_READY);
        conditions.push(
            json!({ "type": DNS_READY, "status": status, "reason": "Test",
            "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" }),
        );
    }
    let patch = json!({ "status": { "conditions": conditions } });
    clusters
        .patch_status(
            &member.name(),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await?;
    Ok(())
}

#[test]
fn a_remedy_without_matches_blocks_at_once_and_its_deletion_restores() {
    isolated(test_name!(), async || {
        let fleet = Fleet::with_members(Profile::Debug, &[Member(1), Member(2)]).await?;
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
    });
}

#[test]
fn a_remedy_deleted_while_the_controller_is_down_is_undone_when_it_returns() {
    isolated(test_name!(), async || {
        let fleet = Fleet::start(Profile::Debug).await?;
        fleet.join(Member(1)).await?;
        let controller = fleet.remedy_controller().await?;
        fleet
            .create_remedy("maintenance", maintenance(Member(1)))
            .await?;
        fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
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
    });
}

#[test]
fn a_killed_controller_is_replaced_once_its_lease_has_run_out() {
    isolated(test_name!(), async || {
        let fleet = Fleet::start(Profile::Debug).await?;
        fleet.join(Member(1)).await?;
        let leader = fleet.remedy_controller().await?;
        fleet
            .create_remedy("maintenance", maintenance(Member(1)))
            .await?;
        fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
        let other = fleet.remedy_controller().await?;
        leader.kill().await?;
        fleet.delete_remedy("maintenance").await?;
        fleet.has_actions(Member(1), &[]).await?;
        other.stop().await
    });
}

#[test]
fn a_cluster_created_after_the_remedy_is_acted_on() {
    isolated(test_name!(), async || {
        let fleet = Fleet::start(Profile::Debug).await?;
        let controller = fleet.remedy_controller().await?;
        fleet
            .create_remedy("maintenance", maintenance(Member(1)))
            .await?;
        fleet.create_remedy("dns", on_dns()).await?;
        fleet.join(Member(1)).await?;
        fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
        fleet.join(Member(2)).await?;
        set_dns(&fleet, Member(2), "False").await?;
        fleet.has_actions(Member(2), &[TRAFFIC_CONTROL]).await?;
        controller.stop().await
    });
}

#[test]
fn a_cluster_deleted_while_blocked_is_neither_blocked_nor_served_any_more() {
    isolated(test_name!(), async || {
        let members = [Member(1), Member(2)];
        let fleet = Fleet::with_members(Profile::Debug, &members).await?;
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
        fleet.noted("Cluster", "member1", cause).await?;
        Ok(())
    });
}

#[test]
fn a_controller_outlives_an_outage_of_the_api() {
    isolated(test_name!(), async || {
        let mut fleet = Fleet::start(Profile::Debug).await?;
        fleet.join(Member(1)).await?;
        let controller = fleet.remedy_controller().await?;
        fleet
            .create_remedy("maintenance", maintenance(Member(1)))
            .await?;
        fleet.has_actions(Member(1), &[TRAFFIC_CONTROL]).await?;
        fleet.karmada.stop_api().await?;
        fleet.karmada.start_api().await?;
        fleet.delete_remedy("maintenance").await?;
        fleet.has_actions(Member(1), &[]).await?;
        controller.stop().await
    });
}

#[test]
fn a_missing_lease_namespace_is_named_once_and_waited_for() {
    isolated(test_name!(), async || {
        let karmada = ControlPlane::start(Options::named("karmada")).await?;
        karmada.install_crds(&crds::karmada()).await?;
        let kubeconfig = format!("--kubeconfig={}", karmada.kubeconfig_path().display());
        let controller =
            Running::start(Program::RemedyController, Profile::Debug, [kubeconfig]).await?;
        let warning = "namespace karmada-system does not exist; waiting for it";
        controller.until_output(warning).await?;
        karmada.namespace("karmada-system").await?;
        let holder = "karmada_remedy_controller_lease_holder";
        controller.until_metric(holder, |held| held > 0.0).await?;
        assert_eq!(controller.output()?.matches(warning).count(), 1);
        controller.stop().await
    });
}

#[test]
fn a_controller_without_rights_says_which_it_needs_and_is_not_ready() {
    isolated(test_name!(), async || {
        let karmada = ControlPlane::start(Options::named("karmada")).await?;
        karmada.install_crds(&crds::karmada()).await?;
        let kubeconfig = karmada.kubeconfig_for("nobody", None)?;
        let flag = format!("--kubeconfig={}", kubeconfig.display());
        let controller = Running::start_unready(Program::RemedyController, Profile::Debug, [flag])?;
        controller
            .until_output(r#"User \"nobody\" cannot list resource \"clusters\""#)
            .await?;
        let unready = controller.readiness().await.unwrap_err().to_string();
        assert!(
            unready.contains("waiting for: clusters, remedies"),
            "{unready}"
        );
        controller.stop().await
    });
}
