//! A protected workload stays where it runs, though its namespace is deleted. On a real API only: the embedded one evaluates no admission
//! policies.

mod real {
    use anyhow::ensure;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    use karmada_api::ResourceBinding;
    use kube::{Api, api::DeleteParams};
    use pipeline_tests::{
        api::{create, merge},
        control_plane::ApiKind,
        fleet::{Member, NAMESPACE, isolated},
        propagation::{PropagationFleet, namespaced},
        test_name,
        wait::until,
    };
    use serde_json::json;

    use super::super::{WEB, deployment, deployments};

    const PROTECTION: &str = "resourcetemplate.karmada.io/deletion-protected";

    /// Case P87: the namespace of a protected Deployment is deleted. Its binding, its policy and the unprotected objects are deleted at
    /// once; the Deployment stays until its label is gone, and so does its copy.
    #[test]
    fn copies_outlive_their_namespace() {
        isolated(test_name!(), async || {
            let mut fleet = PropagationFleet::start(ApiKind::Real, 1).await?;
            fleet.karmada.start_controllers().await?;
            let policies = ["admission/deletion-protection.yaml"];
            fleet.karmada.guard(policies).await?;
            let programs = fleet.run().await?;
            let (templates, copies) = (
                deployments(&fleet.karmada),
                deployments(fleet.member(Member(1))),
            );
            let mut web = deployment("web:1");
            web["metadata"]["labels"][PROTECTION] = json!("Always");
            create(&templates, web).await?;
            let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
            create(&maps, json!({ "metadata": { "name": WEB } })).await?;
            let selectors = json!([
                { "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB },
                { "apiVersion": "v1", "kind": "ConfigMap", "name": WEB },
            ]);
            let spec = json!({ "resourceSelectors": selectors, "placement": {} });
            fleet.create_policy(WEB, spec).await?;
            let in_member: Api<ConfigMap> = namespaced(fleet.member(Member(1)).client());
            until(&copies, WEB, "copied", |copy| copy.is_some()).await?;
            until(&in_member, WEB, "copied", |copy| copy.is_some()).await?;
            // The admission has a watch of its own: repeat until it has seen the policy.
            let try_only = DeleteParams {
                dry_run: true,
                ..DeleteParams::default()
            };
            while templates.delete(WEB, &try_only).await.is_ok() {}

            let namespaces: Api<Namespace> = Api::all(fleet.karmada.client());
            namespaces
                .delete(NAMESPACE, &DeleteParams::default())
                .await?;
            until(&maps, WEB, "gone", |map| map.is_none()).await?;
            until(&in_member, WEB, "gone", |copy| copy.is_none()).await?;
            let bindings: Api<ResourceBinding> = namespaced(fleet.karmada.client());
            let binding = "web-deployment";
            until(&bindings, binding, "being deleted", |binding| {
                binding.is_some_and(|binding| binding.metadata.deletion_timestamp.is_some())
            })
            .await?;
            programs.settled().await?;
            // Who starts now knows nothing of the Deployment at first.
            programs.stop().await?;
            let programs = fleet.run().await?;
            let decided = "karmada_propagation_controller_reconciles_total";
            let controller = &programs.propagation_controller;
            controller
                .until_metric(decided, |count| count > 0.0)
                .await?;
            programs.rest().await?;
            let copy = copies.get_opt(WEB).await?;
            let is_left = copy.is_some_and(|copy| copy.metadata.deletion_timestamp.is_none());
            ensure!(is_left, "the copy is gone");

            let unlabelled = json!({ "metadata": { "labels": { PROTECTION: null } } });
            merge(&templates, WEB, &unlabelled).await?;
            until(&copies, WEB, "gone", |copy| copy.is_none()).await?;
            until(&namespaces, NAMESPACE, "gone", |one| one.is_none()).await?;
            programs.stop().await
        });
    }
}
