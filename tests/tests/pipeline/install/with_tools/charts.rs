//! The page's way with Helm.

use anyhow::{Context, Result, ensure};
use pipeline_tests::{both, control_plane::ApiKind, test_name};

use super::{
    super::page::{Page, Reader},
    MEMBERS, before_us, controllers, nothing_is_listed, uninstall,
};

/// The objects that have one of our names.
const LEFT: &str = "
for context in karmada gateway; do
  kubectl --context $context get clusterroles,clusterrolebindings,validatingadmissionpolicies,ingressclasses,deployments,daemonsets -A -o name
done
";

/// Who installs by charts has what the page's other way makes: the controllers work with the accounts' tokens while policies
/// confine them. An uninstallation takes all of it away, and what the page has for every way in
/// the credentials and what the programs wrote.
async fn charts_come_and_go(server: ApiKind) -> Result<()> {
    let fleet = before_us(server).await?;
    let reader = Reader::new(&fleet, server)?;
    let before = reader.run(LEFT).await?;
    reader.learn_functions().await?;
    let steps = reader.steps(Page::Install, "With Helm");
    let [apis, member] = &steps[..] else {
        anyhow::bail!("the page has other steps: {steps:?}");
    };
    reader.run(apis).await?;
    reader.run(member).await?;
    let installed = reader.run(LEFT).await?;
    for name in [
        "clusterrole.rbac.authorization.k8s.io/karmada-rs:cluster-health-agent:member2",
        "validatingadmissionpolicy.admissionregistration.k8s.io/scheduler.karmada-rs.io",
        "deployment.apps/remedy-controller",
        "daemonset.apps/cluster-health-agent",
    ] {
        ensure!(installed.lines().any(|line| line == name), "{installed}");
    }
    let controllers = controllers(&fleet, &reader, server).await?;
    fleet.create_ingress("moved", "karmada-rs").await?;
    fleet.serves(&MEMBERS).await?;
    for controller in controllers {
        controller.stop().await?;
    }
    for step in reader.steps(Page::Uninstall, "With Helm") {
        reader.run(&step).await?;
    }
    ensure!(reader.run(LEFT).await? == before);
    let steps = reader.steps(Page::Uninstall, "The steps");
    let (_, rest) = steps.split_first().context("no steps")?;
    uninstall(&fleet, &reader, rest).await?;
    nothing_is_listed(&reader).await
}

// On the real API only: the embedded one has no tokens.
mod real {
    use super::*;

    #[test]
    fn charts_come_and_go() {
        both::run(test_name!(), ApiKind::Real, super::charts_come_and_go);
    }
}
