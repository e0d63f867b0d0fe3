//! `kubectl remedy join`, by a user with no rights but those of its manifest. On a real API only: the embedded one grants no tokens.
#![expect(clippy::print_stdout, reason = "shows what sixty clusters take")]

mod real {
    use std::{
        collections::BTreeMap,
        fs,
        net::SocketAddr,
        path::{Path, PathBuf},
        time::Instant,
    };

    use anyhow::{Context, Result, ensure};
    use k8s_openapi::api::{
        apps::v1::DaemonSet,
        coordination::v1::Lease,
        core::v1::{Namespace, Secret},
        rbac::v1::ClusterRoleBinding,
    };
    use karmada_api::{Cluster, condition::OWNED};
    use kube::{Api, Client, api::PostParams};
    use pipeline_tests::{
        control_plane::ApiKind,
        fleet::{Member, isolated},
        kubectl::{Finished, Kubectl},
        manifests, netns,
        programs::{Binary, Profile, Running},
        propagation::PropagationFleet,
        relay::Relay,
        test_name,
        wait::until,
    };
    use serde_json::json;

    use crate::install::{mount, snapshot::Snapshot};

    const USER: &str = "joiner";
    const CLUSTERS: u8 = 60;
    const LAST: Member = Member(CLUSTERS);
    const IMAGE: &str = "registry.example/cluster-health-agent:0.1.0";
    /// The address of the load balancer in front of the API, which its certificate lacks.
    const ADDRESS: &str = "203.0.113.7:5443";
    const NAME: &str = "karmada-apiserver.karmada-system.svc.cluster.local";

    const CLASS: &str = "system-node-critical";
    const COMPONENT: &str = "
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: {kind: DaemonSet}
    patch: |-
      - {op: add, path: /spec/template/spec/priorityClassName, value: system-node-critical}
";

    /// A fleet of sixty clusters, and who lets them join.
    struct Sixty {
        fleet: PropagationFleet,
        kubectl: Kubectl,
        /// The account of `manifests/renew`.
        renewal: Kubectl,
        _load_balancer: Relay,
    }

    impl Sixty {
        async fn start() -> Result<Self> {
            let kinds = [ApiKind::Real, ApiKind::Embedded];
            let fleet = PropagationFleet::start_on(kinds, CLUSTERS, Profile::Debug).await?;
            let karmada = &fleet.karmada;
            let address: SocketAddr = ADDRESS.parse()?;
            netns::add_address(address.ip())?;
            let load_balancer = Relay::start_at(address, karmada.address()).await?;
            for rights in ["karmada/kubectl-remedy-join.yaml", "renew/rights.yaml"] {
                manifests::apply(&karmada.client(), rights).await?;
            }
            let binding: ClusterRoleBinding = serde_json::from_value(json!({
                "metadata": { "name": USER },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "karmada-rs:kubectl-remedy-join" },
                "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER }],
            }))?;
            let bindings: Api<ClusterRoleBinding> = Api::all(karmada.client());
            bindings.create(&PostParams::default(), &binding).await?;
            let as_user = |user| Kubectl::new(karmada.kubeconfig_for(user)?);
            let sixty = Self {
                kubectl: as_user(USER)?,
                renewal: as_user("system:serviceaccount:karmada-system:kubectl-remedy-renew")?,
                fleet,
                _load_balancer: load_balancer,
            };
            // The authorizer has a watch of its own: repeat until it has seen the bindings.
            for kubectl in [&sixty.kubectl, &sixty.renewal] {
                while kubectl.remedy(&["renew"], "").await?.code != Some(0) {}
            }
            Ok(sixty)
        }

        /// Runs a command, and prints the time that it took. Returns its end and the number of writes to the API meanwhile.
        async fn run(&self, arguments: &[&str]) -> Result<(Finished, u64)> {
            let karmada = &self.fleet.karmada;
            let (writes, reads) = (karmada.successful_writes().await?, karmada.reads().await?);
            let begun = Instant::now();
            let finished = self.kubectl.remedy(arguments, "").await?;
            let seconds = begun.elapsed().as_secs_f64();
            let mut written = karmada.successful_writes().await?.since(&writes);
            // Those of the execution-controller.
            (written.0).retain(|kind, _| kind.subresource != "status" && kind.resource != "events");
            println!(
                "{} of {CLUSTERS}: {seconds:.1} s; {} reads of one object, {} writes: {written}",
                arguments.join(" "),
                karmada.reads().await? - reads,
                written.total(),
            );
            Ok((finished, written.total()))
        }

        /// Writes the files of the Secret that the last member has got into a folder, and returns its kubeconfig.
        async fn mounted(&self, folder: &Path) -> Result<PathBuf> {
            mount(self.secret().await?, folder)?;
            Ok(folder.join("kubeconfig"))
        }

        async fn secret(&self) -> Result<Secret> {
            let secrets: Api<Secret> = Api::namespaced(self.member(), "karmada-rs");
            Ok(secrets.get("cluster-health-agent-karmada").await?)
        }

        async fn cluster(&self) -> Result<Cluster> {
            let clusters: Api<Cluster> = Api::all(self.fleet.karmada.client());
            Ok(clusters.get(&LAST.name()).await?)
        }

        fn member(&self) -> Client {
            self.fleet.member(LAST).client()
        }
    }

    /// Returns the number of lines that have this part.
    fn lines(text: &str, part: &str) -> usize {
        text.lines().filter(|line| line.contains(part)).count()
    }

    /// Who runs sixty clusters joins them all by one command, finds out that nobody carries its Works out, and has that
    /// command complete it. Their agents report with their credentials, their tokens are renewed, and nothing stays when they leave.
    #[test]
    #[ignore = "long"]
    fn sixty_clusters_join_and_leave() {
        isolated(test_name!(), async || {
            let sixty = Sixty::start().await?;
            let karmada = &sixty.fleet.karmada;
            let all = usize::from(CLUSTERS);
            let before = Snapshot::take(&karmada.client()).await?;

            let server = format!("--server=https://{ADDRESS}");
            let (image, name) = (
                format!("--image={IMAGE}"),
                format!("--tls-server-name={NAME}"),
            );
            let join = ["join", "--all", &image, &server, &name, "--timeout=1s"];
            let (idle, writes) = sixty.run(&join).await?;
            ensure!(idle.code == Some(1), "{idle:?}");
            ensure!(
                lines(&idle.stderr, "nobody carries Works out") == all,
                "{idle:?}"
            );
            ensure!(writes == 9 * u64::from(CLUSTERS), "{writes} writes");

            let executing = sixty.fleet.start_program(Binary::ExecutionController, &[]);
            let execution = executing.await?;
            let (joined, _) = sixty.run(&["join", "--all", "--wait=false"]).await?;
            ensure!(joined.code == Some(0), "{joined:?}");
            ensure!(
                lines(&joined.stdout, " unchanged; its token ends at") == all,
                "{joined:?}"
            );
            let queue = "karmada_execution_controller_queue_length";
            execution
                .until_metric(queue, |length| length == 0.0)
                .await?;
            let (again, writes) = sixty.run(&["join", "--all", "--wait=false"]).await?;
            ensure!((again.code, writes) == (Some(0), 0), "{again:?}");

            reports(&sixty).await?;
            renews(&sixty).await?;
            keeps_components(&sixty).await?;

            let (left, _) = sixty.run(&["leave", "--all"]).await?;
            ensure!(left.code == Some(0), "{left:?}");
            ensure!(lines(&left.stdout, " left") == all, "{left:?}");
            let after = Snapshot::take(&karmada.client()).await?;
            let more = before.only_in(&after);
            ensure!(
                more == ["Lease karmada-system/execution-controller"],
                "{more:?}"
            );
            let cluster = sixty.cluster().await?;
            let mut conditions = cluster.conditions().iter();
            ensure!(
                !conditions.any(|one| OWNED.contains(&&*one.type_)),
                "{cluster:?}"
            );
            let agents: Api<DaemonSet> = Api::namespaced(sixty.member(), "karmada-rs");
            ensure!(agents.get_opt("cluster-health-agent").await?.is_none());
            // An account of the fleet may be in it.
            let namespaces: Api<Namespace> = Api::all(sixty.member());
            namespaces.get("karmada-rs").await?;
            execution.stop().await
        });
    }

    /// An agent with nothing but its member's credentials knows its cluster, leads there, and a join waits for it.
    async fn reports(sixty: &Sixty) -> Result<()> {
        let name = LAST.name();
        let join = ["join", &name, "--timeout=1s"];
        let silent = sixty.kubectl.remedy(&join, "").await?;
        let told = format!("{name}: its agents have not reported: ");
        ensure!(
            silent.code == Some(1) && silent.stderr.contains(&told),
            "{silent:?}"
        );
        let agents: Api<DaemonSet> = Api::namespaced(sixty.member(), "karmada-rs");
        let agent = agents.get("cluster-health-agent").await?;
        let pod = agent.spec.and_then(|spec| spec.template.spec);
        let image = pod.and_then(|pod| pod.containers.into_iter().next()?.image);
        ensure!(image.as_deref() == Some(IMAGE), "{image:?}");
        let kubeconfig = sixty.mounted(&sixty.kubectl.home().join("mounted")).await?;
        let flags = [
            format!("--karmada-kubeconfig={}", kubeconfig.display()),
            "--nameserver=127.0.0.1:1".to_owned(),
        ];
        let agent = Running::start_unready(Binary::Agent, Profile::Debug, flags).await?;
        let namespace = format!("karmada-es-{}", LAST.name());
        let leases: Api<Lease> = Api::namespaced(sixty.fleet.karmada.client(), &namespace);
        until(&leases, "cluster-health-agent", "held", |lease| {
            let spec = lease.and_then(|lease| lease.spec.as_ref());
            spec.is_some_and(|spec| spec.holder_identity.is_some())
        })
        .await?;
        let joined = sixty.kubectl.remedy(&["join", &name], "").await?;
        ensure!(joined.code == Some(0), "{joined:?}");
        agent.stop().await
    }

    /// The objects of a component are there after the next join and a renewal, and goes when nobody wants it any more.
    async fn keeps_components(sixty: &Sixty) -> Result<()> {
        let folder = sixty.kubectl.home().join("component");
        fs::create_dir(&folder)?;
        fs::write(folder.join("kustomization.yaml"), COMPONENT)?;
        let given = format!("--kustomize={}", folder.display());
        let name = LAST.name();
        let agents: Api<DaemonSet> = Api::namespaced(sixty.member(), "karmada-rs");
        for (line, class) in [
            (&["join", &name, &given, "--wait=false"][..], Some(CLASS)),
            (&["join", &name, "--wait=false"][..], Some(CLASS)),
            (&["renew", &name, "--when-less-than=9000h"][..], Some(CLASS)),
            (&["join", &name, "--no-kustomize", "--wait=false"][..], None),
        ] {
            let finished = sixty.kubectl.remedy(line, "").await?;
            ensure!(finished.code == Some(0), "{finished:?}");
            until(&agents, "cluster-health-agent", "changed", |agents| {
                let spec = agents.and_then(|agents| agents.spec.as_ref());
                let pod = spec.and_then(|spec| spec.template.spec.as_ref());
                pod.is_some_and(|pod| pod.priority_class_name.as_deref() == class)
            })
            .await?;
        }
        Ok(())
    }

    /// The account of `manifests/renew` gives every agent a new token, which its member gets.
    async fn renews(sixty: &Sixty) -> Result<()> {
        let old = sixty.secret().await?.data;
        let renew = ["renew", "--when-less-than=9000h"];
        let renewed = sixty.renewal.remedy(&renew, "").await?;
        ensure!(renewed.code == Some(0), "{renewed:?}");
        let count = lines(&renewed.stdout, " renewed; its token ends at");
        ensure!(count == usize::from(CLUSTERS), "{renewed:?}");
        let secrets: Api<Secret> = Api::namespaced(sixty.member(), "karmada-rs");
        until(
            &secrets,
            "cluster-health-agent-karmada",
            "renewed",
            |secret| secret.is_some_and(|secret| secret.data != old),
        )
        .await?;
        let folder = sixty.kubectl.home().join("renewed");
        let kubeconfig = sixty.mounted(&folder).await?;
        let kubeconfig = kubeconfig.to_str().context("no text")?;
        let line = ["--kubeconfig", kubeconfig, "auth", "whoami", "-o", "json"];
        let who = sixty.kubectl.run_args(&line).await?;
        let who: BTreeMap<String, serde_json::Value> = serde_json::from_str(&who)?;
        let user = &who["status"]["userInfo"]["username"];
        let account = format!(
            "system:serviceaccount:karmada-es-{}:cluster-health-agent",
            LAST.name()
        );
        ensure!(*user == account, "{user}");
        Ok(())
    }
}
