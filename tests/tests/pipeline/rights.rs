//! Authorization, on a real API only: the embedded one has none.

mod real {
    use anyhow::Result;
    use k8s_openapi::api::{
        core::v1::ConfigMap,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    };
    use kube::{
        Api, Client,
        api::{DeleteParams, ListParams, PostParams},
    };
    use pipeline_tests::{
        control_plane::{ControlPlane, ControlPlaneOptions},
        crds,
        fleet::isolated,
        kubeconfig,
        programs::{Binary, Profile, Running},
        test_name,
    };
    use serde_json::{Value, json};

    /// A user has only the rights that RBAC gives.
    #[test]
    fn rbac_bounds_every_user() {
        isolated(test_name!(), async || {
            let api = ControlPlane::start(ControlPlaneOptions::named("karmada")).await?;
            let kubeconfig = api.kubeconfig_for("system:serviceaccount:shop:reader", None)?;
            let user = kubeconfig::client(&kubeconfig).await?;
            let maps: Api<ConfigMap> = Api::namespaced(user, "default");
            let refused = maps.list(&ListParams::default()).await.unwrap_err();
            assert!(
                refused
                    .to_string()
                    .contains(r#"User "system:serviceaccount:shop:reader" cannot list"#),
                "{refused}"
            );

            let lists =
                json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] });
            let reader = json!({ "kind": "ServiceAccount", "namespace": "shop", "name": "reader" });
            grant(&api.client(), "reader", &lists, &reader).await?;
            // The authorizer has a watch of its own: repeat until it has seen the binding.
            while maps.list(&ListParams::default()).await.is_err() {}
            let refused = maps.delete("any", &DeleteParams::default()).await;
            assert!(refused.unwrap_err().to_string().contains("cannot delete"));
            Ok(())
        });
    }

    /// A controller without rights logs which it needs and is not ready.
    #[test]
    fn missing_rights_are_named() {
        isolated(test_name!(), async || {
            let karmada = ControlPlane::start(ControlPlaneOptions::named("karmada")).await?;
            karmada.install_crds(&crds::karmada()).await?;
            let kubeconfig = karmada.kubeconfig_for("nobody", None)?;
            let flag = format!("--kubeconfig={}", kubeconfig.display());
            let controller =
                Running::start_unready(Binary::RemedyController, Profile::Debug, [flag]).await?;
            controller
                .until_output(r#"User \"nobody\" cannot list resource \"clusters\""#)
                .await?;
            let unready = controller.readiness().await.unwrap_err().to_string();
            assert!(
                unready.contains("waiting for: clusters, remedies"),
                "{unready}"
            );
            controller.stop().await
        });
    }

    /// Grants a subject what a rule allows, by a role of this name.
    async fn grant(client: &Client, name: &str, allowed: &Value, subject: &Value) -> Result<()> {
        let role = json!({ "metadata": { "name": name }, "rules": [allowed] });
        let binding = json!({ "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [subject] });
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
        let create = PostParams::default();
        roles
            .create(&create, &serde_json::from_value(role)?)
            .await?;
        bindings
            .create(&create, &serde_json::from_value(binding)?)
            .await?;
        Ok(())
    }
}
