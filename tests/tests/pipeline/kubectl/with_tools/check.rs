//! `kubectl remedy check` in a fleet that propagates.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::NAMESPACE,
    kubectl::Kubectl,
    on_both,
    propagation::{PropagationFleet, create, namespaced},
};
use serde_json::{Value, json};

fn policy(name: &str, cluster: &str) -> Value {
    json!({
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": name }],
        "placement": { "clusterAffinity": { "clusterNames": [cluster] } },
    })
}

/// One policy selects nothing, a Deployment has no policy, and another is to go where no cluster is. A check names each of
/// them, and says how the members are.
async fn check_names_what_waits(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let _programs = fleet.run().await?;
    for name in ["web", "api"] {
        let deployment = json!({
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "selector": { "matchLabels": { "app": name } },
                "template": { "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": name, "image": "web:1" }] } } },
        });
        create(
            &namespaced::<Deployment>(fleet.karmada.client()),
            deployment,
        )
        .await?;
    }
    fleet.create_policy("web", policy("web", "nowhere")).await?;
    fleet
        .create_policy("idle", policy("none", "member1"))
        .await?;
    let kubectl = Kubectl::new(fleet.karmada.kubeconfig_path().to_owned())?;
    // What it tells is the work of programs that are under way: ask until they have done it.
    let stdout = loop {
        let checked = kubectl.remedy(&["check", "-n", NAMESPACE], "").await?;
        // No remedy-controller leads here.
        assert_eq!(checked.code, Some(1), "{checked:?}");
        if checked
            .stdout
            .contains("× Deployment shop/web is not scheduled: ")
        {
            break checked.stdout;
        }
    };
    for line in [
        "‼ PropagationPolicy shop/idle selects nothing",
        "    kubectl edit propagationpolicy/idle -n shop",
        "✓ every kind that they select may be propagated",
        "‼ no policy selects Deployment shop/api",
        "    kubectl remedy why deployments.apps/api -n shop",
        "    kubectl remedy why rb/web-deployment -n shop",
        "✓ member1 is ready: Push",
        "✓ member2 is ready: Push",
    ] {
        let mut lines = stdout.lines();
        assert!(
            lines.any(|shown| shown.starts_with(line)),
            "{line}\n{stdout}"
        );
    }
    Ok(())
}

on_both!(check_names_what_waits);
