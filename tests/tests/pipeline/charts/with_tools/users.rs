//! A platform that gives each namespace its users, and admits no other.

use anyhow::{Result, ensure};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    kubectl::Kubectl,
    netns, test_name,
};

use super::super::rendering::{manifests, render};

/// Changes pods as `restricted-v2` of OpenShift changes those of a user that is not of the namespace's range.
const ADMISSION: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: restricted-v2}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, daemonsets]}
  validations:
    - expression: >-
        !has(object.spec.template.spec.securityContext.runAsUser) && !has(object.spec.template.spec.securityContext.fsGroup)
        && object.spec.template.spec.containers.all(one, !has(one.securityContext.runAsUser))
      message: runAsUser must be in the ranges of the namespace
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: restricted-v2}
spec: {policyName: restricted-v2, validationActions: [Deny]}
";

const PROGRAMS: &str = r#"propagationController={"enabled":true}"#;

/// Where fixed users are refused, charts and overlays leave them to the platform.
#[test]
fn users_of_the_platform_run() {
    netns::isolated(test_name!(), async || {
        let api = ControlPlane::start("member", ApiKind::Real).await?;
        let kubectl = Kubectl::new(api.kubeconfig_path().to_owned())?;
        for namespace in ["karmada-system", "karmada-rs"] {
            api.namespace(namespace).await?;
        }
        kubectl.feed("apply -f -", ADMISSION).await?;
        let fixed = render("karmada-rs-agent", "karmada-rs", &[])?;
        // The policy counts once the server has compiled it.
        while admits(&kubectl, &fixed).await.is_ok() {}
        let refused = admits(&kubectl, &fixed).await.err();
        let refused = refused.map(|error| format!("{error:#}"));
        ensure!(
            refused
                .as_ref()
                .is_some_and(|it| it.contains("ranges of the namespace")),
            "{refused:?}"
        );
        for objects in [
            render("karmada-rs-agent", "karmada-rs", &["fixedUser=false"])?,
            render(
                "karmada-rs",
                "karmada-system",
                &["fixedUser=false", PROGRAMS],
            )?,
            manifests(&["member + openshift"])?,
            manifests(&["host + openshift"])?,
        ] {
            admits(&kubectl, &objects).await?;
        }
        Ok(())
    });
}

async fn admits(kubectl: &Kubectl, objects: &str) -> Result<()> {
    let apply = "apply --dry-run=server -f -";
    kubectl.feed(apply, objects).await.map(drop)
}
