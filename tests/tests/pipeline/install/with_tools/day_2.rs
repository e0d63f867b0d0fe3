//! docs/day-2.md, followed in its order. On a real API only: the embedded one has no tokens.
//!
//! Nobody has Karmada's `karmadactl` and etcd's `etcdutl` here: the API deletes the Cluster, and the test copies the data of etcd.

mod real {
    use std::{collections::BTreeSet, fs};

    use anyhow::{Context, Result, ensure};
    use pipeline_tests::{
        control_plane::{ApiKind, ControlPlane},
        fleet::{Member, isolated},
        programs::{Binary, Profile, Running},
        propagation::PropagationFleet,
        test_name,
    };

    use super::super::{Page, Reader, Snapshot};

    /// Joins by the command of docs/install.md. No pod runs, so that no agent reports.
    const JOIN: &str = "kubectl remedy join --all --context karmada --image YOUR-REGISTRY/cluster-health-agent:0.1.0 --server https://203.0.113.7:5443 --wait=false";

    /// Makes the next version of the checked out one.
    const NEXT_VERSION: &str =
        r"sed -Ei 's/^(version|appVersion): .*/\1: 0.2.0/' manifests/helm/*/Chart.yaml";

    const IMAGE: &str = "
kubectl --context host -n karmada-system get deployment remedy-controller -o jsonpath='{.spec.template.spec.containers[0].image}'
";

    const AGENT_IS_UPGRADED: &str = "
until [[ $(kubectl --context member1 -n karmada-rs get daemonset cluster-health-agent -o jsonpath='{.spec.template.spec.containers[0].image}') == *:VERSION ]]; do :; done
";

    const KEEP_TOKEN: &str = "rm -rf dead\ncp -r access/remedy-controller dead";

    /// A server remembers for some seconds that a token was valid.
    const UNTIL_REFUSED: &str = "
until [[ $(kubectl --kubeconfig dead/kubeconfig get clusters 2>&1) == *Unauthorized* ]]; do :; done
";

    const PROGRAM: &str = "kubectl --kubeconfig access/remedy-controller/kubeconfig auth whoami -o jsonpath='{.status.userInfo.username}'";

    /// Waits until the token that the agents of a member have is good.
    const AGENT_IS_KNOWN: &str = r#"
who() {
  local token
  token=$(kubectl --context member1 -n karmada-rs get secret cluster-health-agent-karmada -o jsonpath='{.data.token}' | base64 --decode)
  echo '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "'"$token"'"}}' |
    kubectl --context karmada create -o jsonpath='{.status.user.username}' -f -
}
until [[ $(who) == system:serviceaccount:karmada-es-member1:cluster-health-agent ]]; do :; done
"#;

    const REPLICAS: &str = "
kubectl --context host -n karmada-system get deployments propagation-controller scheduler execution-controller -o jsonpath='{.items[*].spec.replicas}'
";

    const AGENTS: &str = "
for member in member1 member2; do kubectl --context $member -n karmada-rs get daemonsets -o name; done
";

    /// Waits until the agents of a member have both authorities, as a program has.
    const BOTH_AUTHORITIES: &str = r#"
authorities() { jq -r '.clusters[0].cluster["certificate-authority-data"]' | base64 --decode; }
[[ $(authorities < access/remedy-controller/kubeconfig) == "$(cat both.crt)" ]]
until [[ $(kubectl --context member1 -n karmada-rs get secret cluster-health-agent-karmada -o jsonpath='{.data.kubeconfig}' | base64 --decode | authorities) == "$(cat both.crt)" ]]; do :; done
"#;

    /// A Karmada with two members, in which everything is installed by charts.
    struct Stage {
        fleet: PropagationFleet,
        /// The API of the host and of the gateway.
        host: ControlPlane,
        reader: Reader,
        /// Carries out the Works of the agents.
        execution: Running,
    }

    impl Stage {
        async fn start() -> Result<Self> {
            let kinds = [ApiKind::Real, ApiKind::Embedded];
            let (fleet, host) = tokio::try_join!(
                PropagationFleet::start_on(kinds, 2, Profile::Debug),
                ControlPlane::start("host", ApiKind::Real),
            )?;
            let names = [1, 2].map(|number| Member(number).name());
            let contexts = [
                ("karmada", &fleet.karmada),
                ("gateway", &host),
                ("host", &host),
                (&*names[0], fleet.member(Member(1))),
                (&*names[1], fleet.member(Member(2))),
            ];
            let reader = Reader::of(&contexts, ApiKind::Real)?;
            reader.install_plugin()?;
            reader.learn_functions().await?;
            let execution = fleet.start_program(Binary::ExecutionController, &[]);
            let execution = execution.await?;
            let stage = Self {
                fleet,
                host,
                reader,
                execution,
            };
            let namespace = "kubectl --context host create namespace karmada-system";
            stage.reader.run(namespace).await?;
            stage.reader.run(&stage.installation()?).await?;
            stage.reader.run(JOIN).await?;
            Ok(stage)
        }

        /// Returns the commands that install the charts, with tokens that renew themselves and with propagation. Helm adopts what the programs
        /// of the test have of rights.
        fn installation(&self) -> Result<String> {
            let steps = self.reader.steps(Page::Install, "With Helm");
            let apis = steps.first().context("the page has no commands")?;
            let apis = apis
                .replace("place=karmada", "place=karmada,renew=true --take-ownership")
                .replace("place=gateway", "place=gateway,renew=true")
                .replace(
                    "registry=YOUR-REGISTRY",
                    "registry=YOUR-REGISTRY,propagationController.enabled=true,scheduler.enabled=true,executionController.enabled=true",
                );
            Ok(apis)
        }

        /// Makes the tokens of the programs and stores them, as when they were installed.
        async fn give_tokens(&self) -> Result<()> {
            let steps = self.installation()?;
            let lines = steps.lines().filter(|line| {
                ["access ", "store "]
                    .iter()
                    .any(|start| line.starts_with(start))
            });
            let lines: Vec<&str> = lines.collect();
            ensure!(lines.len() == 6, "{lines:?}");
            self.reader.run(&lines.join("\n")).await.map(drop)
        }

        /// Upgrades the charts with the rights, which makes the missing ones.
        async fn make_accounts(&self) -> Result<()> {
            let steps = self.steps("Upgrade");
            let [charts, ..] = &steps[..] else {
                anyhow::bail!("the page has no commands");
            };
            let rights = charts
                .lines()
                .filter(|line| line.contains("helm/karmada-rs-rights"));
            let rights: Vec<&str> = rights.collect();
            ensure!(rights.len() == 2, "{rights:?}");
            self.reader.run(&rights.join("\n")).await.map(drop)
        }

        /// Returns the steps of a section of the page, in which no agent is waited for: no pod runs.
        fn steps(&self, section: &str) -> Vec<String> {
            let steps = self.reader.steps(Page::Day2, section).into_iter();
            steps
                .map(|step| step.replace("remedy join ", "remedy join --wait=false "))
                .collect()
        }

        async fn run(&self, script: &str) -> Result<String> {
            self.reader.run(script).await
        }

        /// Checks that the program's token is good.
        async fn program_is_known(&self) -> Result<()> {
            let who = self.run(PROGRAM).await?;
            ensure!(
                who == "system:serviceaccount:karmada-system:remedy-controller",
                "{who}"
            );
            Ok(())
        }
    }

    /// The programs and the agents get the images of the next version, and keep the user's registry.
    async fn upgrade(stage: &Stage) -> Result<()> {
        ensure!(stage.run(IMAGE).await? == "YOUR-REGISTRY/remedy-controller:0.1.0");
        stage.run(NEXT_VERSION).await?;
        let steps = stage.steps("Upgrade");
        let [charts, ..] = &steps[..] else {
            anyhow::bail!("the page has no commands");
        };
        stage.run(charts).await?;
        ensure!(stage.run(IMAGE).await? == "YOUR-REGISTRY/remedy-controller:0.2.0");
        stage.run(AGENT_IS_UPGRADED).await.map(drop)
    }

    async fn roll_back(stage: &Stage) -> Result<()> {
        let steps = stage.steps("Roll back");
        let [back] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        stage.run(back).await?;
        ensure!(stage.run(IMAGE).await? == "YOUR-REGISTRY/remedy-controller:0.1.0");
        Ok(())
    }

    /// The tokens of two members and of two programs, one of which has one for the gateway too, are new.
    async fn rotate(stage: &Stage) -> Result<()> {
        let steps = stage.steps("Rotate tokens");
        let [renew] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        let renewed = stage.run(renew).await?;
        let count = renewed.matches(" renewed; its token ends at ").count();
        ensure!(count == 5, "{renewed}");
        stage.run(AGENT_IS_KNOWN).await.map(drop)
    }

    /// No token of before is good, and each account has another.
    async fn revoke_all(stage: &Stage) -> Result<()> {
        let steps = stage.steps("Revoke all");
        let [delete, join] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        stage.run(KEEP_TOKEN).await?;
        stage.run(delete).await?;
        stage.run(UNTIL_REFUSED).await?;
        stage.make_accounts().await?;
        stage.give_tokens().await?;
        stage.run(join).await?;
        stage.program_is_known().await?;
        stage.run(AGENT_IS_KNOWN).await.map(drop)
    }

    /// The commands count templates and Works, and the patch is one of the program's.
    async fn size(stage: &Stage) -> Result<()> {
        let steps = stage.steps("Size the programs");
        let [count, patch] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        let counted = stage.run(count).await?;
        ensure!(counted.split_whitespace().eq(["0", "4"]), "{counted}");
        let overlay = stage.reader.path("sized");
        fs::create_dir(&overlay)?;
        let text = format!("resources: [../manifests/propagation/host]\n{patch}");
        fs::write(overlay.join("kustomization.yaml"), text)?;
        let sized = stage.run("kubectl kustomize sized").await?;
        for memory in ["memory: 490Mi", "memory: 780Mi"] {
            ensure!(sized.matches(memory).count() == 1, "{sized}");
        }
        Ok(())
    }

    /// An account that was made since the backup is gone after the restore, and its token with it.
    async fn restore(stage: &mut Stage) -> Result<()> {
        stage.fleet.karmada.copy_data().await?;
        let delete =
            "kubectl --context karmada -n karmada-system delete serviceaccount remedy-controller";
        stage.run(delete).await?;
        stage.make_accounts().await?;
        stage.give_tokens().await?;
        stage.program_is_known().await?;
        stage.run(KEEP_TOKEN).await?;

        stage.fleet.karmada.restore_data().await?;
        stage.run(UNTIL_REFUSED).await?;
        stage.give_tokens().await?;
        stage.program_is_known().await?;
        let steps = stage.steps("Back up and restore");
        let [stop] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        for replicas in ["0", "2"] {
            let scale = stop.replace("--replicas 0", &format!("--replicas {replicas}"));
            stage.run(&scale).await?;
            let scaled = stage.run(REPLICAS).await?;
            ensure!(scaled.split(' ').eq([replicas; 3]), "{scaled}");
        }
        Ok(())
    }

    /// A member goes, and nothing of its drain and its agents stays.
    async fn remove(stage: &Stage) -> Result<()> {
        let steps = stage.steps("Rename or remove a member").into_iter();
        let steps: Vec<String> = steps.map(|step| step.replace("OLD", "member2")).collect();
        let [drain, leave, unjoin, uncordon] = &steps[..] else {
            anyhow::bail!("the page has other commands: {steps:?}");
        };
        stage.run(drain).await?;
        let left = stage.run(leave).await?;
        ensure!(left == "member2 left\n", "{left}");
        ensure!(unjoin.starts_with("karmadactl unjoin member2 "), "{unjoin}");
        let delete = "kubectl --context karmada delete cluster member2";
        stage.run(delete).await?;
        let taken_back = stage.run(uncordon).await?;
        let told = "remedy.remedy.karmada.io/drain-member2 deleted\n";
        ensure!(taken_back.contains(told), "{taken_back}");
        let agents = stage.run(AGENTS).await?;
        ensure!(
            agents == "daemonset.apps/cluster-health-agent\n",
            "{agents}"
        );
        Ok(())
    }

    /// Programs and agents trust the API by either authority.
    async fn change_authority(stage: &Stage) -> Result<()> {
        for (file, api) in [("old.crt", &stage.fleet.karmada), ("new.crt", &stage.host)] {
            let certificate = api.authority().context("an API without certificate")?;
            fs::write(stage.reader.path(file), certificate)?;
        }
        let steps = stage.steps("A new certificate authority");
        let [both] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        stage.run(both).await?;
        stage.give_tokens().await?;
        stage.program_is_known().await?;
        let steps = stage.steps("Revoke all");
        let [_, join] = &steps[..] else {
            anyhow::bail!("the page has other commands");
        };
        stage.run(join).await?;
        stage.run(BOTH_AUTHORITIES).await.map(drop)
    }

    /// Who installed by charts follows the page from its first section to its last: each command does its work as the page says.
    #[test]
    #[ignore = "long"]
    fn page_keeps_a_fleet_running() {
        isolated(test_name!(), async || {
            let mut stage = Stage::start().await?;
            upgrade(&stage).await?;
            roll_back(&stage).await?;
            rotate(&stage).await?;
            revoke_all(&stage).await?;
            size(&stage).await?;
            restore(&mut stage).await?;
            remove(&stage).await?;
            change_authority(&stage).await?;
            stage.execution.stop().await
        });
    }

    /// The namespaces of all that is in the page.
    const NAMESPACES: &str = "
make() { kubectl --context $1 create namespace $2; }
for namespace in karmada-system karmada-cluster karmada-es-member1; do make karmada $namespace; done
for namespace in karmada-system fleet-system karmada-rs; do make host $namespace; done
";

    const PROGRAMS: &str = "
kubectl --context host get deployments,daemonsets,cronjobs -A -o jsonpath='{.items[*].metadata.name}'
";

    /// Who installed by kustomize has all programs, and an upgrade to the same version changes nothing.
    #[test]
    fn kustomizations_upgrade_all_programs() {
        isolated(test_name!(), async || {
            let (karmada, host) = tokio::try_join!(
                ControlPlane::start("karmada", ApiKind::Real),
                ControlPlane::start("host", ApiKind::Real)
            )?;
            let contexts = [
                ("karmada", &karmada),
                ("host", &host),
                ("hub", &host),
                ("gateway", &host),
            ];
            let reader = Reader::of(&contexts, ApiKind::Real)?;
            reader.run(NAMESPACES).await?;
            let steps = reader.steps(Page::Day2, "Upgrade");
            let [_, kinds, rights, programs, agents] = &steps[..] else {
                anyhow::bail!("the page has other commands: {steps:?}");
            };
            let all = [kinds, rights, programs, agents];
            let everything = async || {
                anyhow::Ok([
                    Snapshot::take(&karmada.client()).await?,
                    Snapshot::take(&host.client()).await?,
                ])
            };
            for step in all {
                reader.run(step).await?;
            }
            let before = everything().await?;
            let running = reader.run(PROGRAMS).await?;
            let running: BTreeSet<&str> = running.split_whitespace().collect();
            let expected = [
                "cluster-controller",
                "cluster-health-agent-gateway",
                "execution-controller",
                "ingress-controller",
                "kubectl-remedy-practice",
                "kubectl-remedy-renew",
                "placement-controller",
                "propagation-controller",
                "remedy-controller",
                "scheduler",
            ];
            ensure!(running == BTreeSet::from(expected), "{running:?}");

            for step in all {
                reader.run(step).await?;
            }
            let after = everything().await?;
            let mut pairs = before.iter().zip(&after);
            pairs.try_for_each(|(before, after)| before.is_kept_by(after))
        });
    }
}
