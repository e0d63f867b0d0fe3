//! A cluster that fetches what it runs, by programs with the rights of `manifests/pull` and no more.

use anyhow::Result;
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace},
};
use karmada_api::{ClusterView, Work, execution_namespace};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE},
    manifests, on_both,
    programs::{Binary, Profile, Running},
    propagation::{PropagationFleet, PropagationPrograms, create, namespaced},
    wait::until,
};
use serde_json::{Value, json};

const MEMBER: Member = Member(1);
const WEB: &str = "web";

/// The programs of a fleet with one cluster of mode Pull.
struct Programs {
    _propagation: PropagationPrograms,
    _clusters: Running,
    inside: [Running; 2],
}

/// Starts a fleet without Karmada, registers its member by the commands of docs/pull.md, and starts all programs.
async fn registered(server: ApiKind) -> Result<(PropagationFleet, Programs)> {
    let unjoined = PropagationFleet::start_unjoined([server, server], 1, Profile::Debug);
    let mut fleet = unjoined.await?;
    fleet.karmada.start_controllers().await?;
    let karmada = &fleet.karmada;
    manifests::apply(
        &karmada.client(),
        "propagation/cluster/cluster-controller.yaml",
    )
    .await?;
    karmada.guard(["admission/clusters.yaml"]).await?;
    let propagation = fleet.run().await?;
    let clusters = fleet.start_program(Binary::ClusterController, &[]).await?;
    let cluster = json!({ "metadata": { "name": MEMBER.name() }, "spec": { "syncMode": "Pull" } });
    create(&Api::<ClusterView>::all(karmada.client()), cluster).await?;
    let namespaces: Api<Namespace> = Api::all(karmada.client());
    let own = execution_namespace(&MEMBER.name());
    until(&namespaces, &own, "there", |found| found.is_some()).await?;
    manifests::apply(&karmada.client(), "pull/rights.yaml").await?;
    let member = fleet.member(MEMBER);
    member.namespace("karmada-system").await?;
    manifests::apply(&member.client(), "pull/member/rights.yaml").await?;
    let inside = [
        start_inside(karmada, member, Binary::ExecutionController).await?,
        start_inside(karmada, member, Binary::ClusterController).await?,
    ];
    let programs = Programs {
        _propagation: propagation,
        _clusters: clusters,
        inside,
    };
    Ok((fleet, programs))
}

/// Starts a program in the member, with both of its accounts.
async fn start_inside(
    karmada: &ControlPlane,
    member: &ControlPlane,
    program: Binary,
) -> Result<Running> {
    let name = MEMBER.name();
    let theirs = format!("system:serviceaccount:{}:pull", execution_namespace(&name));
    let theirs = karmada.kubeconfig_for(&theirs, None)?;
    let own = format!("system:serviceaccount:karmada-system:{}", program.name());
    let own = member.kubeconfig_for(&own, None)?;
    let flags = [
        "--pull".to_owned(),
        format!("--cluster-name={name}"),
        format!("--karmada-kubeconfig={}", theirs.display()),
        format!("--kubeconfig={}", own.display()),
    ];
    Running::start(program, Profile::Debug, flags).await
}

fn is_ready(cluster: &ClusterView) -> bool {
    let mut conditions = cluster.status.conditions.iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_applied(work: &Work) -> bool {
    let status = work.status.iter();
    let mut conditions = status.flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.type_ == "Applied" && condition.status == "True")
}

/// Case I99: what a policy sends to a cluster of mode Pull arrives, is reported, and goes; its health, its kinds and its
/// Lease are in the control plane; and no right is missing.
async fn cluster_fetches_what_it_runs(server: ApiKind) -> Result<()> {
    let (fleet, programs) = registered(server).await?;
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    until(&clusters, &MEMBER.name(), "ready", |cluster| {
        cluster.is_some_and(|cluster| {
            let kinds = cluster.status.api_enablements.iter();
            is_ready(cluster) && kinds.count() > 0
        })
    })
    .await?;
    let leases: Api<Lease> = Api::namespaced(fleet.karmada.client(), "karmada-cluster");
    until(&leases, &MEMBER.name(), "held", |lease| lease.is_some()).await?;

    let labels = json!({ "app": WEB });
    let pod = json!({ "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": WEB, "image": "web:1" }] } });
    let deployment = json!({ "metadata": { "name": WEB, "namespace": NAMESPACE },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": pod } });
    let templates: Api<Deployment> = namespaced(fleet.karmada.client());
    create(&templates, deployment).await?;
    let map = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
    create(&maps, map).await?;
    let selector =
        |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind, "name": WEB });
    let selectors: Vec<Value> = vec![
        selector("apps/v1", "Deployment"),
        selector("v1", "ConfigMap"),
    ];
    let policy = json!({ "resourceSelectors": selectors, "placement": {} });
    fleet.create_policy(WEB, policy).await?;
    for kind in ["Deployment", "ConfigMap"] {
        let work = PropagationFleet::work_name(kind, WEB);
        let works = fleet.works(MEMBER);
        until(&works, &work, "applied", |work| {
            work.is_some_and(is_applied)
        })
        .await?;
    }
    let copies: Api<Deployment> = namespaced(fleet.member(MEMBER).client());
    until(&copies, WEB, "there", |copy| copy.is_some()).await?;

    templates.delete(WEB, &DeleteParams::background()).await?;
    until(&copies, WEB, "gone", |copy| copy.is_none()).await?;
    for program in programs.inside {
        assert!(
            !program.output()?.contains("forbidden"),
            "a right is missing"
        );
        program.stop().await?;
    }
    Ok(())
}

on_both!(cluster_fetches_what_it_runs);
