//! Templates that do not get anywhere.

use anyhow::Result;
use karmada_api::ResourceInterpreterCustomization;
use kube::Api;
use pipeline_tests::{
    api::create,
    control_plane::ApiKind,
    fleet::{Member, isolated},
    programs::{Binary, Profile},
    propagation::PropagationFleet,
    test_name,
    wait::until_event,
};
use serde_json::json;

use crate::{
    drills::{Drill, alert::Target},
    propagation::{WEB, deployment, deployments, divided},
};

/// Starts a fleet of one member, which nothing of a drill depends on.
async fn fleet() -> Result<PropagationFleet> {
    let kinds = [ApiKind::Real, ApiKind::Embedded];
    PropagationFleet::start_on(kinds, 1, Profile::Debug).await
}

/// Creates a Deployment and a policy that selects it.
async fn propagate(fleet: &PropagationFleet) -> Result<()> {
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    fleet.create_policy(WEB, divided(&[Member(1)])).await
}

/// The scheduler was scaled down for an afternoon, and forgotten.
#[test]
fn nobody_schedules() {
    isolated(test_name!(), async || {
        let fleet = fleet().await?;
        let programs = fleet.run().await?;
        let controller = &programs.propagation_controller;
        let scheduler = &programs.scheduler;
        for (program, metric) in [
            (controller, "karmada_propagation_controller_lease_holder"),
            (scheduler, "karmada_scheduler_lease_holder"),
        ] {
            program.until_metric(metric, |holds| holds > 0.0).await?;
        }
        let other = || Target::on_host(Binary::PropagationController, controller);
        let mut drill = Drill::of("KarmadaRsNoLeader");
        let both = [other(), Target::on_host(Binary::Scheduler, scheduler)];
        drill.record(&both).await?;

        programs.scheduler.stop().await?;
        propagate(&fleet).await?;
        drill.record(&[other()]).await?;
        let labels = json!({ "job": "scheduler", "namespace": "karmada-system",
            "program": "scheduler", "severity": "critical" });
        let summary = "No replica of the scheduler leads, so that nothing is done";
        drill.fires(3, &labels, summary)?;
        let contexts = [("karmada", &fleet.karmada)];
        let cause =
            "scheduler does not lead: nobody holds the lease karmada-system/karmada-scheduler";
        drill
            .names(&contexts, &[("PROGRAM", "scheduler")], &[cause])
            .await
    });
}

/// Somebody has a script say how many replicas a Deployment has, and forgets an `end`: nothing propagates a new one.
#[test]
fn script_leaves_template_alone() {
    isolated(test_name!(), async || {
        let fleet = fleet().await?;
        let programs = fleet.run().await?;
        let controller = &programs.propagation_controller;
        let targets = [Target::on_host(Binary::PropagationController, controller)];
        let mut drill = Drill::of("KarmadaRsTemplatesLeftAlone");
        drill.record(&targets).await?;

        let customizations: Api<ResourceInterpreterCustomization> =
            Api::all(fleet.karmada.client());
        let script = "function GetReplicas(obj)\n  return obj.spec.replicas\n";
        let spec = json!({
            "target": { "apiVersion": "apps/v1", "kind": "Deployment" },
            "customizations": { "replicaResource": { "luaScript": script } },
        });
        let customization = json!({ "metadata": { "name": "replicas" }, "spec": spec });
        create(&customizations, customization).await?;
        propagate(&fleet).await?;
        let left = "karmada_propagation_controller_uninterpreted_templates";
        controller.until_metric(left, |count| count > 0.0).await?;
        drill.record(&targets).await?;
        let summary = "1 templates or Works are left alone, because a script cannot be read or a name is taken";
        drill.fires(11, &json!({ "severity": "warning" }), summary)?;
        let client = fleet.karmada.client();
        until_event(&client, "Deployment", WEB, "ApplyPolicyFailed").await?;
        let contexts = [("karmada", &fleet.karmada)];
        let cause = "a script that interprets it cannot be read: <string>:3: 'end' expected";
        drill.names(&contexts, &[], &[cause]).await
    });
}
