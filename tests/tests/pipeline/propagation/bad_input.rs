//! Bad input, and copies that members refuse: each has one clear message and holds up nothing else.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, ResourceQuota, Secret},
    rbac::v1::ClusterRole,
};
use karmada_api::ClusterView;
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::{create, merge, merge_status},
    both,
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, namespaced},
    test_name,
    wait::until,
};
use propagation_rules::{claim::Claim, namespaces::SKIP_LABEL};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use super::{WEB, has_data, maps, until_work};

/// A namespace besides that of the fleet's objects.
const ELSEWHERE: &str = "elsewhere";

/// Waits until the Work of the `ConfigMap` in `member` was not applied, for a reason that has `text`.
pub(crate) async fn is_refused(fleet: &PropagationFleet, member: Member, text: &str) -> Result<()> {
    until_work(fleet, member, "ConfigMap", text, |work| {
        let applied = work.and_then(|work| work.condition("Applied"));
        applied.is_some_and(|applied| applied.status == "False" && applied.message.contains(text))
    })
    .await
}

/// Creates a `ConfigMap` and a policy that puts it into every member.
async fn everywhere(fleet: &PropagationFleet) -> Result<()> {
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy(WEB, spec).await
}

/// The policy of one namespace has the objects there, and the kubernetes Service is in every member anyway.
async fn broad_policy_delays_no_other(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    fleet.karmada.namespace(ELSEWHERE).await?;
    let whole = [
        ("apps/v1", "Deployment"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("v1", "ConfigMap"),
        ("v1", "Namespace"),
        ("v1", "Secret"),
        ("v1", "Service"),
    ];
    let whole = whole.map(|(version, kind)| json!({ "apiVersion": version, "kind": kind }));
    let spec = json!({ "resourceSelectors": whole, "placement": {} });
    fleet.create_cluster_policy("everything", spec).await?;
    everywhere(&fleet).await?;
    let elsewhere =
        |api: &ControlPlane| -> Api<ConfigMap> { Api::namespaced(api.client(), ELSEWHERE) };
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "2" } });
    create(&elsewhere(&fleet.karmada), settings).await?;
    let _programs = fleet.run().await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    let copies = elsewhere(fleet.member(Member(1)));
    until(&copies, WEB, "there", |copy| copy.is_some()).await?;
    for (map, policy) in [
        (maps(&fleet.karmada), WEB),
        (elsewhere(&fleet.karmada), "everything"),
    ] {
        until(&map, WEB, policy, |map: Option<&ConfigMap>| {
            let claim = map.and_then(|map| Claim::of(&map.metadata));
            claim.is_some_and(|claim| claim.name == policy)
        })
        .await?;
    }
    // The members' credentials stay here.
    let secrets: Api<Secret> = Api::namespaced(fleet.karmada.client(), "karmada-cluster");
    let credentials = secrets.get(&Member(1).name()).await?;
    assert_eq!(Claim::of(&credentials.metadata), None);
    Ok(())
}

/// One member does not speak HTTP, the other is no Kubernetes API.
async fn garbled_member_delays_no_other(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>";
    let (noise, _noise) = answering("SSH-2.0-OpenSSH_9.6\r\n").await?;
    let (pages, _pages) = answering(page).await?;
    let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
    for (member, address) in [(Member(2), noise), (Member(3), pages)] {
        let endpoint = json!({ "apiEndpoint": format!("http://{address}") });
        let elsewhere = json!({ "spec": endpoint });
        merge(&clusters, &member.name(), &elsewhere).await?;
    }
    everywhere(&fleet).await?;
    let _programs = fleet.run().await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    is_refused(&fleet, Member(2), "the cluster cannot be reached").await?;
    let no_json = "the cluster's response cannot be read";
    is_refused(&fleet, Member(3), no_json).await
}

/// Answers each request with `answer` until the task is dropped.
async fn answering(answer: &'static str) -> Result<(SocketAddr, JoinSet<()>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let mut task = JoinSet::new();
    task.spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            // Whoever has gone needs no answer.
            if client.read(&mut request).await.is_ok() {
                drop(client.write_all(answer.as_bytes()).await);
            }
        }
    });
    Ok((address, task))
}

/// A member without the namespace says so and gets the copy once it has it.
async fn missing_namespace_is_awaited(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let namespaces: Api<Namespace> = Api::all(fleet.karmada.client());
    let stays = json!({ "metadata": { "labels": { SKIP_LABEL: "true" } } });
    merge(&namespaces, NAMESPACE, &stays).await?;
    fleet.member(Member(1)).namespace(NAMESPACE).await?;
    everywhere(&fleet).await?;
    let _programs = fleet.run().await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    is_refused(&fleet, Member(2), r#"namespaces "shop" not found"#).await?;
    fleet.member(Member(2)).namespace(NAMESPACE).await?;
    has_data(&fleet, Member(2), &[("a", "1")]).await
}

/// Close to the 1.5 MiB that etcd takes, with the additions of binding, Work and member.
async fn large_template_reaches_members(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let names: Vec<String> = (0..14_000).map(|number| format!("{number:0>97}")).collect();
    let large = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
        "resourceNames": names });
    let role = json!({ "metadata": { "name": WEB }, "rules": [large] });
    assert!(role.to_string().len() > 1_400_000);
    let templates: Api<ClusterRole> = Api::all(fleet.karmada.client());
    create(&templates, role).await?;
    let selector = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_cluster_policy(WEB, spec).await?;

    let copies: Api<ClusterRole> = Api::all(fleet.member(Member(1)).client());
    until(&copies, WEB, "whole", |copy| {
        let first = copy.and_then(|copy| copy.rules.as_deref()?.first());
        first.is_some_and(|large| large.resource_names.as_ref() == Some(&names))
    })
    .await?;
    Ok(())
}

on_both!(
    long:
    broad_policy_delays_no_other,
    garbled_member_delays_no_other,
    missing_namespace_is_awaited,
    large_template_reaches_members,
);

// On the real API only: the embedded one has no quotas.
mod quota {
    mod real {
        use super::super::*;

        /// A member without room says so and gets the copy once there is some.
        #[test]
        fn full_member_is_awaited() {
            both::run(test_name!(), ApiKind::Real, out_of_quota);
        }
    }
}

/// Leaves no room for a `ConfigMap` in [`NAMESPACE`] of a member.
pub(crate) async fn leave_no_room(member: &ControlPlane) -> Result<()> {
    member.namespace(NAMESPACE).await?;
    let quotas: Api<ResourceQuota> = namespaced(member.client());
    let none = json!({ "hard": { "configmaps": "0" } });
    let quota = json!({ "metadata": { "name": WEB }, "spec": none });
    create(&quotas, quota).await?;
    // In place of the controller of quotas.
    let used = json!({ "configmaps": "0" });
    let status = json!({ "hard": none["hard"], "used": used });
    merge_status(&quotas, WEB, &status).await
}

async fn out_of_quota(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let full = fleet.member(Member(2));
    leave_no_room(full).await?;

    everywhere(&fleet).await?;
    let _programs = fleet.run().await?;
    has_data(&fleet, Member(1), &[("a", "1")]).await?;
    is_refused(&fleet, Member(2), "exceeded quota").await?;
    let quotas: Api<ResourceQuota> = namespaced(full.client());
    quotas.delete(WEB, &DeleteParams::default()).await?;
    has_data(&fleet, Member(2), &[("a", "1")]).await
}
