//! The Kubernetes APIs of the sandbox, in memory: those of Karmada, of the hub of placements, of the gateway
//! cluster and of each member cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use embedded_apiserver::{ApiServer, Fault, Injection};
use fleet_api::AppliedWork;
use karmada_runtime::client;
use kube::{Client, Config, Resource};
use lab_parts::kubeconfig::{self, Access};
use lab_parts::relay::Relay;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fault::{ApiFault, Outage};
use crate::get::Getter;
use crate::update::{Update, UpdateSender};
use crate::{availability, origin};

/// The user agents that the API's faults affect: our programs, people, and the availability check.
/// The sandbox's own watches are spared, so that the page keeps showing all that happens.
const CLIENTS: [&str; 8] = [
    cluster_health_agent::NAME,
    remedy_controller::NAME,
    ingress_controller::NAME,
    propagation_controller::NAME,
    scheduler::NAME,
    execution_controller::NAME,
    "kubectl",
    AVAILABILITY_CHECK,
];
/// The context of the hub in the kubeconfig.
pub(crate) const HUB: &str = "hub";
const AVAILABILITY_CHECK: &str = "sandbox-availability-check";
const SLOW: Duration = Duration::from_secs(1);
/// One of so many writes conflicts.
const CONFLICT_EVERY: u64 = 2;
/// One of so many requests fails.
const ERROR_EVERY: u64 = 3;
/// The limit of each availability check.
const CHECK_LIMIT: Duration = Duration::from_secs(5);

fn injection(fault: ApiFault) -> Option<Injection> {
    match fault {
        ApiFault::None => None,
        ApiFault::Cut => Some(Fault::Disconnect.into()),
        ApiFault::Slow => Some(Fault::Slow(SLOW).into()),
        ApiFault::Conflicts => Some(Fault::Conflict.every(CONFLICT_EVERY)),
        ApiFault::Errors => Some(Fault::InternalError.every(ERROR_EVERY)),
    }
}

/// The running APIs. Dropping them ends them and loses their objects.
#[derive(Debug)]
pub(crate) struct Apis {
    karmada: ApiServer,
    hub: ApiServer,
    gateway: ApiServer,
    members: BTreeMap<String, MemberApi>,
    updates: UpdateSender,
    folder: TempDir,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct MemberApi {
    server: ApiServer,
    /// The API as the member itself and people reach it.
    own: Relay,
    /// The API as the control plane reaches it.
    link: Relay,
    /// The Karmada API as the member reaches it.
    uplink: Relay,
}

impl MemberApi {
    async fn start(
        server: ApiServer,
        address: SocketAddr,
        karmada: SocketAddr,
    ) -> std::io::Result<Self> {
        let own = Relay::start(address).await?;
        Ok(Self {
            server,
            link: Relay::start(own.address()).await?,
            own,
            uplink: Relay::start(karmada).await?,
        })
    }

    fn inject(&self, outage: Outage) {
        self.own.set_silent(outage == Outage::PowerOff);
        for way in [&self.link, &self.uplink] {
            way.set_silent(outage != Outage::None);
        }
    }
}

impl Apis {
    /// Serves all APIs on free ports and writes kubeconfigs for them.
    pub(crate) async fn start(members: &[String], updates: UpdateSender) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("karmada-rs-sandbox-")
            .tempdir()
            .context("cannot create a temporary folder")?;
        let now = jiff::Timestamp::now();
        let [karmada, hub, gateway] = [(); 3].map(|()| ApiServer::starting_at(now));
        let mut serving = JoinSet::new();
        let karmada_address = serve(&karmada, &mut serving).await?;
        let hub_address = serve(&hub, &mut serving).await?;
        let gateway_address = serve(&gateway, &mut serving).await?;
        let getter = Getter::new(AVAILABILITY_CHECK, CHECK_LIMIT);
        let check = availability::check(
            getter,
            karmada_address,
            availability::VERSION,
            updates.clone(),
            Update::ApiAvailable,
        );
        serving.spawn(check);
        let mut accesses = vec![
            Access::open("karmada", karmada_address),
            Access::open("gateway", gateway_address),
            Access::open(HUB, hub_address),
        ];
        let mut member_apis = BTreeMap::new();
        for name in members {
            let server = ApiServer::starting_at(now);
            let address = serve(&server, &mut serving).await?;
            let api = MemberApi::start(server, address, karmada_address).await;
            let api = api.context("cannot listen on 127.0.0.1")?;
            accesses.push(Access::open(name, api.own.address()));
            member_apis.insert(name.clone(), api);
        }
        let apis = Self {
            karmada,
            hub,
            gateway,
            members: member_apis,
            updates,
            folder,
            _serving: serving,
        };
        let mut accesses: Vec<&Access> = accesses.iter().collect();
        write_kubeconfig(&apis.kubeconfig(), &accesses)?;
        accesses.swap(0, 1);
        write_kubeconfig(&apis.gateway_kubeconfig(), &accesses)?;
        for (name, api) in &apis.members {
            let access = Access::open("karmada", api.uplink.address());
            write_kubeconfig(&apis.agent_kubeconfig(name), &[&access])?;
        }
        Ok(apis)
    }

    /// Returns the path of a kubeconfig with the contexts `karmada`, the current one, `gateway`, `hub`, and one
    /// named after each member.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// Returns the path of the same with `gateway` as the current context.
    pub(crate) fn gateway_kubeconfig(&self) -> PathBuf {
        self.path("gateway.kubeconfig")
    }

    /// Returns the path of a kubeconfig of the Karmada API for the agents of a member.
    pub(crate) fn agent_kubeconfig(&self, member: &str) -> PathBuf {
        self.path(&format!("{member}.kubeconfig"))
    }

    /// Adds a kind to the Karmada API, from the YAML of its definition.
    pub(crate) fn install(&self, definition: &str) -> Result<()> {
        let definition = serde_saphyr::from_str(definition)?;
        Ok(self.karmada.install(&definition)?)
    }

    /// Adds the kinds of placements to the hub's API, and to those of the members the one that they need.
    pub(crate) fn install_placements(&self) -> Result<()> {
        for definition in fleet_api::definitions() {
            self.hub.install(&definition)?;
            if definition["spec"]["names"]["kind"] == AppliedWork::kind(&()).as_ref() {
                for member in self.members.values() {
                    member.server.install(&definition)?;
                }
            }
        }
        Ok(())
    }

    /// Creates a client of the hub's API.
    pub(crate) fn hub(&self) -> Result<Client> {
        own_client(&self.hub)
    }

    /// Creates a client of the Karmada API that no fault affects.
    pub(crate) fn karmada(&self) -> Result<Client> {
        own_client(&self.karmada)
    }

    /// Creates a client of the gateway API.
    pub(crate) fn gateway(&self) -> Result<Client> {
        own_client(&self.gateway)
    }

    /// Creates a client of the API of each member.
    pub(crate) fn members(&self) -> Result<BTreeMap<String, Client>> {
        let client =
            |(name, api): (&String, &MemberApi)| Ok((name.clone(), own_client(&api.server)?));
        self.members.iter().map(client).collect()
    }

    /// Returns the address at which the control plane reaches the API of each member.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        let members = self.members.iter();
        members.map(|(name, api)| (name.as_str(), api.link.address()))
    }

    /// Takes the power or the link of a member, or gives them back. Its agents and pods are not here.
    pub(crate) fn inject_outage(&self, member: &str, outage: Outage) {
        if let Some(api) = self.members.get(member) {
            api.inject(outage);
        }
    }

    /// Injects a fault into the Karmada API in place of the one before, for good or for a while.
    pub(crate) fn inject(&self, fault: ApiFault, lasting: Option<Duration>) {
        let faults = self.karmada.faults();
        faults.clear();
        for client in CLIENTS {
            let Some(injection) = injection(fault) else {
                break;
            };
            let injection = injection.client(client);
            faults.inject(match lasting {
                Some(duration) => injection.lasting(duration),
                None => injection,
            });
        }
        self.updates.send(Update::Api {
            fault,
            until: lasting.and_then(|duration| Instant::now().checked_add(duration)),
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.folder.path(), name)
    }
}

async fn serve(server: &ApiServer, serving: &mut JoinSet<()>) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .context("cannot listen on 127.0.0.1")?;
    let address = listener.local_addr()?;
    let server = server.clone();
    serving.spawn(async move {
        let ended = server.serve_only(listener, std::future::pending(), origin::is_own);
        if let Err(error) = ended.await {
            tracing::error!(%error, "An API server ended");
        }
    });
    Ok(address)
}

fn write_kubeconfig(path: &Path, accesses: &[&Access]) -> Result<()> {
    kubeconfig::write(path, accesses).with_context(|| format!("cannot write {}", path.display()))
}

fn own_client(server: &ApiServer) -> Result<Client> {
    let config = Config::new(http::Uri::from_static("http://sandbox"));
    Ok(client::with_service(server.service(), config, "sandbox")?)
}
