//! The programs of a fleet, each with the rights that `manifests/` grants it.

use std::{
    ffi::OsString,
    fs, iter,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::execution_namespace;
use kube::Api;
use serde_json::json;

use super::{Fleet, GATEWAY_CLASS, Member};
use crate::{
    api::apply,
    control_plane::ControlPlane,
    programs::{Binary, Running},
    relay::Relay,
};

/// The account of the agents on the nodes of gateways.
pub const GATEWAY_AGENT: &str = "cluster-health-agent-gateway";

impl Fleet {
    /// Starts the remedy controller.
    pub async fn remedy_controller(&self) -> Result<Running> {
        self.remedy_controller_with(&[]).await
    }

    /// Starts the remedy controller with these flags.
    pub async fn remedy_controller_with(&self, flags: &[&str]) -> Result<Running> {
        self.controller(Binary::RemedyController, [], flags).await
    }

    /// Starts the ingress controller with the `kubernetes` provider.
    pub async fn ingress_controller(&self) -> Result<Running> {
        self.ingress_controller_with(&[]).await
    }

    /// Starts the ingress controller with the `kubernetes` provider and these flags.
    pub async fn ingress_controller_with(&self, flags: &[&str]) -> Result<Running> {
        let own = [
            flag("--gateway-kubeconfig", self.gateway_access()?),
            flag("--gateway-ingress-class", GATEWAY_CLASS),
        ];
        self.ingress_controller_of("kubernetes", own, flags).await
    }

    /// Starts the ingress controller with the `gateway-api` provider, for the Gateway `infra/web`, and these flags.
    pub async fn ingress_controller_at_gateway(&self, flags: &[&str]) -> Result<Running> {
        let own = [
            flag("--gateway-kubeconfig", self.gateway_access()?),
            "--gateway=infra/web".into(),
        ];
        self.ingress_controller_of("gateway-api", own, flags).await
    }

    /// Starts the ingress controller with the `haproxy` provider, for the HAProxy with this Runtime API, and these flags.
    pub async fn ingress_controller_at_haproxy(
        &self,
        socket: &Path,
        flags: &[&str],
    ) -> Result<Running> {
        let socket = format!("unix:{}", socket.display());
        let own = [flag("--haproxy-socket", socket)];
        self.ingress_controller_of("haproxy", own, flags).await
    }

    /// Starts the ingress controller with the `dns` provider, which publishes in the gateway's API, and these flags.
    pub async fn ingress_controller_with_dns(&self, flags: &[&str]) -> Result<Running> {
        let own = [
            flag("--dns-kubeconfig", self.gateway_access()?),
            "--backend-addresses=load-balancers".into(),
        ];
        self.ingress_controller_of("dns", own, flags).await
    }

    /// Starts the ingress controller with the `kubernetes` provider, which reaches the gateway through
    /// a relay.
    pub async fn ingress_controller_through(&self, relay: &Relay) -> Result<Running> {
        let gateway = through(relay, &self.gateway, &self.gateway_access()?)?;
        let own = [
            flag("--gateway-kubeconfig", gateway),
            flag("--gateway-ingress-class", GATEWAY_CLASS),
        ];
        self.ingress_controller_of("kubernetes", own, &[]).await
    }

    /// Starts the ingress controller with two gateways: that of the fleet, and `other`, which is reached through a relay.
    pub async fn ingress_controller_with_gateways(
        &self,
        other: &ControlPlane,
        relay: &Relay,
    ) -> Result<Running> {
        let other_gateway = other.account_kubeconfig("karmada-rs", "ingress-controller")?;
        let other_gateway = through(relay, other, &other_gateway)?;
        let named = |name: &str, path: PathBuf| {
            let mut value = OsString::from(format!("{name}="));
            value.push(path);
            flag("--gateway-kubeconfig", value)
        };
        let own = [
            named("eu", self.gateway_access()?),
            named("us", other_gateway),
        ];
        self.ingress_controller_of("kubernetes", own, &[]).await
    }

    /// Starts the ingress controller without a provider: it writes statuses only.
    pub async fn ingress_controller_alone(&self) -> Result<Running> {
        self.ingress_controller_of("none", [], &[]).await
    }

    /// Starts the ingress controller with this provider, the provider's own flags, and these.
    async fn ingress_controller_of(
        &self,
        provider: &str,
        own: impl IntoIterator<Item = OsString>,
        flags: &[&str],
    ) -> Result<Running> {
        let own = iter::once(flag("--provider", provider)).chain(own);
        self.controller(Binary::IngressController, own, flags).await
    }

    /// Starts a controller of the Karmada API with flags of its own, and these.
    async fn controller(
        &self,
        program: Binary,
        own: impl IntoIterator<Item = OsString>,
        flags: &[&str],
    ) -> Result<Running> {
        let kubeconfig = self
            .karmada
            .account_kubeconfig("karmada-system", program.name())?;
        let own = iter::once(flag("--kubeconfig", kubeconfig)).chain(own);
        let flags = flags.iter().map(OsString::from);
        self.run(program, own.chain(flags)).await
    }

    /// Returns the kubeconfig of the ingress controller in the gateway.
    fn gateway_access(&self) -> Result<PathBuf> {
        self.gateway
            .account_kubeconfig("karmada-rs", "ingress-controller")
    }

    /// Starts the agent of a member with these flags, and those that identify it.
    pub async fn agent(&self, member: Member, flags: &[String]) -> Result<Running> {
        let kubeconfig = self.agent_access(member)?;
        self.agent_with(member, kubeconfig, flags).await
    }

    /// Starts the agent of a member, which reaches the Karmada API through a relay.
    pub async fn agent_through(
        &self,
        relay: &Relay,
        member: Member,
        flags: &[String],
    ) -> Result<Running> {
        let kubeconfig = through(relay, &self.karmada, &self.agent_access(member)?)?;
        self.agent_with(member, kubeconfig, flags).await
    }

    fn agent_access(&self, member: Member) -> Result<PathBuf> {
        let namespace = execution_namespace(&member.name());
        self.karmada
            .account_kubeconfig(&namespace, "cluster-health-agent")
    }

    /// Starts the agent of a member with this kubeconfig of the Karmada API.
    pub async fn agent_with(
        &self,
        member: Member,
        kubeconfig: PathBuf,
        flags: &[String],
    ) -> Result<Running> {
        let name = member.name();
        let own = [
            flag("--karmada-kubeconfig", kubeconfig),
            flag("--cluster-name", &name),
            flag("--host-name", format!("{name}-node1")),
            flag("--nameserver", member.dns().to_string()),
        ];
        self.run(
            Binary::Agent,
            own.into_iter().chain(flags.iter().map(Into::into)),
        )
        .await
    }

    /// Starts the agent on a node of the gateway, with these flags.
    pub async fn gateway_agent(
        &self,
        node: &str,
        at: SocketAddr,
        flags: &[String],
    ) -> Result<Running> {
        let karmada = self
            .karmada
            .account_kubeconfig("karmada-system", GATEWAY_AGENT)?;
        self.gateway_agent_with(node, at, karmada, flags).await
    }

    /// Starts the agent on a node of the gateway with this kubeconfig of the Karmada API.
    pub async fn gateway_agent_with(
        &self,
        node: &str,
        at: SocketAddr,
        kubeconfig: PathBuf,
        flags: &[String],
    ) -> Result<Running> {
        let gateway = self
            .gateway
            .account_kubeconfig("karmada-rs", GATEWAY_AGENT)?;
        let own = [
            flag("--karmada-kubeconfig", kubeconfig),
            flag("--member-kubeconfig", gateway),
            "--detectors=reachability".into(),
            flag("--host-name", node),
        ];
        let flags = own.into_iter().chain(flags.iter().map(Into::into));
        Running::start_at(Binary::Agent, self.profile, at, flags).await
    }

    /// Creates the gateway's class, and returns a kubeconfig with which its proxy may read everything.
    pub async fn proxy_access(&self) -> Result<PathBuf> {
        proxy_access(&self.gateway).await
    }

    async fn run(
        &self,
        program: Binary,
        flags: impl IntoIterator<Item = OsString>,
    ) -> Result<Running> {
        let started = Running::start(program, self.profile, flags).await;
        started.with_context(|| format!("{} does not start", program.name()))
    }
}

/// Creates the class of a gateway, and returns a kubeconfig with which its proxy may read everything.
pub async fn proxy_access(gateway: &ControlPlane) -> Result<PathBuf> {
    let classes: Api<IngressClass> = Api::all(gateway.client());
    let class = json!({ "spec": { "controller": "traefik.io/ingress-controller" } });
    apply(&classes, GATEWAY_CLASS, class).await?;
    Ok(gateway.kubeconfig_path().to_owned())
}

/// Writes a copy of a kubeconfig of `api` that leads through a relay.
fn through(relay: &Relay, api: &ControlPlane, kubeconfig: &Path) -> Result<PathBuf> {
    let (direct, relayed) = (api.address().to_string(), relay.address().to_string());
    let text = fs::read_to_string(kubeconfig)?.replace(&direct, &relayed);
    let copy = kubeconfig.with_extension("through-relay");
    fs::write(&copy, text)?;
    Ok(copy)
}

fn flag(name: &str, value: impl Into<OsString>) -> OsString {
    let mut flag = OsString::from(format!("{name}="));
    flag.push(value.into());
    flag
}
