//! DNS of a member dies during a paused rollout.

use anyhow::Result;
use k8s_openapi::api::core::v1::Service;
use karmada_api::{
    Cluster, MultiClusterIngress, Remedy, condition::DNS_READY, execution_namespace, names,
};
use kube::Api;
use lab_parts::{
    dns::{self, DnsServer},
    thresholds::ProbeTiming,
};
use pipeline_tests::{
    api::create,
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member, on_dns},
    manifests, on_both,
    programs::{Binary, Profile, Running},
    propagation::{PropagationFleet, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use super::record::Record;
use super::{WEB, deployed, has_image, is_fully_applied, set_image, suspend, work_has};

/// The member whose DNS dies.
const MEMBER: Member = Member(1);

/// Starts the programs that watch over the member and block traffic to it.
async fn watch_over(fleet: &PropagationFleet) -> Result<[Running; 3]> {
    let karmada = &fleet.karmada;
    for file in [
        "remedy-controller",
        "ingress-controller",
        "ingressclass",
        "agent",
    ] {
        manifests::apply(&karmada.client(), &format!("karmada/{file}.yaml")).await?;
    }
    let namespace = execution_namespace(&MEMBER.name());
    let kubeconfig = karmada.account_kubeconfig(&namespace, "cluster-health-agent")?;
    let own = [
        format!("--karmada-kubeconfig={}", kubeconfig.display()),
        format!("--cluster-name={}", MEMBER.name()),
        "--host-name=node1".to_owned(),
        format!("--nameserver={}", MEMBER.dns()),
    ];
    let flags = own.into_iter().chain(ProbeTiming::SHORT.flags());
    Ok([
        Running::start(Binary::Agent, Profile::Debug, flags).await?,
        fleet.start_program(Binary::RemedyController, &[]).await?,
        fleet
            .start_program(Binary::IngressController, &["--provider=none"])
            .await?,
    ])
}

async fn working_dns() -> Result<DnsServer> {
    let response = dns::cluster();
    Ok(DnsServer::start_at(MEMBER.dns(), response).await?)
}

/// Lets a Service follow the deployment, with an ingress in front of it and a Remedy for its clusters.
async fn serve(fleet: &PropagationFleet) -> Result<()> {
    let client = fleet.karmada.client();
    let ports = json!([{ "name": "http", "port": 80 }]);
    let services: Api<Service> = namespaced(client.clone());
    let service = json!({ "metadata": { "name": WEB }, "spec": { "ports": ports } });
    create(&services, service).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "Service", "name": WEB });
    let policy = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy("service", policy).await?;
    is_fully_applied(fleet, &names::binding("Service", WEB)).await?;

    let remedies: Api<Remedy> = Api::all(client.clone());
    create(
        &remedies,
        json!({ "metadata": { "name": "dns" }, "spec": on_dns() }),
    )
    .await?;
    let backend = json!({ "service": { "name": WEB, "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let spec =
        json!({ "ingressClassName": "karmada-rs", "rules": [{ "http": { "paths": [path] } }] });
    let ingresses: Api<MultiClusterIngress> = namespaced(client);
    create(
        &ingresses,
        json!({ "metadata": { "name": INGRESS }, "spec": spec }),
    )
    .await
}

/// Waits until traffic to exactly these members is blocked.
async fn is_blocked(fleet: &PropagationFleet, members: &[Member]) -> Result<()> {
    let names: Vec<String> = members.iter().map(|member| member.name()).collect();
    let ingresses: Api<MultiClusterIngress> = namespaced(fleet.karmada.client());
    until(
        &ingresses,
        INGRESS,
        &format!("blocked: {names:?}"),
        |ingress| {
            let status = ingress.and_then(|ingress| ingress.status.as_ref());
            let blocked = status.and_then(|status| status.traffic_block_clusters.as_deref());
            blocked.unwrap_or_default() == names
        },
    )
    .await?;
    Ok(())
}

/// Case P64: traffic leaves, nothing else moves, and the resume completes the rollout while DNS is dead.
async fn only_traffic_moves_while_paused(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[MEMBER])?;
    let members = [MEMBER, Member(2)];
    let (fleet, _programs) = deployed(server, &members).await?;
    let dns = working_dns().await?;
    let _watching = watch_over(&fleet).await?;
    serve(&fleet).await?;
    until_dns(&fleet, "True").await?;
    is_blocked(&fleet, &[]).await?;
    let records = members.map(|member| Record::of(fleet.member(member)));

    suspend(&fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:1").await?;
    }
    set_image(&fleet, "web:2").await?;
    for member in members {
        work_has(&fleet, member, "Dispatching", "False", "web:2").await?;
    }
    let binding = names::binding("Deployment", WEB);
    let before = fleet.bindings().get(&binding).await?.spec;
    dns.stop().await?;
    drop(dns);
    until_dns(&fleet, "False").await?;
    is_blocked(&fleet, &[MEMBER]).await?;
    assert_eq!(fleet.bindings().get(&binding).await?.spec, before);

    suspend(&fleet, Value::Null).await?;
    for member in members {
        has_image(&fleet, member, "web:2").await?;
    }
    is_blocked(&fleet, &[MEMBER]).await?;
    let _dns = working_dns().await?;
    is_blocked(&fleet, &[]).await?;
    for record in &records {
        record.ensure_ran(&[("web:1", 0), ("web:2", 0)]).await?;
    }
    Ok(())
}

/// Waits for this verdict about DNS of the member.
async fn until_dns(fleet: &PropagationFleet, verdict: &str) -> Result<()> {
    let clusters: Api<Cluster> = Api::all(fleet.karmada.client());
    until(&clusters, &MEMBER.name(), verdict, |cluster| {
        let condition = cluster.and_then(|cluster| cluster.condition(DNS_READY));
        condition.is_some_and(|condition| condition.status == verdict)
    })
    .await?;
    Ok(())
}

on_both!(long: only_traffic_moves_while_paused);
