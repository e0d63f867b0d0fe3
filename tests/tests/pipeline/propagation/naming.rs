//! Templates whose names Karmada makes the same, or not valid: each has a binding and Works of its own.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Api, api::DeleteParams};
use pipeline_tests::{
    api::create, control_plane::ApiKind, fleet::Member, on_both, propagation::PropagationFleet,
    wait::until,
};
use serde_json::json;

/// Returns the resource that a role of this name is about, so that each has rules of its own.
fn resource(name: &str) -> String {
    format!("r{}", name.len())
}

/// Case P65: names that differ in `:` and `.`, in case, or in characters that a binding's name may not have.
async fn every_role_travels(server: ApiKind) -> Result<()> {
    let long = "x".repeat(250);
    let names = [
        "shop:reader",
        "shop.reader",
        "Shop:readers",
        "shop::writers",
        "shop@auditors",
        "shop_operators",
        "view?x",
        &long,
    ];
    let mut fleet = PropagationFleet::start(server, 1).await?;
    // One collects the binding of a deleted template.
    fleet.karmada.start_controllers().await?;
    let _programs = fleet.run().await?;
    let (templates, copies): (Api<ClusterRole>, Api<ClusterRole>) = (
        Api::all(fleet.karmada.client()),
        Api::all(fleet.member(Member(1)).client()),
    );
    let selectors = names.map(|name| {
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name })
    });
    for (name, verb) in names.into_iter().zip(["get", "list"].into_iter().cycle()) {
        let rules = json!([{ "apiGroups": [""], "resources": [resource(name)], "verbs": [verb] }]);
        create(
            &templates,
            json!({ "metadata": { "name": name }, "rules": rules }),
        )
        .await?;
    }
    let spec = json!({ "resourceSelectors": selectors,
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    fleet.create_cluster_policy("roles", spec).await?;
    for name in names {
        let template = get(&templates, name).await?;
        until(&copies, name, "with its own rules", |copy| {
            copy.is_some_and(|copy| copy.rules == template.rules)
        })
        .await?;
    }
    templates
        .delete("shop:reader", &DeleteParams::default())
        .await?;
    until(&copies, "shop:reader", "gone", |copy| copy.is_none()).await?;
    get(&copies, "shop.reader").await?;
    Ok(())
}

/// Returns a name as a path has it: kube takes it as it is.
fn in_path(name: &str) -> String {
    name.replace('?', "%3F")
}

async fn get(roles: &Api<ClusterRole>, name: &str) -> Result<ClusterRole> {
    Ok(roles.get(&in_path(name)).await?)
}

on_both!(long: every_role_travels);
