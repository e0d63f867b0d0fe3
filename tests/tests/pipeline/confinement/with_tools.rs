//! docs/security.md, followed by a reader.

use anyhow::ensure;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::{Api, ResourceExt, api::ListParams};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    fleet::isolated,
    test_name,
};

use crate::install::page::{Page, Reader};

/// Who follows the page has a policy for each program, in both clusters.
#[test]
fn page_confines_every_account() {
    isolated(test_name!(), async || {
        let (karmada, gateway) = tokio::try_join!(
            ControlPlane::start("karmada", ApiKind::Real),
            ControlPlane::start("gateway", ApiKind::Real)
        )?;
        let reader = Reader::of(
            &[("karmada", &karmada), ("gateway", &gateway)],
            ApiKind::Real,
        )?;
        for step in reader.steps(Page::Security, "Confine the accounts") {
            reader.run(&step).await?;
        }
        for (api, expected) in [
            (
                &karmada,
                &[
                    "cluster-health",
                    "execution-controller-endpoints",
                    "execution-controller-imports",
                    "execution-controller",
                    "ingress-controller",
                    "propagation-controller",
                    "renew",
                    "scheduler",
                ][..],
            ),
            (&gateway, &["ingress-controller"]),
        ] {
            let policies: Api<ValidatingAdmissionPolicy> = Api::all(api.client());
            let policies = policies.list(&ListParams::default()).await?;
            let names: Vec<_> = policies.iter().map(ResourceExt::name_any).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|name| format!("{name}.karmada-rs.io"))
                .collect();
            ensure!(names == expected, "{names:?}");
        }
        Ok(())
    });
}
