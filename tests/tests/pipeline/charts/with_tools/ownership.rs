//! Charts in the place of kustomizations that were applied before.

use anyhow::{Context, Result};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    kubectl::Kubectl,
    netns, test_name,
};

use super::super::{
    rendering::{manifests, render},
    scenarios::{ALL, Scenario},
};

const NAMESPACES: [&str; 6] = [
    "karmada-system",
    "karmada-cluster",
    "karmada-es-member1",
    "karmada-rs",
    "fleet-system",
    "fleet-member-member1",
];

/// Who applied a kustomization with kubectl may go on with a chart: Helm 4 applies on the server's side, and no field of the same
/// manifest conflicts. Of atomic parts there, the manifests have every field, defaults too. Definitions of kinds are left out: the
/// versions of one are atomic, and conflict.
#[test]
fn same_manifest_has_no_conflict() {
    netns::isolated(test_name!(), async || {
        let api = ControlPlane::start("karmada", ApiKind::Real).await?;
        let kubectl = Kubectl::new(api.kubeconfig_path().to_owned())?;
        for namespace in NAMESPACES {
            api.namespace(namespace).await?;
        }
        for scenario in ALL {
            adopts(&kubectl, &scenario)
                .await
                .with_context(|| format!("{} {:?}", scenario.chart, scenario.values))?;
        }
        Ok(())
    });
}

async fn adopts(kubectl: &Kubectl, scenario: &Scenario) -> Result<()> {
    let before = manifests(scenario.manifests)?;
    kubectl.feed("apply -f -", &before).await?;
    let after = render(scenario.chart, scenario.namespace, scenario.values)?;
    let objects = after.split("\n---");
    let objects = objects.filter(|object| !object.contains("kind: CustomResourceDefinition"));
    let after = objects.collect::<Vec<_>>().join("\n---");
    let as_helm = "apply --server-side --dry-run=server --field-manager=helm -f -";
    kubectl.feed(as_helm, &after).await.map(drop)
}
