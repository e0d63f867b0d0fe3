//! What a Karmada whose features are switched otherwise than ours leaves to decide before ours take over.

use karmada_api::{ClusterPropagationPolicy, PropagationPolicy, ResourceBinding, names};
use kube::api::ListParams;
use kube::{Api, Client};
use objects::Metadata;

use super::report::Finding;
use crate::error::Error;
use crate::fleet::list;

/// Returns what ours would do that this Karmada may not.
pub(super) async fn findings(client: &Client) -> Result<Vec<Finding>, Error> {
    let all = ListParams::default;
    let (bindings, policies, of_fleet) = futures::try_join!(
        list::<ResourceBinding>(Api::all(client.clone()), all()),
        list::<PropagationPolicy>(Api::all(client.clone()), all()),
        list::<ClusterPropagationPolicy>(Api::all(client.clone()), all()),
    )?;
    let bindings = bindings
        .iter()
        .filter(|(_, binding)| is_left_alone(binding));
    let policies = policies.iter().filter(|(_, policy)| policy.spec.preempts());
    let of_fleet = of_fleet.iter().filter(|(_, policy)| policy.spec.preempts());
    let counts = (bindings.count(), policies.count() + of_fleet.count());
    Ok(told(counts.0, counts.1))
}

/// Returns `true` for a binding that what its template refers to should follow, and does not.
fn is_left_alone(binding: &ResourceBinding) -> bool {
    let spec = &binding.spec;
    // Who lets it follow notes what there is, even if that is nothing.
    spec.propagate_deps == Some(true)
        && spec
            .clusters
            .as_ref()
            .is_some_and(|clusters| !clusters.is_empty())
        && binding.metadata.annotation(names::DEPENDENCIES).is_none()
}

fn told(left_alone: usize, preempting: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    if left_alone > 0 {
        findings.push(Finding::doubtful(
            format!("bindings with propagateDeps that nothing follows, {left_alone} of them: PropagateDeps is off"),
            "start the propagation-controller with --feature-gates=PropagateDeps=false, or Secrets and ConfigMaps that stayed at home go to their clusters",
        ));
    }
    if preempting > 0 {
        findings.push(Finding::doubtful(
            format!("policies with preemption Always, {preempting} of them: a Karmada heeds it only with PropagationPolicyPreemption"),
            "start the propagation-controller with --feature-gates=PropagationPolicyPreemption=false, unless karmada-controller-manager has it on, or they take templates from other policies",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    /// Dependencies that were never listed have stayed at home.
    #[test]
    fn dependencies_at_home_are_found() {
        let binding = |spec: Value, annotations: Value| -> ResourceBinding {
            let mut binding =
                json!({ "metadata": { "name": "web", "annotations": annotations }, "spec": spec });
            binding["spec"]["resource"] =
                json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
            from_value(binding).unwrap()
        };
        let follows = json!({ "propagateDeps": true, "clusters": [{ "name": "member1" }] });
        let listed = json!({ (names::DEPENDENCIES): "null" });
        let cases = [
            (follows.clone(), json!(null), true),
            (follows, listed, false),
            (json!({ "propagateDeps": true }), json!(null), false),
            (
                json!({ "clusters": [{ "name": "member1" }] }),
                json!(null),
                false,
            ),
        ];
        for (spec, annotations, expected) in cases {
            let binding = binding(spec, annotations);
            assert_eq!(is_left_alone(&binding), expected, "{binding:?}");
        }
    }

    #[test]
    fn nothing_is_told_of_nothing() {
        assert!(told(0, 0).is_empty());
        assert_eq!(told(1, 2).len(), 2);
    }
}
