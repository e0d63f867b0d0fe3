//! Karmada's own programs, as each of its installers runs them, before and after ours were in their place.

use anyhow::{Context, Result, bail};
use pipeline_tests::{
    both,
    control_plane::{ApiKind, ControlPlane},
    crds, test_name,
};

use super::{SECTION, SYSTEM, deployment_controller, is_still, make_rights, of_karmada};
use crate::install::{
    page::{Page, Reader},
    snapshot::Snapshot,
};

/// An installer, with the replicas and arguments that it gives Karmada's programs.
struct Installer {
    name: &'static str,
    replicas: u8,
    scheduler: &'static str,
    controllers: &'static str,
}

/// The installers with their defaults. In Helm's list, the reader has left out Karmada's remedy controller.
const INSTALLERS: [Installer; 3] = [
    Installer {
        name: "karmadactl init",
        replicas: 1,
        scheduler: "/bin/karmada-scheduler --kubeconfig=/etc/kubeconfig \
            --metrics-bind-address=0.0.0.0:10351 --health-probe-bind-address=0.0.0.0:10351 \
            --enable-scheduler-estimator=true --leader-elect=true \
            --leader-elect-resource-namespace=karmada-system --v=4",
        controllers: "/bin/karmada-controller-manager --kubeconfig=/etc/kubeconfig \
            --metrics-bind-address=:8080 --health-probe-bind-address=0.0.0.0:10357 \
            --cluster-status-update-frequency=10s \
            --leader-elect-resource-namespace=karmada-system --v=4",
    },
    Installer {
        name: "Helm",
        replicas: 1,
        scheduler: "/bin/karmada-scheduler --kubeconfig=/etc/kubeconfig \
            --leader-elect-resource-namespace=karmada-system",
        controllers: "/bin/karmada-controller-manager --kubeconfig=/etc/kubeconfig \
            --cluster-status-update-frequency=10s \
            --leader-elect-resource-namespace=karmada-system \
            --health-probe-bind-address=0.0.0.0:10357 --v=2 --controllers=*,-remedy \
            --feature-gates=PropagateDeps=false",
    },
    Installer {
        name: "Karmada's own scripts",
        replicas: 2,
        scheduler: "/bin/karmada-scheduler --kubeconfig=/etc/kubeconfig --v=4",
        controllers: "/bin/karmada-controller-manager --kubeconfig=/etc/kubeconfig \
            --cluster-status-update-frequency=10s \
            --feature-gates=PropagationPolicyPreemption=true --v=4",
    },
];

impl Installer {
    /// Returns the commands that make the Deployments.
    fn installation(&self) -> String {
        let Self {
            replicas,
            scheduler,
            controllers,
            ..
        } = self;
        let create = format!(
            "kubectl --context host -n {SYSTEM} create deployment --image=a --replicas={replicas}"
        );
        format!(
            "set -f\n{create} karmada-scheduler -- {scheduler}\n\
             {create} karmada-controller-manager -- {controllers}\n"
        )
    }
}

/// Follows the page from the first step to the last, but for the checks of our programs: none runs.
async fn follow(reader: &Reader, host: &ControlPlane, installer: &Installer) -> Result<()> {
    let steps = reader.steps(Page::Swap, SECTION);
    let [observe, still, start, _, back] = &steps[..] else {
        bail!("the page has other steps: {steps:?}");
    };
    reader.run(&installer.installation()).await?;
    let there = Snapshot::take(&host.client()).await?;
    let theirs = of_karmada(host).await?;

    make_rights(reader, ApiKind::Real).await?;
    reader.run(observe).await?;
    reader.run(still).await?;
    is_still(&theirs, &of_karmada(host).await?)?;
    reader.run(start).await?;
    reader.run(back).await?;
    there.is_kept_by(&Snapshot::take(&host.client()).await?)?;

    let delete = format!("kubectl --context host -n {SYSTEM} delete deployment --all");
    reader.run(&delete).await.map(drop)
}

/// After the way back, Karmada's programs are as their installer made them.
async fn installer_state_returns(server: ApiKind) -> Result<()> {
    let api = ControlPlane::start("karmada", server).await?;
    api.install_crds(&crds::karmada()).await?;
    for namespace in [SYSTEM, "karmada-cluster"] {
        api.namespace(namespace).await?;
    }
    let reader = Reader::of(&[("karmada", &api), ("host", &api)], server)?;
    let all = async {
        for installer in &INSTALLERS {
            let followed = follow(&reader, &api, installer).await;
            followed.context(installer.name)?;
        }
        Ok(())
    };
    tokio::select! {
        followed = all => followed,
        ended = deployment_controller(&api) => ended,
    }
}

// On the real API only: the embedded one has neither PodDisruptionBudgets nor the scale of a Deployment.
mod real {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn installer_state_returns() {
        both::run(test_name!(), ApiKind::Real, super::installer_state_returns);
    }
}
