//! DNS that dies in the primary group moves a workload to its backup.

use anyhow::Result;
use karmada_api::{ClusterView, condition::DNS_READY, names};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    api::{create, merge, merge_status},
    control_plane::ApiKind,
    fleet::Member,
    manifests, on_both,
    programs::{Binary, Running},
    propagation::{PropagationFleet, PropagationPrograms},
    wait::{until, until_event},
};
use serde_json::json;

use super::{WEB, deployments, maps};

/// The programs of a fleet without Karmada that moves workloads.
struct Programs {
    _propagation_controller: Running,
    _scheduler: Running,
    _execution_controller: Running,
    _cluster_controller: Running,
}

/// Starts a fleet with the website of the samples, whose workload leaves a cluster with dead DNS soon.
async fn with_website(server: ApiKind) -> Result<(PropagationFleet, Programs)> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let client = fleet.karmada.client();
    manifests::apply(&client, "propagation/cluster/cluster-controller.yaml").await?;
    manifests::apply(&client, "samples/shop/web.yaml").await?;
    manifests::apply_edited(&client, "samples/failover/web.yaml", |text| {
        text.replace("tolerationSeconds: 300", "tolerationSeconds: 1")
    })
    .await?;
    let PropagationPrograms {
        propagation_controller,
        scheduler,
        execution_controller,
    } = fleet.run().await?;
    scheduler.stop().await?;
    let evicts = ["--evict-untolerated"];
    let taints = ["NoSchedule", "NoExecute"]
        .map(|effect| format!("--taint-on-condition={DNS_READY}=False:{effect}"));
    let programs = Programs {
        _propagation_controller: propagation_controller,
        _scheduler: fleet.start_program(Binary::Scheduler, &evicts).await?,
        _execution_controller: execution_controller,
        _cluster_controller: fleet
            .start_program(Binary::ClusterController, &[&taints[0], &taints[1]])
            .await?,
    };
    Ok((fleet, programs))
}

/// Writes the agents' verdict, as a leader does.
async fn report(fleet: &PropagationFleet, member: Member, status: &str) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let name = member.name();
    let cluster = clusters.get(&name).await?;
    let mut conditions = cluster.status.conditions.iter();
    let new = json!({ "type": DNS_READY, "status": status, "reason": "Tested", "message": "" });
    let operation = match conditions.position(|condition| condition.type_ == DNS_READY) {
        Some(index) => json!({ "op": "replace", "path": format!("/status/conditions/{index}"),
            "value": new }),
        None => json!({ "op": "add", "path": "/status/conditions/-", "value": new }),
    };
    let patch = Patch::Json::<()>(serde_json::from_value(json!([operation]))?);
    clusters
        .patch_status(&name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until a member has the taints for dead DNS, or none.
async fn is_tainted(fleet: &PropagationFleet, member: Member, tainted: bool) -> Result<()> {
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    let what = if tainted { "tainted" } else { "free" };
    until(&clusters, &member.name(), what, |cluster| {
        cluster.is_some_and(|cluster| {
            let taints = cluster.spec.taints.iter();
            let of_dns = taints.filter(|it| it.key.ends_with(DNS_READY));
            let mut effects: Vec<_> = of_dns.map(|it| it.effect.as_str()).collect();
            effects.sort_unstable();
            let expected: &[&str] = if tainted {
                &["NoExecute", "NoSchedule"]
            } else {
                &[]
            };
            effects == expected
        })
    })
    .await?;
    Ok(())
}

/// Waits until the binding of that name has these clusters, and its workload is of that group.
async fn is_placed(
    fleet: &PropagationFleet,
    binding: &str,
    members: &[u8],
    group: Option<&str>,
) -> Result<()> {
    let wanted: Vec<_> = members
        .iter()
        .map(|number| Member(*number).name())
        .collect();
    let what = format!("in {wanted:?}");
    until(&fleet.bindings(), binding, &what, |found| {
        let targets = found.and_then(|binding| binding.spec.clusters.as_ref());
        let targets = targets.into_iter().flatten();
        let mut targets: Vec<_> = targets.map(|target| target.name.clone()).collect();
        targets.sort();
        let status = found.and_then(|binding| binding.status.as_ref());
        let named = status.and_then(|status| status.scheduler_observed_affinity_name.as_deref());
        found.is_some() && targets == wanted && named == group
    })
    .await?;
    Ok(())
}

/// Waits until a member has the Deployment, and plays its controllers, or until it has none.
async fn runs(fleet: &PropagationFleet, member: Member, there: bool) -> Result<()> {
    let copies = deployments(fleet.member(member));
    let what = if there { "there" } else { "gone" };
    until(&copies, WEB, what, |copy| copy.is_some() == there).await?;
    if there {
        let status = json!({ "observedGeneration": 1, "replicas": 1,
            "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1 });
        merge_status(&copies, WEB, &status).await?;
    }
    Ok(())
}

/// Asks the scheduler to decide about the deployment anew.
async fn reschedule(fleet: &PropagationFleet) -> Result<()> {
    let asked = json!({ "spec": { "rescheduleTriggeredAt": "2099-01-01T00:00:00Z" } });
    let name = names::binding("Deployment", WEB);
    merge(&fleet.bindings(), &name, &asked).await
}

/// Waits until the scheduler gives new workloads to the member. A trigger that overtook the news of its taint would be
/// spent in vain: nothing orders the two watches.
async fn takes_workloads(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let canary = "canary";
    create(
        &maps(&fleet.karmada),
        json!({ "metadata": { "name": canary } }),
    )
    .await?;
    let policy = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": canary }],
        "placement": { "clusterAffinity": { "clusterNames": [member.name()] } },
    });
    fleet.create_policy(canary, policy).await?;
    let copies = maps(fleet.member(member));
    until(&copies, canary, "there", |copy| copy.is_some()).await?;
    Ok(())
}

/// Cases P53 and P57: DNS that is reported dead taints the cluster; the backup group takes over once that is not tolerated any
/// longer, and the copy in the primary one goes when the others are healthy. The cluster that is in both groups keeps
/// its copy. With DNS back the taint goes, and the workload goes back when asked. The Service is everywhere all the
/// time.
async fn dead_dns_moves_to_backup(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = with_website(server).await?;
    let (dies, stays, backup) = (Member(1), Member(2), Member(3));
    let binding = names::binding("Deployment", WEB);
    is_placed(&fleet, &binding, &[1, 2], Some("primary")).await?;
    for member in [dies, stays] {
        runs(&fleet, member, true).await?;
    }
    report(&fleet, dies, "True").await?;
    report(&fleet, dies, "False").await?;
    is_tainted(&fleet, dies, true).await?;
    is_placed(&fleet, &binding, &[2, 3], Some("backup")).await?;
    let event = "EvictWorkloadFromClusterSucceed";
    until_event(&fleet.karmada.client(), "ResourceBinding", &binding, event).await?;
    let copies = deployments(fleet.member(dies));
    assert!(copies.get_opt(WEB).await?.is_some(), "no other is ready");
    runs(&fleet, backup, true).await?;
    runs(&fleet, dies, false).await?;

    report(&fleet, dies, "True").await?;
    is_tainted(&fleet, dies, false).await?;
    takes_workloads(&fleet, dies).await?;
    is_placed(&fleet, &binding, &[2, 3], Some("backup")).await?;
    reschedule(&fleet).await?;
    is_placed(&fleet, &binding, &[1, 2], Some("primary")).await?;
    runs(&fleet, dies, true).await?;
    runs(&fleet, backup, false).await?;
    is_placed(&fleet, &names::binding("Service", WEB), &[1, 2, 3], None).await
}

on_both!(long: dead_dns_moves_to_backup);
