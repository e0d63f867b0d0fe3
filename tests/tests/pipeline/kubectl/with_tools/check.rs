//! `kubectl remedy check` in a fleet that propagates.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, api::PostParams};
use pipeline_tests::{
    api::create,
    control_plane::{ApiKind, ControlPlane},
    fleet::NAMESPACE,
    kubectl::Kubectl,
    on_both,
    propagation::{PropagationFleet, namespaced},
    relay::Relay,
};
use serde_json::{Value, from_value, json};

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
    // The programs are still at work: ask until they have done it.
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

/// Before an installation, a check names missing objects and who leads, and writes nothing.
async fn check_comes_before_installation(server: ApiKind) -> Result<()> {
    let empty = ControlPlane::start("empty", server).await?;
    let kubectl = Kubectl::new(empty.kubeconfig_path().to_owned())?;
    let checked = kubectl.remedy(&["check", "--pre"], "").await?;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for line in [
        "‼ no kind of Karmada is served",
        "‼ members cannot reach the Karmada API at ",
        "× there is no namespace karmada-system, where leases, accounts and tokens are",
        "✓ none of them leads here",
    ] {
        assert!(checked.stdout.contains(line), "{line}\n{checked:?}");
    }

    let fleet = PropagationFleet::start(server, 1).await?;
    let client = fleet.karmada.client();
    let manager = "karmada-scheduler";
    let leases: Api<Lease> = Api::namespaced(client, "karmada-system");
    let lease = json!({ "metadata": { "name": manager }, "spec": { "holderIdentity": "theirs_1",
        "leaseDurationSeconds": 15, "renewTime": MicroTime(Timestamp::now()) } });
    let parameters = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    leases.create(&parameters, &from_value(lease)?).await?;
    let services: Api<Service> = Api::namespaced(fleet.karmada.client(), "karmada-system");
    let estimator = json!({ "metadata": { "name": "karmada-scheduler-estimator-member1" },
        "spec": { "type": "ExternalName", "externalName": "estimator.example" } });
    create(&services, estimator).await?;
    let kubectl = Kubectl::new(fleet.karmada.kubeconfig_path().to_owned())?;
    let url = fleet.karmada.url();
    let given = format!("--server={url}");
    let checked = kubectl.remedy(&["check", "--pre", &given], "").await?;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let reached = match server {
        ApiKind::Real => {
            format!("✓ the Karmada API answers at {url}, and its certificate has that address")
        }
        ApiKind::Embedded | ApiKind::EmbeddedByTls => format!("‼ {url} is not encrypted"),
    };
    for line in [
        &*reached,
        "‼ Services of estimators are here, 1 of them",
        "✓ every kind is served",
        "✓ the namespace karmada-system exists",
        "✓ you may install",
        "‼ karmada-scheduler leads: its lease is held by theirs_1, renewed ",
        "✓ all 0 customizations can be carried out",
    ] {
        assert!(checked.stdout.contains(line), "{line}\n{checked:?}");
    }
    if server == ApiKind::Real {
        certificate_lacks_address(&fleet, &kubectl).await?;
    }
    Ok(())
}

/// A load balancer in front of the API has an address that its certificate lacks.
async fn certificate_lacks_address(fleet: &PropagationFleet, kubectl: &Kubectl) -> Result<()> {
    let _in_front = Relay::start_at("127.0.0.9:5443".parse()?, fleet.karmada.address()).await?;
    let checked = ["check", "--pre", "--server=https://127.0.0.9:5443"];
    let checked = kubectl.remedy(&checked, "").await?;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for part in [
        "× the Karmada API does not answer at https://127.0.0.9:5443: ",
        "--tls-server-name",
    ] {
        assert!(checked.stdout.contains(part), "{checked:?}");
    }
    Ok(())
}

on_both!(long: check_names_what_waits, check_comes_before_installation);
