//! Tokens that are renewed as the page shows.

mod real {
    use std::{collections::BTreeMap, path::Path};

    use anyhow::{Context, Result, ensure};
    use k8s_openapi::{ByteString, api::core::v1::Secret};
    use kube::Api;
    use pipeline_tests::{
        agents::MEMBER,
        control_plane::ApiKind,
        fleet::{Fleet, isolated, maintenance},
        kubectl::Kubectl,
        manifests,
        programs::{Binary, Profile, Running},
        test_name,
    };

    use super::super::{Page, Reader, before_us};

    /// A server remembers for some seconds that a token was valid.
    const UNTIL_REFUSED: &str = "
until [[ $(kubectl --kubeconfig dead/kubeconfig get clusters 2>&1) == *Unauthorized* ]]; do :; done
";

    /// Who deletes the Secret to which a token is bound has it refused, and a controller whose token has died goes on
    /// writing with the one that replaces it.
    #[test]
    fn replaced_token_is_used() {
        isolated(test_name!(), async || {
            let fleet = before_us(ApiKind::Real).await?;
            let reader = Reader::new(&fleet, ApiKind::Real)?;
            reader.follow(&["2. ", "3. ", "4. "]).await?;
            let folder = reader.path("mounted");
            mount(&fleet, &folder).await?;
            let flag = format!("--kubeconfig={}", folder.join("kubeconfig").display());
            let controller =
                Running::start(Binary::RemedyController, Profile::Debug, [flag]).await?;
            let leads = "karmada_remedy_controller_lease_holder";
            controller.until_metric(leads, |held| held > 0.0).await?;

            reader.run("cp -r access/remedy-controller dead").await?;
            for step in reader.steps(Page::Security, "Take a credential back") {
                let step = step.replace("scheduler", "remedy-controller");
                reader.run(&step).await?;
            }
            reader.run(UNTIL_REFUSED).await?;
            fleet
                .create_remedy("maintenance", maintenance(MEMBER))
                .await?;
            controller.until_output("Unauthorized").await?;

            let steps = ["2. ", "4. "].map(|section| reader.steps(Page::Install, section));
            let steps = steps.concat().concat();
            let ours = steps
                .lines()
                .filter(|line| line.ends_with("access/remedy-controller"));
            let [access, store] = ours.collect::<Vec<_>>()[..] else {
                anyhow::bail!("the page has other commands: {steps}");
            };
            reader.run(&format!("{access}\n{store}")).await?;
            mount(&fleet, &folder).await?;
            // Within the minute after which a token is read again by itself, there may be any number of writes.
            controller
                .until_output("Read the changed kubeconfig")
                .await?;
            fleet.has_actions(MEMBER, &["TrafficControl"]).await?;
            controller.stop().await
        });
    }

    /// The programs' tokens renew themselves where each may get its own: in their Secrets nothing else changes, and whoever lacks the right
    /// is told which manifest has it.
    #[test]
    fn own_tokens_are_renewed() {
        isolated(test_name!(), async || {
            let fleet = before_us(ApiKind::Real).await?;
            let reader = Reader::new(&fleet, ApiKind::Real)?;
            reader.follow(&["2. ", "3. ", "4. "]).await?;
            let kubectl = Kubectl::new(reader.path(".kube/config"))?;
            let renew = ["renew", "--host-context=host", "--when-less-than=9000h"];
            let refused = kubectl.remedy(&renew, "").await?;
            ensure!(refused.code == Some(1), "{refused:?}");
            let told = refused.stderr.matches("cannot get a token of ");
            ensure!(told.count() == SECRETS.len(), "{refused:?}");

            manifests::apply(&fleet.karmada.client(), "renew/own-tokens.yaml").await?;
            manifests::apply(&fleet.gateway.client(), "renew/gateway.yaml").await?;
            let before = secrets(&fleet).await?;
            // The authorizer has a watch of its own: repeat until it has seen the bindings.
            for (context, namespace, name) in [
                ("karmada", "karmada-system", "remedy-controller"),
                ("karmada", "karmada-system", "ingress-controller"),
                ("gateway", "karmada-rs", "ingress-controller"),
            ] {
                let may = format!(
                    "--context {context} -n {namespace} --as system:serviceaccount:{namespace}:{name} auth can-i create serviceaccounts/{name} --subresource=token"
                );
                while kubectl.run(&may).await.is_err() {}
            }
            let renewed = kubectl.remedy(&renew, "").await?;
            ensure!(renewed.code == Some(0), "{renewed:?}");
            for (old, new) in before.iter().zip(&secrets(&fleet).await?) {
                let mut replaced = old.clone();
                replaced.insert("token".to_owned(), new["token"].clone());
                ensure!(*new == replaced && *new != *old, "{SECRETS:?}");
            }
            let folder = reader.path("renewed");
            mount(&fleet, &folder).await?;
            let kubeconfig = folder.join("kubeconfig");
            let kubeconfig = kubeconfig.to_str().context("no text")?;
            let line = ["--kubeconfig", kubeconfig, "auth", "whoami"];
            let who = kubectl.run_args(&line).await?;
            let account = "system:serviceaccount:karmada-system:remedy-controller";
            ensure!(who.contains(account), "{who}");
            let again = kubectl
                .remedy(&["renew", "--host-context=host"], "")
                .await?;
            ensure!(again.code == Some(0), "{again:?}");
            let unchanged = again.stdout.matches(" unchanged; its token ends at ");
            ensure!(unchanged.count() == SECRETS.len(), "{again:?}");
            let elsewhere = ["renew", "--host-context=host", "--host-namespace=default"];
            let none = kubectl.remedy(&elsewhere, "").await?;
            ensure!(none.stdout.contains("No program has a Secret"), "{none:?}");
            Ok(())
        });
    }

    const SECRETS: [&str; 3] = [
        "remedy-controller-karmada",
        "ingress-controller-karmada",
        "ingress-controller-gateway",
    ];

    async fn secrets(fleet: &Fleet) -> Result<Vec<BTreeMap<String, ByteString>>> {
        let secrets: Api<Secret> = Api::namespaced(fleet.gateway.client(), "karmada-system");
        let mut found = Vec::new();
        for name in SECRETS {
            found.push(secrets.get(name).await?.data.unwrap_or_default());
        }
        Ok(found)
    }

    /// Writes the files of the Secret of the remedy controller into a folder.
    async fn mount(fleet: &Fleet, folder: &Path) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(fleet.gateway.client(), "karmada-system");
        let secret = secrets.get("remedy-controller-karmada").await?;
        crate::install::mount(secret, folder)
    }
}
