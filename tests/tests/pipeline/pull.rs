//! A cluster that fetches its workloads, by programs with the rights of `manifests/pull` and no more.

use anyhow::Result;
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace},
};
use karmada_api::{ClusterView, execution_namespace};
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::create,
    control_plane::{ApiKind, ControlPlane},
    fleet::Member,
    manifests, on_both,
    programs::{Binary, Profile, Running},
    propagation::{PropagationFleet, namespaced},
    wait::until,
};
use serde_json::json;

use crate::clusters::{deploy, is_ready, runs, unjoined};
use crate::propagation::{WEB, has_condition};

const MEMBER: Member = Member(1);

/// Registers a cluster of mode Pull by the commands of docs/pull.md, and starts the programs in it.
async fn register(fleet: &PropagationFleet) -> Result<[Running; 2]> {
    let karmada = &fleet.karmada;
    let cluster = json!({ "metadata": { "name": MEMBER.name() }, "spec": { "syncMode": "Pull" } });
    create(&Api::<ClusterView>::all(karmada.client()), cluster).await?;
    let namespaces: Api<Namespace> = Api::all(karmada.client());
    let own = execution_namespace(&MEMBER.name());
    until(&namespaces, &own, "there", |found| found.is_some()).await?;
    manifests::apply(&karmada.client(), "pull/rights.yaml").await?;
    let member = fleet.member(MEMBER);
    member.namespace("karmada-system").await?;
    manifests::apply(&member.client(), "pull/member/rights.yaml").await?;
    Ok([
        start_inside(karmada, member, Binary::ExecutionController).await?,
        start_inside(karmada, member, Binary::ClusterController).await?,
    ])
}

/// Starts a program in the member, with both of its accounts.
async fn start_inside(
    karmada: &ControlPlane,
    member: &ControlPlane,
    program: Binary,
) -> Result<Running> {
    let name = MEMBER.name();
    let theirs = karmada.account_kubeconfig(&execution_namespace(&name), "pull")?;
    let own = member.account_kubeconfig("karmada-system", program.name())?;
    let flags = [
        "--pull".to_owned(),
        format!("--cluster-name={name}"),
        format!("--karmada-kubeconfig={}", theirs.display()),
        format!("--kubeconfig={}", own.display()),
    ];
    Running::start(program, Profile::Debug, flags).await
}

/// Case I99: an object that a policy sends to a cluster of mode Pull arrives, is reported, and goes; its health, its kinds and its
/// Lease are in the control plane; and no right is missing.
async fn cluster_fetches_what_it_runs(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = unjoined(server, 1).await?;
    let inside = register(&fleet).await?;
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

    deploy(&fleet).await?;
    let map = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&namespaced::<ConfigMap>(fleet.karmada.client()), map).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let policy = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy("maps", policy).await?;
    for kind in ["Deployment", "ConfigMap"] {
        let work = PropagationFleet::work_name(kind, WEB);
        let works = fleet.works(MEMBER);
        until(&works, &work, "applied", |work| {
            work.is_some_and(|work| has_condition(work, "Applied", "True"))
        })
        .await?;
    }
    runs(&fleet, MEMBER, true).await?;

    let templates: Api<Deployment> = namespaced(fleet.karmada.client());
    templates.delete(WEB, &DeleteParams::background()).await?;
    runs(&fleet, MEMBER, false).await?;
    for program in inside {
        assert!(
            !program.output()?.contains("forbidden"),
            "a right is missing"
        );
        program.stop().await?;
    }
    Ok(())
}

on_both!(long: cluster_fetches_what_it_runs);

mod with_tools {
    use pipeline_tests::{control_plane::ApiKind, fleet::isolated, test_name};

    use super::{MEMBER, unjoined};
    use crate::install::page::{Page, Reader};
    use crate::install::renewal::{OwnToken, renews};

    /// Who follows the page has a token in the member that renews itself. On the real API only: the embedded one has no tokens.
    #[test]
    fn page_renews_its_token() {
        isolated(test_name!(), async || {
            let (fleet, _programs) = unjoined(ApiKind::Real, 1).await?;
            let (name, member) = (MEMBER.name(), fleet.member(MEMBER));
            let contexts = [("karmada", &fleet.karmada), (&*name, member)];
            let reader = Reader::of(&contexts, ApiKind::Real)?;
            reader.learn_functions().await?;
            let steps = reader.steps(Page::Pull, "Register a cluster");
            let [register, store, .., renewal] = &steps[..] else {
                anyhow::bail!("the page has other steps: {steps:?}");
            };
            // The member reaches the control plane by the address of the context.
            let register = register.replace(" https://203.0.113.7:5443", "");
            for step in [&register, store] {
                reader.run(step).await?;
            }
            let token = OwnToken {
                api: "karmada",
                account: &format!("karmada-es-{name}:pull"),
                member: &name,
                secret: "karmada-system/pull-karmada",
            };
            renews(&reader, member, token, std::slice::from_ref(renewal)).await
        });
    }
}
