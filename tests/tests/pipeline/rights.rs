//! Authorization, on a real API only: the embedded one has none.

mod real {
    use anyhow::Result;
    use jiff::Timestamp;
    use k8s_openapi::api::{
        coordination::v1::Lease,
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
        wait::until,
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

    /// A replica that may not list does not seek the lease.
    #[test]
    fn blind_replica_seeks_no_lease() {
        isolated(test_name!(), async || {
            let karmada = ControlPlane::start(ControlPlaneOptions::named("karmada")).await?;
            karmada.install_crds(&crds::karmada()).await?;
            karmada.namespace("karmada-system").await?;
            let all = json!(["*"]);
            let leases = json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": all });
            let replica = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "replica" });
            grant(&karmada.client(), "leads", &leases, &replica).await?;
            let kubeconfig = karmada.kubeconfig_for("replica", None)?;
            // A replica that must wait for the right to lead proves nothing.
            let user = kubeconfig::client(&kubeconfig).await?;
            let leases: Api<Lease> = Api::namespaced(user, "karmada-system");
            while leases.list(&ListParams::default()).await.is_err() {}
            let flag = format!("--kubeconfig={}", kubeconfig.display());
            let controller =
                Running::start_unready(Binary::RemedyController, Profile::Debug, [flag]).await?;
            for kind in ["clusters", "remedies"] {
                let refused = format!(r#"cannot list resource \"{kind}\""#);
                controller.until_output(&refused).await?;
            }
            // It lists again about a second later. By then it would long lead if it did not wait for them.
            let clusters = json!({ "apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": all });
            grant(&karmada.client(), "lists-one", &clusters, &replica).await?;
            let waits_for_remedies = async || {
                let unready = controller.readiness().await.err();
                unready.is_some_and(|why| why.to_string().contains("waiting for: remedies"))
            };
            while !waits_for_remedies().await {}
            let allowed = Timestamp::now();
            let rest = json!({ "apiGroups": all, "resources": all, "verbs": all });
            grant(&karmada.client(), "lists", &rest, &replica).await?;
            let held: Api<Lease> = Api::namespaced(karmada.client(), "karmada-system");
            let acquired = |lease: Option<&Lease>| {
                let spec = lease.and_then(|lease| lease.spec.as_ref());
                spec.and_then(|spec| spec.acquire_time.as_ref())
                    .map(|time| time.0)
            };
            until(&held, "remedy-controller", "held", |lease| {
                acquired(lease).is_some()
            })
            .await?;
            let lease = held.get("remedy-controller").await?;
            assert!(acquired(Some(&lease)) >= Some(allowed), "{lease:?}");
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
