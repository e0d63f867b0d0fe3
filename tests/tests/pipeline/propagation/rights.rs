//! The kinds that may be propagated, on a real API only: the embedded one has no authorization.

mod real {
    use anyhow::{Context, Result};
    use karmada_api::PropagationPolicy;
    use kube::{
        Api, Resource,
        api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
    };
    use pipeline_tests::{
        control_plane::ApiKind,
        crds,
        fleet::{Member, NAMESPACE, isolated},
        kubectl::Kubectl,
        propagation::PropagationFleet,
        test_name,
        wait::{until, until_event},
    };
    use serde_json::json;

    const KIND: (&str, &str, &str) = ("example.com/v1", "Shirt", "shirts");
    const ONE: &str = "one";

    /// Case P77: a policy for a kind without rights says which command grants it. Who runs it has the kind propagated, by
    /// the program that runs already.
    #[test]
    fn granted_kind_travels_without_restart() {
        isolated(test_name!(), async || {
            let mut fleet = PropagationFleet::start(ApiKind::Real, 1).await?;
            fleet.karmada.start_controllers().await?;
            let member = Member(1);
            fleet.enable(member, [KIND]).await?;
            let fields = json!({ "size": { "type": "integer" } });
            let definition = crds::definition("example.com", "Shirt", "shirts", &fields)?;
            for api in [&fleet.karmada, fleet.member(member)] {
                crds::apply(&api.client(), std::slice::from_ref(&definition)).await?;
            }
            let programs = fleet.run().await?;
            let resource =
                ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Shirt"));
            let shirts = |client| -> Api<DynamicObject> {
                Api::namespaced_with(client, NAMESPACE, &resource)
            };
            let shirt = json!({ "apiVersion": "example.com/v1", "kind": "Shirt",
                "metadata": { "name": ONE }, "spec": { "size": 1 } });
            shirts(fleet.karmada.client())
                .create(&PostParams::default(), &serde_json::from_value(shirt)?)
                .await?;
            let selector = json!({ "apiVersion": "example.com/v1", "kind": "Shirt", "name": ONE });
            let spec = json!({ "resourceSelectors": [selector], "placement": {} });
            fleet.create_policy(ONE, spec).await?;

            let arguments = "rights example.com/shirts";
            let told = format!(
                "ApplyPolicyFailed May not propagate Shirt of example.com/v1; this grants it: kubectl remedy {arguments} | kubectl apply -f -"
            );
            let kind = PropagationPolicy::kind(&());
            until_event(&fleet.karmada.client(), &kind, ONE, &told).await?;

            grant(&fleet, arguments).await?;
            let copies = shirts(fleet.member(member).client());
            until(&copies, ONE, "copied", |copy| {
                copy.is_some_and(|copy| copy.data["spec"]["size"] == 1)
            })
            .await?;
            programs.stop().await
        });
    }

    async fn grant(fleet: &PropagationFleet, arguments: &str) -> Result<()> {
        let kubectl = Kubectl::new(fleet.karmada.kubeconfig_path().to_owned())?;
        let words: Vec<_> = arguments.split(' ').collect();
        let printed = kubectl.remedy(&words, "").await?;
        let applied = kubectl.feed("apply -f -", &printed.stdout).await;
        applied.with_context(|| printed.stdout).map(drop)
    }
}
