//! A small fleet: a Karmada API, a gateway API, and the objects of users. Our programs run against it
//! with the rights that `manifests/` grants them; a real API denies any other.

mod dns;
mod objects;
mod programs;
mod wait;

use std::net::SocketAddr;

use anyhow::Result;
use karmada_api::{Cluster, MultiClusterIngress, Remedy};
use kube::Api;

use crate::{
    control_plane::{ApiKind, ControlPlane},
    crds, manifests, netns,
    programs::{Profile, build_for_tests},
    served::Served,
};

pub use dns::MemberDns;
pub(crate) use objects::set_condition;
pub use objects::{maintenance, on_dns, on_failure_of};
pub use programs::{GATEWAY_AGENT, proxy_access};

/// The namespace of the users' objects.
pub const NAMESPACE: &str = "shop";
/// The Service behind the ingress.
pub const SERVICE: &str = "web";
/// The ingress.
pub const INGRESS: &str = "shop";
/// The host it serves.
pub const HOST: &str = "shop.example.com";
/// The address of the gateway's proxy.
pub const PROXY: &str = "10.244.0.80:80";
/// The class of the gateway's own ingress controller.
pub const GATEWAY_CLASS: &str = "traefik";

/// A member cluster: `member1`, `member2`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member(pub u8);

impl Member {
    /// Returns its name.
    pub fn name(self) -> String {
        format!("member{}", self.0)
    }

    /// Returns the address of its DNS server.
    pub fn dns(self) -> SocketAddr {
        SocketAddr::from(([10, 244, self.0, 53], 53))
    }

    /// Returns the address of its instance of the Service.
    pub fn backend(self) -> SocketAddr {
        SocketAddr::from(([10, 244, self.0, 10], 8080))
    }
}

/// Runs the body of the test `name` with our programs built, [isolated](netns::isolated).
///
/// # Panics
/// The body fails, the programs do not build, or namespaces cannot be created.
pub fn isolated(name: &str, body: impl AsyncFnOnce() -> Result<()>) {
    if !netns::inside()
        && let Err(error) = build_for_tests()
    {
        #[expect(clippy::panic, reason = "this is how a test fails")]
        {
            panic!("{error:#}");
        }
    }
    netns::isolated(name, body);
}

/// The two APIs of a fleet. Dropping it ends them.
pub struct Fleet {
    /// The Karmada API: one with Karmada's kinds.
    pub karmada: ControlPlane,
    /// The API of the cluster whose proxy serves the ingresses.
    pub gateway: ControlPlane,
    /// The addresses that the gateway serves.
    pub served: Served,
    server: ApiKind,
    profile: Profile,
}

impl Fleet {
    /// Starts both APIs and installs the manifests that a user installs. No cluster has joined.
    pub async fn start(server: ApiKind, profile: Profile) -> Result<Self> {
        let fleet = Self::before_us(server, profile).await?;
        for file in [
            "karmada/remedy-controller.yaml",
            "karmada/ingress-controller.yaml",
            "karmada/ingressclass.yaml",
        ] {
            manifests::apply(&fleet.karmada.client(), file).await?;
        }
        fleet.karmada.guard(manifests::CONFINEMENT).await?;
        fleet.gateway.namespace("karmada-rs").await?;
        manifests::apply(&fleet.gateway.client(), "gateway/ingress-controller.yaml").await?;
        let confinement = ["admission/gateway/ingress-controller.yaml"];
        fleet.gateway.guard(confinement).await?;
        Ok(fleet)
    }

    /// Starts both APIs as they are before a user installs us. No cluster has joined.
    pub async fn before_us(server: ApiKind, profile: Profile) -> Result<Self> {
        let (karmada, gateway) = tokio::try_join!(
            ControlPlane::start("karmada", server),
            ControlPlane::start("gateway", server),
        )?;
        karmada.install_crds(&crds::karmada()).await?;
        karmada.namespace("karmada-system").await?;
        karmada.namespace(NAMESPACE).await?;
        Ok(Self {
            served: Served::watch(gateway.client(), NAMESPACE),
            karmada,
            gateway,
            server,
            profile,
        })
    }

    /// Starts both APIs with these clusters, the Service in all of them, and the ingress.
    pub async fn with_members(
        server: ApiKind,
        profile: Profile,
        members: &[Member],
    ) -> Result<Self> {
        let fleet = Self::start(server, profile).await?;
        for member in members {
            fleet.join(*member).await?;
        }
        fleet.place(members).await?;
        fleet.create_ingress(INGRESS, "karmada-rs").await?;
        Ok(fleet)
    }

    /// Adds the addresses of the members and the proxy to the namespace of this process, and mounts a
    /// resolv.conf as pods have it.
    pub fn lay_network(members: &[Member]) -> Result<()> {
        let proxy: SocketAddr = PROXY.parse()?;
        netns::add_address(proxy.ip())?;
        for member in members {
            netns::add_address(member.dns().ip())?;
            netns::add_address(member.backend().ip())?;
        }
        netns::mount_resolv_conf(
            "search default.svc.cluster.local svc.cluster.local cluster.local\n\
             nameserver 10.96.0.10\noptions ndots:5\n",
        )
    }

    /// Returns the clusters of the Karmada API.
    pub fn clusters(&self) -> Api<Cluster> {
        Api::all(self.karmada.client())
    }

    /// Returns the ingresses of the Karmada API.
    pub fn ingresses(&self) -> Api<MultiClusterIngress> {
        Api::namespaced(self.karmada.client(), NAMESPACE)
    }

    /// Returns the Remedies of the Karmada API.
    pub fn remedies(&self) -> Api<Remedy> {
        Api::all(self.karmada.client())
    }
}
