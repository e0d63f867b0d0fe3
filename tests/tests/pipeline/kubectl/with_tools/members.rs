//! `kubectl remedy join --fleet`, by a user with no rights in the fleet but those of its manifest. On a real API only: the embedded one grants no
//! tokens.

mod real {
    use std::{fs, path::PathBuf};

    use anyhow::{Context, Result, ensure};
    use k8s_openapi::api::{
        core::v1::{ConfigMap, Secret, ServiceAccount},
        rbac::v1::{ClusterRoleBinding, RoleBinding},
    };
    use karmada_api::{ClusterView, condition::TRUE};
    use kube::{Api, api::DeleteParams};
    use objects::condition::find;
    use pipeline_tests::{
        api::create,
        control_plane::{ApiKind, ControlPlane},
        fleet::{Member, NAMESPACE, isolated},
        kubectl::{Finished, Kubectl},
        manifests,
        programs::{Binary, Profile},
        propagation::{PropagationFleet, namespaced},
        test_name,
        wait::until,
    };
    use serde_json::{Value, json};

    use crate::install::snapshot::Snapshot;

    const USER: &str = "joiner";
    const SECRETS: &str = "karmada-cluster";
    const FIRST: Member = Member(1);
    const SECOND: Member = Member(2);

    /// A fleet that knows nothing of its two members, and who lets them join.
    struct Stage {
        fleet: PropagationFleet,
        kubectl: Kubectl,
        /// The account of `manifests/renew`.
        renewal: Kubectl,
    }

    impl Stage {
        async fn start() -> Result<Self> {
            let kinds = [ApiKind::Real, ApiKind::Real];
            let mut fleet = PropagationFleet::start_unjoined(kinds, 2, Profile::Debug).await?;
            fleet.karmada.start_controllers().await?;
            let client = fleet.karmada.client();
            for rights in [
                "propagation/cluster/cluster-controller.yaml",
                "propagation/cluster/kubectl-remedy-join.yaml",
                "renew/rights.yaml",
                "renew/fleet/rights.yaml",
            ] {
                manifests::apply(&client, rights).await?;
            }
            let bind = |kind: &str| {
                json!({
                    "metadata": { "name": USER },
                    "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind,
                        "name": "karmada-rs:kubectl-remedy-join-fleet" },
                    "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER }],
                })
            };
            let everywhere: Api<ClusterRoleBinding> = Api::all(client.clone());
            create(&everywhere, bind("ClusterRole")).await?;
            let of_secrets: Api<RoleBinding> = Api::namespaced(client, SECRETS);
            create(&of_secrets, bind("Role")).await?;
            let of = |user| kubeconfig(&fleet, user);
            let stage = Self {
                kubectl: Kubectl::new(of(USER)?)?,
                renewal: Kubectl::new(of(
                    "system:serviceaccount:karmada-system:kubectl-remedy-renew",
                )?)?,
                fleet,
            };
            // The authorizer has a watch of its own: repeat until it has seen the bindings.
            let may = format!("auth can-i get secrets -n {SECRETS}");
            for kubectl in [&stage.kubectl, &stage.renewal] {
                for line in ["auth can-i list clusters", &may] {
                    while kubectl.run(line).await.is_err() {}
                }
            }
            Ok(stage)
        }

        async fn join(&self, member: Member, more: &[&str]) -> Result<Finished> {
            let (name, api) = (member.name(), self.fleet.member(member));
            // A member of this test is on this machine, as its programs are.
            let server = format!("--server={}", api.url());
            let line = [&["join", &name, "--fleet", &server], more].concat();
            self.kubectl.remedy(&line, "").await
        }

        async fn secret(&self, member: Member) -> Result<Secret> {
            let secrets: Api<Secret> = Api::namespaced(self.fleet.karmada.client(), SECRETS);
            Ok(secrets.get(&member.name()).await?)
        }

        /// Returns the number of writes in the members, and of credentials in the fleet.
        async fn writes(&self) -> Result<u64> {
            let mut own = self.fleet.karmada.successful_writes().await?;
            (own.0).retain(|kind, _| kind.resource == "secrets");
            let mut total = own.total();
            for member in self.fleet.members() {
                let counts = self.fleet.member(member).successful_writes().await?;
                total += counts.total();
            }
            Ok(total)
        }
    }

    /// Writes a kubeconfig with the fleet for `user`, and each member for its admin, in a context of its name.
    fn kubeconfig(fleet: &PropagationFleet, user: &str) -> Result<PathBuf> {
        let own = fleet.karmada.kubeconfig_for(user)?;
        let read = |path: &std::path::Path| -> Result<Value> {
            Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
        };
        let mut all = read(&own)?;
        for member in fleet.members() {
            let one = read(fleet.member(member).kubeconfig_path())?;
            for list in ["clusters", "users", "contexts"] {
                let more = one[list].as_array().context("no list")?.clone();
                all[list].as_array_mut().context("no list")?.extend(more);
            }
        }
        fs::write(&own, all.to_string())?;
        Ok(own)
    }

    async fn everything(api: &ControlPlane) -> Result<Snapshot> {
        Snapshot::take(&api.client()).await
    }

    /// Two clusters join by one command each, which says so when nobody asks whether they are ready, and the next completes it. What
    /// is propagated reaches them, their tokens are renewed, and nothing of ours stays when they leave.
    #[test]
    fn members_join_and_leave() {
        isolated(test_name!(), async || {
            let stage = Stage::start().await?;
            let fleet = &stage.fleet;
            let before = everything(fleet.member(FIRST)).await?;

            let idle = stage.join(FIRST, &["--timeout=1s"]).await?;
            ensure!(idle.code == Some(1), "{idle:?}");
            ensure!(
                idle.stderr.contains("nobody asks whether it is ready"),
                "{idle:?}"
            );
            let controller = fleet.start_program(Binary::ClusterController, &[]).await?;
            for member in [FIRST, SECOND] {
                let joined = stage.join(member, &[]).await?;
                ensure!(joined.code == Some(0), "{joined:?}");
                ensure!(joined.stdout.contains("; its token ends at "), "{joined:?}");
            }
            again(&stage).await?;
            same_member_is_refused(&stage).await?;

            let programs = fleet.run().await?;
            let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
            create(
                &maps,
                json!({ "metadata": { "name": "settings" }, "data": { "a": "1" } }),
            )
            .await?;
            let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "settings" });
            let policy = json!({ "resourceSelectors": [selector], "placement": {} });
            fleet.create_policy("settings", policy).await?;
            let copies: Api<ConfigMap> = Api::namespaced(fleet.member(SECOND).client(), NAMESPACE);
            until(&copies, "settings", "propagated", |copy| copy.is_some()).await?;

            renews(&stage).await?;
            leaves(&stage, &before).await?;
            programs.stop().await?;
            controller.stop().await
        });
    }

    /// Whoever runs it again writes nothing, and keeps the kinds that he gave before.
    async fn again(stage: &Stage) -> Result<()> {
        let given = stage
            .join(FIRST, &["--kinds=configmaps,apps/deployments"])
            .await?;
        ensure!(given.stdout.contains("member1 configured"), "{given:?}");
        let clusters: Api<ClusterView> = Api::all(stage.fleet.karmada.client());
        let generation = async || anyhow::Ok(clusters.get("member1").await?.metadata.generation);
        let before = (stage.writes().await?, generation().await?);
        let again = stage.join(FIRST, &[]).await?;
        ensure!(again.stdout.contains("member1 unchanged"), "{again:?}");
        let after = (stage.writes().await?, generation().await?);
        ensure!(after == before, "{before:?} {after:?}");
        Ok(())
    }

    /// A context that leads to a member of another name lets nothing join.
    async fn same_member_is_refused(stage: &Stage) -> Result<()> {
        let server = format!("--server={}", stage.fleet.member(FIRST).url());
        let line = [
            "join",
            "third",
            "--fleet",
            "--member-context=member1",
            &server,
        ];
        let refused = stage.kubectl.remedy(&line, "").await?;
        ensure!(refused.code == Some(1), "{refused:?}");
        let told = "third: its context leads to the member that is the cluster member1 already\n";
        ensure!(refused.stderr == told, "{refused:?}");
        let clusters: Api<ClusterView> = Api::all(stage.fleet.karmada.client());
        ensure!(clusters.get_opt("third").await?.is_none());

        let swapped = ["leave", "member1", "--fleet", "--member-context=absent"];
        let swapped = stage.kubectl.remedy(&swapped, "").await?;
        ensure!(swapped.code == Some(1), "{swapped:?}");
        let kept = clusters.get("member1").await?;
        ensure!(kept.metadata.deletion_timestamp.is_none(), "{swapped:?}");
        Ok(())
    }

    /// The account of `manifests/renew` renews the tokens, each with the one before, and no cluster is less ready for it.
    async fn renews(stage: &Stage) -> Result<()> {
        let old = stage.secret(FIRST).await?;
        let unchanged = stage.renewal.remedy(&["renew", "--fleet"], "").await?;
        ensure!(unchanged.code == Some(0), "{unchanged:?}");
        ensure!(stage.secret(FIRST).await?.data == old.data, "{unchanged:?}");
        let renew = ["renew", "--fleet", "--when-less-than=9000h"];
        let renewed = stage.renewal.remedy(&renew, "").await?;
        ensure!(renewed.code == Some(0), "{renewed:?}");
        let lines = renewed.stdout.matches(" renewed; its token ends at ");
        ensure!(lines.count() == 2, "{renewed:?}");
        ensure!(stage.secret(FIRST).await?.data != old.data, "{renewed:?}");

        let revoked: Api<Secret> =
            Api::namespaced(stage.fleet.member(FIRST).client(), "karmada-rs");
        revoked
            .delete("fleet-token", &DeleteParams::default())
            .await?;
        let clusters: Api<ClusterView> = Api::all(stage.fleet.karmada.client());
        let name = FIRST.name();
        let is_ready = |cluster: Option<&ClusterView>| {
            let ready = cluster.and_then(|it| find(&it.status.conditions, "Ready"));
            ready.is_some_and(|ready| ready.status == TRUE)
        };
        until(&clusters, &name, "refused", |cluster| !is_ready(cluster)).await?;
        let refused = stage.renewal.remedy(&renew, "").await?;
        ensure!(refused.code == Some(1), "{refused:?}");
        let told = "member1: cannot get a token of karmada-rs/fleet";
        ensure!(refused.stderr.contains(told), "{refused:?}");
        ensure!(
            refused
                .stderr
                .contains("`kubectl remedy join member1 --fleet`"),
            "{refused:?}"
        );
        let joined = stage.join(FIRST, &["--timeout=1m"]).await?;
        ensure!(joined.code == Some(0), "{joined:?}");
        until(&clusters, &name, "ready", is_ready).await?;
        Ok(())
    }

    /// Whoever leaves leaves nothing of ours; its copies go with it. By a context of another member nothing is lost there.
    async fn leaves(stage: &Stage, before: &Snapshot) -> Result<()> {
        let accounts = stage.fleet.member(SECOND).client();
        let accounts: Api<ServiceAccount> = Api::namespaced(accounts, "karmada-rs");
        let account = accounts.get("fleet").await?.metadata.uid;
        let unknown = ["leave", "unknown", "--fleet", "--member-context=member2"];
        let unknown = stage.kubectl.remedy(&unknown, "").await?;
        ensure!(unknown.stdout == "unknown unchanged\n", "{unknown:?}");
        ensure!(accounts.get("fleet").await?.metadata.uid == account);
        let left = stage
            .kubectl
            .remedy(&["leave", "member1", "--fleet"], "")
            .await?;
        ensure!(left.code == Some(0), "{left:?}");
        ensure!(left.stdout == "member1 left\n", "{left:?}");
        let after = everything(stage.fleet.member(FIRST)).await?;
        let more = before.only_in(&after);
        // Others may use the namespaces. Kubernetes' own controllers fill them where they run.
        ensure!(
            more == ["Namespace /karmada-rs", "Namespace /shop"],
            "{more:?}"
        );
        let secrets: Api<Secret> = Api::namespaced(stage.fleet.karmada.client(), SECRETS);
        ensure!(secrets.get_opt("member1").await?.is_none());
        let again = stage
            .kubectl
            .remedy(&["leave", "member1", "--fleet"], "")
            .await?;
        ensure!(again.stdout == "member1 unchanged\n", "{again:?}");
        let refused = stage
            .kubectl
            .remedy(&["join", "absent", "--fleet"], "")
            .await?;
        ensure!(refused.code == Some(1), "{refused:?}");
        ensure!(refused.stderr.contains("absent: "), "{refused:?}");
        Ok(())
    }
}
