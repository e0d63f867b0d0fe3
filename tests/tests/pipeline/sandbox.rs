//! The sandbox with the real kubectl and the kubeconfig that it prints.

use std::path::Path;

use anyhow::{Result, ensure};
use kube::{Api, Client};
use pipeline_tests::{
    kubectl::{Kubectl, ensure_cells},
    programs::{Binary, build_for_tests},
    sandbox::Sandbox,
    wait::{until_event, until_told},
};

const BINDING: &str = "resourcebinding.work.karmada.io/web-deployment";

/// Checks that the output has each of these.
fn shows(printed: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(printed.contains(part), "{part:?} is not in {printed}");
    }
    Ok(())
}

mod with_tools {
    use super::*;

    /// `kubectl` works with the kubeconfig that is printed.
    #[tokio::test(flavor = "multi_thread")]
    async fn printed_kubeconfig_works() -> Result<()> {
        build_for_tests()?;
        let sandbox = Sandbox::start(&[]).await?;
        let kubectl = Kubectl::new(sandbox.kubeconfig.clone())?;

        for member in ["member1", "member2", "member3"] {
            let ready = "--for=condition=ServiceDomainNameResolutionReady=True";
            let line = format!("wait {ready} cluster/{member} --timeout=60s");
            shows(&kubectl.run(&line).await?, &["condition met"])?;
        }
        let all = kubectl.run("get clusters,remedies,mci -A").await?;
        let objects = [
            "cluster.cluster.karmada.io/member1",
            "cluster.cluster.karmada.io/member3",
            "remedy.remedy.karmada.io/dns",
            "multiclusteringress.networking.karmada.io/shop",
        ];
        shows(&all, &objects)?;
        let explained = kubectl.run("explain remedy.spec").await?;
        shows(
            &explained,
            &["FIELD: spec <", "clusterAffinity", "decisionMatches"],
        )?;
        let described = kubectl.run("describe cluster member1").await?;
        shows(
            &described,
            &["ServiceDomainNameResolutionReady", "no node fails"],
        )?;

        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/samples/");
        let applied = kubectl
            .run(&format!("apply -f {}", samples.display()))
            .await?;
        let changes = [
            "multiclusteringress.networking.karmada.io/shop ",
            "remedy.remedy.karmada.io/dns ",
            "remedy.remedy.karmada.io/maintenance-member1 created",
        ];
        shows(&applied, &changes)?;
        // The controllers act on the objects that kubectl applied.
        let blocked = "--for=jsonpath={.status.trafficBlockClusters[0]}=member1";
        let line = format!("wait {blocked} mci/shop -n shop --timeout=60s");
        shows(&kubectl.run(&line).await?, &["condition met"])?;
        let described = kubectl.run("describe cluster member1").await?;
        shows(&described, &["TrafficControl"])?;
        let gateway = "--context gateway -n shop get services,endpointslices,ingresses -o name";
        shows(
            &kubectl.run(gateway).await?,
            &["service/", "endpointslice.", "ingress."],
        )?;
        sandbox.stop().await
    }

    /// `kubectl` shows the website on its way to the members.
    #[tokio::test(flavor = "multi_thread")]
    async fn kubectl_shows_the_website() -> Result<()> {
        build_for_tests()?;
        let sandbox = Sandbox::start(&[]).await?;
        let kubectl = Kubectl::new(sandbox.kubeconfig.clone())?;
        for condition in [
            // The members' statuses add up.
            "--for=jsonpath={.status.readyReplicas}=3 deployment/web",
            "--for=condition=FullyApplied rb/web-deployment rb/web-service",
        ] {
            let line = format!("wait {condition} -n shop --timeout=60s");
            shows(&kubectl.run(&line).await?, &["condition met"])?;
        }
        let work = karmada_api::names::work("Deployment", "shop", "web");
        let here = format!("work.work.karmada.io/{work}");
        let printed = kubectl.run("get pp,rb,work -A").await?;
        let cells = [
            (
                "shop",
                "propagationpolicy.policy.karmada.io/web",
                "PRIORITY",
                "0",
            ),
            ("shop", BINDING, "SCHEDULED", "True"),
            ("shop", BINDING, "FULLYAPPLIED", "True"),
            ("karmada-es-member1", &here, "WORKLOAD-KIND", "Deployment"),
            ("karmada-es-member1", &here, "APPLIED", "True"),
        ];
        ensure_cells(&printed, &cells)?;
        for member in ["member1", "member2", "member3"] {
            let line = format!("--context {member} get deployments -n shop -o name");
            shows(&kubectl.run(&line).await?, &["deployment.apps/web"])?;
        }

        let client = sandbox.client().await?;
        // They stand there in the order of their room, which the pods change.
        let clusters = "Result: {member";
        until_event(&client, "ResourceBinding", "web-deployment", clusters).await?;
        let described = kubectl.run("describe rb web-deployment -n shop").await?;
        let deployed = [
            "Binding has been scheduled successfully.",
            "FullyAppliedSuccess",
            "ScheduleBindingSucceed",
            clusters,
            "member1:1",
            "member2:1",
            "member3:1",
        ];
        shows(&described, &deployed)?;
        ensure!(!described.contains("SuspendDispatching"), "{described}");

        a_pause_shows(&kubectl, client, &work).await?;
        sandbox.stop().await
    }

    /// A kind of another project travels once its definition is there, divided as a script says, and no kind is left
    /// alone.
    #[tokio::test(flavor = "multi_thread")]
    async fn argo_rollouts_travel() -> Result<()> {
        build_for_tests()?;
        let mut sandbox = Sandbox::start(&["--log-level", "info,kube=off"]).await?;
        let kubectl = Kubectl::new(sandbox.kubeconfig.clone())?;
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/samples/rollout");
        let definition = samples.join("definition.yaml");
        for context in ["karmada", "member1", "member2", "member3"] {
            let line = format!("--context {context} apply -f {}", definition.display());
            shows(
                &kubectl.run(&line).await?,
                &["rollouts.argoproj.io created"],
            )?;
        }
        // Replicas are divided once, over the clusters that have the kind then.
        let listed = r#"{.status.apiEnablements[?(@.groupVersion=="argoproj.io/v1alpha1")].resources[0].kind}"#;
        let line = format!("wait cluster --all --for=jsonpath={listed}=Rollout --timeout=60s");
        shows(&kubectl.run(&line).await?, &["member3 condition met"])?;
        for (file, created) in [
            ("customization.yaml", "rollouts.argoproj.io created"),
            ("checkout.yaml", "rollout.argoproj.io/checkout created"),
        ] {
            let line = format!("apply -f {}", samples.join(file).display());
            shows(&kubectl.run(&line).await?, &[created])?;
        }

        for state in ["create", "condition=FullyApplied"] {
            let line = format!("wait --for={state} rb/checkout-rollout -n shop --timeout=60s");
            shows(&kubectl.run(&line).await?, &["condition met"])?;
        }
        for (member, replicas) in [("member1", "2"), ("member2", "1"), ("member3", "1")] {
            let there = format!("--for=jsonpath={{.spec.replicas}}={replicas} rollout/checkout");
            let line = format!("--context {member} wait {there} -n shop --timeout=60s");
            shows(&kubectl.run(&line).await?, &["condition met"])?;
        }
        let metrics = sandbox.metrics(Binary::PropagationController).await?;
        shows(
            &metrics,
            &["karmada_propagation_controller_uninterpreted_templates 0\n"],
        )?;
        sandbox.stop().await
    }

    /// Pauses the website and edits it, and checks where kubectl shows that it stands.
    async fn a_pause_shows(kubectl: &Kubectl, client: Client, work: &str) -> Result<()> {
        let pause =
            r#"patch pp web -n shop --type merge -p {"spec":{"suspension":{"dispatching":true}}}"#;
        shows(&kubectl.run(pause).await?, &["patched"])?;
        let held = format!("--for=condition=Dispatching=false work/{work}");
        let line = format!("wait {held} -n karmada-es-member1 --timeout=60s");
        shows(&kubectl.run(&line).await?, &["condition met"])?;
        let edit = "set image deployment/web web=registry.example.com/shop/web:2 -n shop";
        shows(&kubectl.run(edit).await?, &["image updated"])?;
        let late = "Dispatching is suspended before the template was delivered to member1, member2, member3";
        let bindings = Api::namespaced(client, "shop");
        until_told(&bindings, "web-deployment", ["FullyApplied", "False"], late).await?;
        let described = kubectl.run("describe rb web-deployment -n shop").await?;
        let paused = [
            "SuspendDispatching",
            "Dispatching is suspended on member1 (has generation ",
            "DispatchSuspended",
            late,
        ];
        shows(&described, &paused)?;
        let printed = kubectl.run("get rb -A").await?;
        let cells = [("SCHEDULED", "True"), ("FULLYAPPLIED", "False")];
        let cells = cells.map(|(column, value)| ("shop", "web-deployment", column, value));
        ensure_cells(&printed, &cells)
    }
}
