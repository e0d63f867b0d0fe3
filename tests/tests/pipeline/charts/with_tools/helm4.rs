//! The charts with Helm 4.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    kubectl::Kubectl,
    netns, test_name,
};
use tools::Tool;

use super::super::{
    rendering::{chart, compare, manifests, render, render_by, run},
    scenarios::ALL,
};

const REPLICAS: &str =
    "-n karmada-system get deployment remedy-controller -o jsonpath={.spec.replicas}";

/// Both helms render the same.
#[test]
fn both_versions_render_alike() {
    for scenario in ALL {
        let (name, namespace, values) = (scenario.chart, scenario.namespace, scenario.values);
        let old = render(name, namespace, values).unwrap();
        let new = render_by(Tool::Helm4, name, namespace, values).unwrap();
        let (differences, objects) = compare(&new, &old).unwrap();
        assert_eq!(differences, [""; 0], "{name} {values:?}");
        assert!(objects > 0, "{name} {values:?}");
    }
}

/// Installs or upgrades the chart of the host with further flags.
fn upgrade(api: &ControlPlane, flags: &[&str]) -> Result<Output> {
    let kubeconfig = api.kubeconfig_path().to_str().context("no text")?;
    let upgrade = [
        "upgrade",
        "--install",
        "--kubeconfig",
        kubeconfig,
        "--namespace",
        "karmada-system",
        "karmada-rs",
    ];
    run(
        Tool::Helm4,
        &[&upgrade[..], flags].concat(),
        &chart("karmada-rs"),
    )
}

/// A chart takes over the objects that kubectl has applied, without force; a change by hand then ends an upgrade with a
/// conflict, until that is given.
#[test]
fn applied_objects_are_taken_over() {
    netns::isolated(test_name!(), async || {
        let api = ControlPlane::start("host", ApiKind::Real).await?;
        let kubectl = Kubectl::new(api.kubeconfig_path().to_owned())?;
        api.namespace("karmada-system").await?;
        kubectl.feed("apply -f -", &manifests(&["host"])?).await?;
        let before = kubectl.run(REPLICAS).await?;

        let taken = upgrade(&api, &["--take-ownership"])?;
        ensure!(taken.status.success(), "{taken:?}");
        let again = upgrade(&api, &[])?;
        ensure!(again.status.success(), "{again:?}");

        let scale = "-n karmada-system scale deployment remedy-controller --replicas=5";
        kubectl.run(scale).await?;
        let refused = upgrade(&api, &[])?;
        let told = String::from_utf8_lossy(&refused.stderr);
        ensure!(
            !refused.status.success() && told.contains(".spec.replicas"),
            "{refused:?}"
        );
        let forced = upgrade(&api, &["--force-conflicts"])?;
        ensure!(forced.status.success(), "{forced:?}");
        ensure!(kubectl.run(REPLICAS).await? == before);
        Ok(())
    });
}
