//! Authorization, on a real API only: the embedded one has none.

mod real {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api,
        api::{DeleteParams, ListParams},
    };
    use pipeline_tests::{
        control_plane::{ApiKind, ControlPlane},
        crds,
        fleet::isolated,
        programs::{Binary, Profile, Running},
        rights::grant,
        test_name,
    };
    use serde_json::json;

    /// A user has only the rights that RBAC gives.
    #[test]
    fn rbac_bounds_every_user() {
        isolated(test_name!(), async || {
            let api = ControlPlane::start("karmada", ApiKind::Real).await?;
            let reader = "system:serviceaccount:shop:reader";
            let user = api.client_for(reader).await?;
            let maps: Api<ConfigMap> = Api::namespaced(user, "default");
            let refused = maps.list(&ListParams::default()).await.unwrap_err();
            assert!(
                refused
                    .to_string()
                    .contains(r#"User "system:serviceaccount:shop:reader" cannot list"#),
                "{refused}"
            );

            let lists =
                json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }]);
            grant(&api.client(), reader, &lists).await?;
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
            let karmada = ControlPlane::start("karmada", ApiKind::Real).await?;
            karmada.install_crds(&crds::karmada()).await?;
            let kubeconfig = karmada.kubeconfig_for("nobody")?;
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
}
