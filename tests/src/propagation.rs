//! A fleet whose members are APIs of their own, and into which our programs propagate.

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::{core::v1::Secret, rbac::v1::ClusterRole};
use karmada_api::{
    ClusterPropagationPolicy, ClusterView, PropagationPolicy, ResourceBinding, Work,
    execution_namespace, names, names::TOKEN_INSECURE,
};
use kube::{Api, Client, Resource, api::PostParams};
use propagation_rules::rights::GroupResource;
use serde_json::{Value, json};

use crate::{
    aggregation::aggregate,
    api::{create, merge_status},
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Member, NAMESPACE},
    manifests,
    programs::{Binary, Profile, Running},
};

/// The namespace of the Secrets with which members are reached.
const SECRETS: &str = "karmada-cluster";

/// The kinds that the members serve, as far as tests propagate them.
const SERVED: [(&str, &str, &str); 6] = [
    ("apps/v1", "Deployment", "deployments"),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
    ),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Namespace", "namespaces"),
    ("v1", "Secret", "secrets"),
    ("v1", "Service", "services"),
];

/// A control plane and its members. Dropping it ends them.
pub struct PropagationFleet {
    /// The API of the fleet.
    pub karmada: ControlPlane,
    members: Vec<ControlPlane>,
    profile: Profile,
}

/// The programs that propagate. Dropping them kills them.
#[must_use = "they are killed when dropped"]
pub struct PropagationPrograms {
    /// From policies to bindings, and from bindings to Works.
    pub propagation_controller: Running,
    /// From bindings to clusters.
    pub scheduler: Running,
    /// From Works to members.
    pub execution_controller: Running,
}

impl PropagationPrograms {
    /// Returns the programs, each with the prefix of its metrics after `karmada_`.
    pub fn all(&self) -> [(&Running, &'static str); 3] {
        [
            (&self.propagation_controller, "propagation_controller"),
            (&self.scheduler, "scheduler"),
            (&self.execution_controller, "execution_controller"),
        ]
    }

    /// Waits until each has reconciled something and has nothing left to do.
    pub async fn settled(&self) -> Result<()> {
        self.settled_but_for(0).await
    }

    /// Waits until each has reconciled something and has nothing left to do, but for the Works that the
    /// execution-controller looks at again after a while.
    pub async fn settled_but_for(&self, works: u8) -> Result<()> {
        for (program, name) in self.all() {
            let metric = |metric: &str| format!("karmada_{name}_{metric}");
            let reconciles = metric("reconciles_total");
            program
                .until_metric(&reconciles, |count| count > 0.0)
                .await?;
            let left = match name {
                "execution_controller" => f64::from(works),
                _ => 0.0,
            };
            let queue = metric("queue_length");
            program
                .until_metric(&queue, |length| (length - left).abs() < 0.5)
                .await?;
        }
        Ok(())
    }

    /// Waits until none has anything left to do or an Event to write.
    pub async fn rest(&self) -> Result<()> {
        for (program, name) in self.all() {
            program.rests(&format!("karmada_{name}")).await?;
        }
        Ok(())
    }

    /// Ends them with SIGTERM.
    ///
    /// # Errors
    /// One does not end in time, or not with exit code 0.
    pub async fn stop(self) -> Result<()> {
        self.propagation_controller.stop().await?;
        self.scheduler.stop().await?;
        self.execution_controller.stop().await
    }
}

impl PropagationFleet {
    /// Starts the API of a fleet with this many members, all ready.
    pub async fn start(server: ApiKind, members: u8) -> Result<Self> {
        Self::start_on([server, server], members, Profile::Debug).await
    }

    /// Starts a fleet like [`Self::start`] whose members' APIs may be of another kind than its own, and
    /// whose programs are built for this purpose.
    pub async fn start_on(kinds: [ApiKind; 2], members: u8, profile: Profile) -> Result<Self> {
        let fleet = Self::start_unjoined(kinds, members, profile).await?;
        for member in fleet.members() {
            fleet.join(member).await?;
        }
        Ok(fleet)
    }

    /// Starts a fleet like [`Self::start_on`] that knows nothing of its members.
    pub async fn start_unjoined(
        [server, of_members]: [ApiKind; 2],
        members: u8,
        profile: Profile,
    ) -> Result<Self> {
        let names: Vec<_> = (1..=members).map(|number| Member(number).name()).collect();
        let starting = names
            .iter()
            .map(|name| ControlPlane::start(name, of_members));
        let (karmada, members) = tokio::try_join!(
            ControlPlane::start("karmada", server),
            futures::future::try_join_all(starting),
        )?;
        karmada.install_crds(&crds::karmada()).await?;
        install(&karmada).await?;
        Ok(Self {
            karmada,
            members,
            profile,
        })
    }

    /// Creates the Cluster of a member and the Secret with its credentials.
    pub async fn register(&self, member: Member) -> Result<()> {
        register(&self.karmada, member, self.member(member)).await
    }

    /// Joins a member as a cluster-controller would, without one.
    pub async fn join(&self, member: Member) -> Result<()> {
        let name = member.name();
        self.karmada.namespace(&execution_namespace(&name)).await?;
        self.register(member).await?;
        let ready = json!({ "type": "Ready", "status": "True", "reason": "ClusterReady",
            "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" });
        let conditions = json!({ "conditions": [ready] });
        self.patch_status(member, conditions).await?;
        self.enable(member, SERVED).await
    }

    /// Says that a member serves these kinds and no other: the version, kind and plural of each.
    pub async fn enable<'a>(
        &self,
        member: Member,
        kinds: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Result<()> {
        let enabled = kinds.into_iter().map(|(version, kind, plural)| {
            json!({ "groupVersion": version, "resources": [{ "name": plural, "kind": kind }] })
        });
        let enabled: Vec<Value> = enabled.collect();
        self.patch_status(member, json!({ "apiEnablements": enabled }))
            .await
    }

    async fn patch_status(&self, member: Member, status: Value) -> Result<()> {
        let clusters: Api<ClusterView> = Api::all(self.karmada.client());
        merge_status(&clusters, &member.name(), &status).await
    }

    /// Lets the propagation-controller propagate one more kind, `GROUP/RESOURCE`, as `kubectl remedy rights` does.
    pub async fn allow(&self, kind: &str) -> Result<()> {
        let kind: GroupResource = kind.parse()?;
        let roles: Api<ClusterRole> = Api::all(self.karmada.client());
        let create = PostParams::default();
        roles.create(&create, &kind.cluster_role()).await?;
        aggregate(&self.karmada.client()).await
    }

    /// Returns the API of a member.
    pub fn member(&self, member: Member) -> &ControlPlane {
        &self.members[usize::from(member.0) - 1]
    }

    /// Returns the API of a member, to stop and start it.
    pub fn member_mut(&mut self, member: Member) -> &mut ControlPlane {
        &mut self.members[usize::from(member.0) - 1]
    }

    /// Returns the members.
    pub fn members(&self) -> impl Iterator<Item = Member> + use<> {
        (1..).take(self.members.len()).map(Member)
    }

    /// Starts the programs, each with the rights that `manifests/` grants it.
    pub async fn run(&self) -> Result<PropagationPrograms> {
        self.run_with(&[]).await
    }

    /// Starts the programs like [`Self::run`], each with these flags.
    pub async fn run_with(&self, flags: &[&str]) -> Result<PropagationPrograms> {
        self.run_built(self.profile, flags).await
    }

    /// Starts the programs like [`Self::run`], built for another purpose than those of the fleet.
    pub async fn run_of(&self, profile: Profile) -> Result<PropagationPrograms> {
        self.run_built(profile, &[]).await
    }

    async fn run_built(&self, profile: Profile, flags: &[&str]) -> Result<PropagationPrograms> {
        let start = |program| start_program(&self.karmada, profile, program, flags);
        let (propagation_controller, scheduler, execution_controller) = tokio::try_join!(
            start(Binary::PropagationController),
            start(Binary::Scheduler),
            start(Binary::ExecutionController),
        )?;
        Ok(PropagationPrograms {
            propagation_controller,
            scheduler,
            execution_controller,
        })
    }

    /// Starts one program with these flags.
    pub async fn start_program(&self, program: Binary, flags: &[&str]) -> Result<Running> {
        start_program(&self.karmada, self.profile, program, flags).await
    }

    /// Creates a policy for objects of [`NAMESPACE`].
    pub async fn create_policy(&self, name: &str, spec: Value) -> Result<()> {
        let policies = self.policies();
        create(
            &policies,
            json!({ "metadata": { "name": name }, "spec": spec }),
        )
        .await
    }

    /// Creates a policy for objects of any namespace, or of none.
    pub async fn create_cluster_policy(&self, name: &str, spec: Value) -> Result<()> {
        let policies: Api<ClusterPropagationPolicy> = Api::all(self.karmada.client());
        create(
            &policies,
            json!({ "metadata": { "name": name }, "spec": spec }),
        )
        .await
    }

    /// Returns the policies of [`NAMESPACE`].
    pub fn policies(&self) -> Api<PropagationPolicy> {
        Api::namespaced(self.karmada.client(), NAMESPACE)
    }

    /// Returns the bindings of [`NAMESPACE`].
    pub fn bindings(&self) -> Api<ResourceBinding> {
        Api::namespaced(self.karmada.client(), NAMESPACE)
    }

    /// Returns the Works of a member.
    pub fn works(&self, member: Member) -> Api<Work> {
        let namespace = execution_namespace(&member.name());
        Api::namespaced(self.karmada.client(), &namespace)
    }

    /// Returns the name of the Work of an object of [`NAMESPACE`].
    pub fn work_name(kind: &str, name: &str) -> String {
        names::work(kind, NAMESPACE, name)
    }
}

/// Creates the namespaces of a fleet, and gives the programs that propagate their rights.
pub(crate) async fn install(karmada: &ControlPlane) -> Result<()> {
    for namespace in ["karmada-system", SECRETS, NAMESPACE] {
        karmada.namespace(namespace).await?;
    }
    for file in manifests::PROPAGATION {
        manifests::apply(&karmada.client(), file).await?;
    }
    aggregate(&karmada.client()).await?;
    karmada.guard(manifests::CONFINEMENT).await
}

/// Creates the Cluster of a member with this API, and the Secret with its credentials.
pub(crate) async fn register(
    karmada: &ControlPlane,
    member: Member,
    api: &ControlPlane,
) -> Result<()> {
    let (name, client) = (member.name(), karmada.client());
    let mut secret = json!({ "metadata": { "name": name },
        "data": { "token": BASE64_STANDARD.encode(api.token()) } });
    match api.authority() {
        Some(certificate) => {
            secret["data"]["caBundle"] = BASE64_STANDARD.encode(certificate).into();
        }
        None => secret["metadata"]["annotations"] = json!({ TOKEN_INSECURE: "true" }),
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SECRETS);
    create(&secrets, secret).await?;
    let clusters: Api<ClusterView> = Api::all(client);
    let cluster = json!({
        "metadata": { "name": name, "labels": { "name": name } },
        "spec": { "syncMode": "Push", "apiEndpoint": api.url(),
            "secretRef": { "namespace": SECRETS, "name": name } },
    });
    create(&clusters, cluster).await
}

/// Starts a program of a fleet with the rights that `manifests/` grants it, and with these flags.
pub async fn start_program(
    karmada: &ControlPlane,
    profile: Profile,
    program: Binary,
    flags: &[&str],
) -> Result<Running> {
    let name = program.name();
    let kubeconfig = karmada.account_kubeconfig("karmada-system", name)?;
    let own = format!("--kubeconfig={}", kubeconfig.display());
    let flags = [own]
        .into_iter()
        .chain(flags.iter().map(ToString::to_string));
    let started = Running::start(program, profile, flags).await;
    started.with_context(|| format!("{name} does not start"))
}

/// Returns the objects of a kind in [`NAMESPACE`] of an API.
pub fn namespaced<K>(client: Client) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(client, NAMESPACE)
}
