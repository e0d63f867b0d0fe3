//! A hub and the members of its fleet, each an API of its own, into which our programs place.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use fleet_api::{MemberCluster, Placement, Work, names::member_namespace};
use futures::future::try_join_all;
use kube::Api;
use lab_parts::thresholds::ProbeTiming;
use objects::Scope;
use serde_json::{Value, json};

use crate::{
    api::{create, create_of},
    control_plane::{ApiKind, ControlPlane},
    fleet::{GATEWAY_CLASS, Member},
    manifests,
    programs::{Binary, Profile, Running},
};

/// The namespace of the programs, on the hub and in the members.
const SYSTEM: &str = "fleet-system";

/// The admission policies for the controller and the writers of placements.
const ADMISSION: [&str; 5] = [
    "placement/hub/confinement.yaml",
    "placement/hub/envelopes.yaml",
    "placement/hub/overrides.yaml",
    "placement/hub/placements.yaml",
    "placement/hub/updates.yaml",
];

/// The definitions of Remedies and of ingresses, which a hub may have.
const REMEDIES: &str = "fleet/remedy.karmada.io_remedies.yaml";
const INGRESSES: &str = "fleet/networking.karmada.io_multiclusteringresses.yaml";

/// The definition of the one kind that a member has.
const APPLIED_WORKS: &str = "placement/crds/placement.kubernetes-fleet.io_appliedworks.yaml";

/// The loops of the controller that rest between changes. The others look for clusters that have fallen silent.
const LOOPS: [&str; 8] = [
    "snapshots",
    "overrides",
    "schedule",
    "rollout",
    "updates",
    "works",
    "evictions",
    "status",
];

/// A hub and its members. Dropping it ends them.
pub struct PlacementFleet {
    /// The API of the hub.
    pub hub: ControlPlane,
    members: Vec<ControlPlane>,
    profile: Profile,
}

/// The programs that place. Dropping them kills them.
#[must_use = "they are killed when dropped"]
pub struct PlacementPrograms {
    /// From placements to Works.
    pub controller: Running,
    /// From Works to the objects of each member.
    pub agents: Vec<Running>,
}

impl PlacementPrograms {
    /// Waits until each has reconciled something, and has nothing left to do about a placement and no Event to write.
    pub async fn settled(&self) -> Result<()> {
        let agents = self.agents.iter();
        let agents = agents.map(|agent| (agent, "placement_agent", &["work"][..]));
        let controller = (&self.controller, "placement_controller", &LOOPS[..]);
        for (program, name, loops) in agents.chain([controller]) {
            let metric = |metric: &str| format!("karmada_{name}_{metric}");
            let reconciles = metric("reconciles_total");
            program
                .until_metric(&reconciles, |count| count > 0.0)
                .await?;
            let queues = loops
                .iter()
                .map(|one| metric(&format!("queue_length{{controller=\"{one}\"}}")));
            for left in queues.chain([metric("events_waiting")]) {
                program.until_metric(&left, |left| left == 0.0).await?;
            }
        }
        Ok(())
    }

    /// Ends them with SIGTERM.
    ///
    /// # Errors
    /// One does not end in time, or not with exit code 0.
    pub async fn stop(self) -> Result<()> {
        self.controller.stop().await?;
        for agent in self.agents {
            agent.stop().await?;
        }
        Ok(())
    }
}

impl PlacementFleet {
    /// Starts a hub and this many members, with the kinds and the rights of the programs. No cluster is registered.
    pub async fn start(server: ApiKind, members: u8) -> Result<Self> {
        Self::start_for([server; 2], members, Profile::Debug).await
    }

    /// Does the same on these kinds of API, of the hub and of the members, for programs that are built so.
    pub async fn start_for(kinds: [ApiKind; 2], members: u8, profile: Profile) -> Result<Self> {
        let mut fleet = Self::start_apis(kinds, members, profile).await?;
        let kinds = [manifests::path("placement/crds")];
        fleet.hub.install_crds(&kinds).await?;
        fleet.hub.namespace(SYSTEM).await?;
        for file in ["placement-controller", "selected"] {
            let file = format!("placement/hub/{file}.yaml");
            manifests::apply(&fleet.hub.client(), &file).await?;
        }
        fleet.hub.guard(ADMISSION).await?;
        for member in &fleet.members {
            member
                .install_crds(&[manifests::path(APPLIED_WORKS)])
                .await?;
            member.namespace(SYSTEM).await?;
            manifests::apply(&member.client(), "placement/member/rights.yaml").await?;
        }
        fleet.start_controllers().await?;
        Ok(fleet)
    }

    /// Starts the APIs as they are before a user installs us.
    pub async fn before_us(server: ApiKind, members: u8) -> Result<Self> {
        Self::start_apis([server; 2], members, Profile::Debug).await
    }

    async fn start_apis(
        [of_hub, of_members]: [ApiKind; 2],
        members: u8,
        profile: Profile,
    ) -> Result<Self> {
        let names = (1..=members).map(|number| Member(number).name());
        let names = names.map(|name| (name, of_members));
        let starting = [(String::from("hub"), of_hub)].into_iter().chain(names);
        let starting = starting.map(async |(name, kind)| ControlPlane::start(&name, kind).await);
        let mut members = try_join_all(starting).await?;
        Ok(Self {
            hub: members.remove(0),
            members,
            profile,
        })
    }

    /// Starts the controllers that every cluster has, on the hub too.
    pub async fn start_controllers(&mut self) -> Result<()> {
        let apis = [&mut self.hub].into_iter().chain(&mut self.members);
        try_join_all(apis.map(ControlPlane::start_controllers)).await?;
        Ok(())
    }

    /// Registers a member with these labels.
    pub async fn register(&self, member: Member, labels: Value) -> Result<()> {
        let name = member.name();
        let identity = json!({ "kind": "ServiceAccount", "namespace": SYSTEM, "name": name });
        let cluster = json!({ "metadata": { "name": name, "labels": labels },
            "spec": { "identity": identity } });
        create(&self.clusters(), cluster).await
    }

    /// Starts the programs, each with the rights that `manifests/` grants it.
    pub async fn run(&self) -> Result<PlacementPrograms> {
        self.run_with(&[]).await
    }

    /// Does the same, with further flags of the controller.
    pub async fn run_with(&self, flags: &[&str]) -> Result<PlacementPrograms> {
        let agents = self.members().map(|member| self.run_agent(member));
        let controller = self.run_controller(flags);
        let (controller, agents) = tokio::try_join!(controller, try_join_all(agents))?;
        Ok(PlacementPrograms { controller, agents })
    }

    /// Starts the controller, with these flags besides.
    pub async fn run_controller(&self, flags: &[&str]) -> Result<Running> {
        let kubeconfig = self
            .hub
            .account_kubeconfig(SYSTEM, "placement-controller")?;
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let flags = [&*kubeconfig].into_iter().chain(flags.iter().copied());
        let started = Running::start(Binary::PlacementController, self.profile, flags).await;
        started.context("placement-controller does not start")
    }

    /// Starts the agent of a member.
    pub async fn run_agent(&self, member: Member) -> Result<Running> {
        self.run_agent_with(member, &[]).await
    }

    /// Starts the agent of a member, with these flags besides.
    pub async fn run_agent_with(&self, member: Member, flags: &[&str]) -> Result<Running> {
        let name = member.name();
        let own = self.member(member);
        let own = own.account_kubeconfig(SYSTEM, "placement-agent")?;
        let hub = self.hub.account_kubeconfig(SYSTEM, &name)?;
        let own = [
            format!("--kubeconfig={}", own.display()),
            format!("--hub-kubeconfig={}", hub.display()),
            format!("--cluster-name={name}"),
        ];
        let flags = own.into_iter().chain(flags.iter().map(ToString::to_string));
        let started = Running::start(Binary::PlacementAgent, self.profile, flags).await;
        started.with_context(|| format!("the agent of {name} does not start"))
    }

    /// Starts a health agent of a member, which asks this DNS server, with the rights that `manifests/` grants it.
    pub async fn run_health_agent(&self, member: Member, dns: SocketAddr) -> Result<Running> {
        let name = member.name();
        let rights = "placement/hub/cluster-health-agent.yaml";
        manifests::apply_edited(&self.hub.client(), rights, |text| {
            text.replace("member1", &name)
        })
        .await?;
        let namespace = member_namespace(&name);
        let kubeconfig = self
            .hub
            .account_kubeconfig(&namespace, "cluster-health-agent")?;
        let flags = [
            format!("--karmada-kubeconfig={}", kubeconfig.display()),
            format!("--cluster-name={name}"),
            "--cluster-kind=MemberCluster".to_owned(),
            format!("--host-name={name}-node1"),
            format!("--nameserver={dns}"),
        ];
        let flags = flags.into_iter().chain(ProbeTiming::SHORT.flags());
        Running::start(Binary::Agent, self.profile, flags).await
    }

    /// Starts the controller of Remedies on the hub, with their kind and the rights that `manifests/` grants it.
    pub async fn run_remedy_controller(&self) -> Result<Running> {
        self.hub.install_crds(&[manifests::path(REMEDIES)]).await?;
        let rights = "placement/remedies/rights.yaml";
        manifests::apply(&self.hub.client(), rights).await?;
        let kubeconfig = self.hub.account_kubeconfig(SYSTEM, "remedy-controller")?;
        let flags = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--cluster-kind=MemberCluster".to_owned(),
        ];
        Running::start(Binary::RemedyController, self.profile, flags).await
    }

    /// Lets the agent of a registered member collect endpoints.
    pub async fn let_collect_endpoints(&self, member: Member) -> Result<()> {
        let rights = "placement/ingresses/member.yaml";
        let name = member.name();
        manifests::apply_edited(&self.hub.client(), rights, |text| {
            text.replace("member1", &name)
        })
        .await?;
        Ok(())
    }

    /// Starts the controller of ingresses on the hub, with their kind and the rights that `manifests/` grants it there and in
    /// this gateway. The hub has Remedies.
    pub async fn run_ingress_controller(&self, gateway: &ControlPlane) -> Result<Running> {
        self.hub.install_crds(&[manifests::path(INGRESSES)]).await?;
        manifests::apply(&self.hub.client(), "placement/ingresses/rights.yaml").await?;
        gateway.namespace("karmada-rs").await?;
        manifests::apply(&gateway.client(), "gateway/ingress-controller.yaml").await?;
        let kubeconfig = self.hub.account_kubeconfig(SYSTEM, "ingress-controller")?;
        let of_gateway = gateway.account_kubeconfig("karmada-rs", "ingress-controller")?;
        let flags = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--cluster-kind=MemberCluster".to_owned(),
            "--provider=kubernetes".to_owned(),
            format!("--gateway-kubeconfig={}", of_gateway.display()),
            format!("--gateway-ingress-class={GATEWAY_CLASS}"),
        ];
        Running::start(Binary::IngressController, self.profile, flags).await
    }

    /// Returns the members.
    pub fn members(&self) -> impl Iterator<Item = Member> + use<> {
        (1..).take(self.members.len()).map(Member)
    }

    /// Returns the API of a member.
    pub fn member(&self, member: Member) -> &ControlPlane {
        &self.members[usize::from(member.0) - 1]
    }

    /// Returns the API of a member, to lead it through a proxy.
    pub fn member_mut(&mut self, member: Member) -> &mut ControlPlane {
        &mut self.members[usize::from(member.0) - 1]
    }

    /// Returns the clusters of the fleet.
    pub fn clusters(&self) -> Api<MemberCluster> {
        Api::all(self.hub.client())
    }

    /// Returns the placements.
    pub fn placements(&self) -> Api<Placement> {
        Api::all(self.hub.client())
    }

    /// Returns the placements of a namespace.
    pub fn placements_of(&self, namespace: &str) -> Api<Placement> {
        Api::namespaced_with(self.hub.client(), namespace, &Scope::Namespaced)
    }

    /// Returns the Works of a member.
    pub fn works(&self, member: Member) -> Api<Work> {
        Api::namespaced(self.hub.client(), &member_namespace(&member.name()))
    }

    /// Creates a placement.
    pub async fn place(&self, name: &str, spec: Value) -> Result<()> {
        let placement = json!({ "metadata": { "name": name }, "spec": spec });
        create(&self.placements(), placement).await
    }

    /// Creates a placement in a namespace.
    pub async fn place_in(&self, namespace: &str, name: &str, spec: Value) -> Result<()> {
        let placement = json!({ "metadata": { "name": name }, "spec": spec });
        let placements = self.placements_of(namespace);
        create_of(&placements, &Scope::Namespaced, placement).await
    }
}
