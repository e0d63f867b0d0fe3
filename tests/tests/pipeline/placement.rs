//! The number of writes that it takes to bring a workload to its members.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::names;
use kube::Api;
use pipeline_tests::{
    api::create, control_plane::ApiKind, fleet::NAMESPACE, on_both, propagation::PropagationFleet,
    wait::until,
};
use serde_json::json;

use crate::propagation::{WEB, deployment, deployments};

/// The verb, resource and subresource of a write, and the most that the first placement takes.
const ALLOWED: [(&str, &str, &str, u64); 8] = [
    ("POST", "deployments", "", 1),
    // The claim.
    ("PATCH", "deployments", "", 1),
    ("POST", "resourcebindings", "", 1),
    // The clusters.
    ("PATCH", "resourcebindings", "", 1),
    // That they were chosen, and the outcome of the Works: on a slow machine each of their statuses comes
    // later than the second in which they are reported together.
    ("PATCH", "resourcebindings", "status", 1 + 2 * 3),
    ("POST", "works", "", 3),
    // That it was applied, and the status of its object.
    ("PATCH", "works", "status", 2 * 3),
    // That the policy was applied, and the replicas; the scheduling, the Works and each report, on binding
    // and template; on each Work that it is dispatched, was applied, has a status and a health.
    ("POST", "events", "", 2 + 2 * (2 + 2 * 3) + 4 * 3),
];

/// Nobody plays the members' own controllers, whose statuses take writes of their own.
async fn first_placement_writes_little(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB });
    let policy = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy(WEB, policy).await?;
    let programs = fleet.run().await?;
    until(&fleet.policies(), WEB, "ours", |policy| {
        policy.is_some_and(|policy| policy.metadata.finalizers.is_some())
    })
    .await?;
    for member in fleet.members() {
        let namespaces: Api<Namespace> = Api::all(fleet.member(member).client());
        until(&namespaces, NAMESPACE, "there", |there| there.is_some()).await?;
    }
    programs.rest().await?;

    let before = fleet.karmada.successful_writes().await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    let binding = names::binding("Deployment", WEB);
    until(
        &fleet.bindings(),
        &binding,
        "applied everywhere",
        |binding| {
            let status = binding.and_then(|binding| binding.status.as_ref());
            let items = status.and_then(|status| status.aggregated_status.as_ref());
            items.is_some_and(|items| items.len() == 3)
        },
    )
    .await?;
    programs.rest().await?;

    let written = fleet.karmada.successful_writes().await?.since(&before);
    for (write, count) in &written.0 {
        let kind = (&*write.verb, &*write.resource, &*write.subresource);
        let allowed = ALLOWED
            .iter()
            .find(|(verb, resource, part, _)| (*verb, *resource, *part) == kind);
        let allowed = allowed.map_or(0, |(.., allowed)| *allowed);
        assert!(*count <= allowed, "{kind:?}: {written}");
    }
    Ok(())
}

on_both!(long: first_placement_writes_little);
