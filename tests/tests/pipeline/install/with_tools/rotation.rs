//! Tokens that are renewed as the page shows.

mod real {
    use std::{fs, path::Path};

    use anyhow::Result;
    use k8s_openapi::api::core::v1::Secret;
    use kube::Api;
    use pipeline_tests::{
        agents::MEMBER,
        control_plane::ApiKind,
        fleet::{Fleet, isolated, maintenance},
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

    /// Writes the files of the Secret of the remedy controller into a folder, as a kubelet does.
    async fn mount(fleet: &Fleet, folder: &Path) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(fleet.gateway.client(), "karmada-system");
        let secret = secrets.get("remedy-controller-karmada").await?;
        fs::create_dir_all(folder)?;
        for (name, content) in secret.data.unwrap_or_default() {
            let new = folder.join("new");
            fs::write(&new, content.0)?;
            fs::rename(new, folder.join(name))?;
        }
        Ok(())
    }
}
