//! An override policy that would lead a template elsewhere.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::OverridePolicy;
use kube::Api;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, create, namespaced},
    wait::{until, until_event},
};
use serde_json::json;

use super::{WEB, maps};

/// Case P69: the rule of a namespace's policy that leads out of it is refused with an Event, and the copy stays.
async fn escape_is_refused(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let notes = json!({ "metadata": { "name": WEB }, "data": { "a": "b" } });
    create(&maps(&fleet.karmada), notes).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector],
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    fleet.create_policy(WEB, spec).await?;
    let copies = maps(fleet.member(Member(1)));
    until(&copies, WEB, "there", |copy| copy.is_some()).await?;

    let overriders = json!({ "plaintext": [
        { "path": "/metadata/namespace", "operator": "replace", "value": "kube-system" },
    ] });
    let policy = json!({ "metadata": { "name": WEB }, "spec": { "resourceSelectors": [selector],
        "overrideRules": [{ "overriders": overriders }] } });
    let policies: Api<OverridePolicy> = namespaced(fleet.karmada.client());
    create(&policies, policy).await?;
    let client = fleet.karmada.client();
    until_event(&client, "ConfigMap", WEB, "ApplyOverridePolicyFailed").await?;
    let member = fleet.member(Member(1)).client();
    let system: Api<ConfigMap> = Api::namespaced(member, "kube-system");
    ensure!(system.get_opt(WEB).await?.is_none(), "it is in kube-system");
    ensure!(copies.get_opt(WEB).await?.is_some(), "the copy is gone");
    Ok(())
}

on_both!(long: escape_is_refused);
