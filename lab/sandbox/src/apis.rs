//! The two Kubernetes APIs of the sandbox, in memory: Karmada's, and that of the gateway cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use apiserver::{ApiServer, Fault, Injection};
use karmada_runtime::client;
use kube::{Client, Config};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::facts::{ApiFault, Fact, Facts};
use crate::get::Getter;

/// Who feels the faults of the API: our programs, people, and who looks whether it answers. The
/// sandbox's own eyes stay open.
const CLIENTS: [&str; 5] = [
    cluster_health_agent::NAME,
    remedy_controller::NAME,
    ingress_controller::NAME,
    "kubectl",
    LOOKER,
];
const LOOKER: &str = "sandbox-looker";
const SLOW: Duration = Duration::from_secs(1);
/// Every so many writes conflict.
const CONFLICT_EVERY: u64 = 2;
/// Every so many requests fail.
const ERROR_EVERY: u64 = 3;
/// Between two looks whether the API answers, and the longest wait for its answer.
const LOOK: Duration = Duration::from_millis(200);
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

fn injection(fault: ApiFault) -> Option<Injection> {
    match fault {
        ApiFault::None => None,
        ApiFault::Cut => Some(Fault::Disconnect.into()),
        ApiFault::Slow => Some(Fault::Slow(SLOW).into()),
        ApiFault::Conflicts => Some(Fault::Conflict.every(CONFLICT_EVERY)),
        ApiFault::Errors => Some(Fault::InternalError.every(ERROR_EVERY)),
    }
}

/// The running APIs. Dropping them ends them, and with them all they hold.
#[derive(Debug)]
pub(crate) struct Apis {
    karmada: ApiServer,
    gateway: ApiServer,
    facts: Facts,
    folder: TempDir,
    _serving: JoinSet<()>,
}

impl Apis {
    /// Serves both on free ports, and writes kubeconfigs for them.
    pub(crate) async fn start(facts: Facts) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("karmada-rs-sandbox-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        let now = jiff::Timestamp::now();
        let (karmada, gateway) = (ApiServer::starting_at(now), ApiServer::starting_at(now));
        let mut serving = JoinSet::new();
        let karmada_address = serve(&karmada, &mut serving).await?;
        let gateway_address = serve(&gateway, &mut serving).await?;
        serving.spawn(look(karmada_address, facts.clone()));
        let apis = Self {
            karmada,
            gateway,
            facts,
            folder,
            _serving: serving,
        };
        for (path, current) in [
            (apis.kubeconfig(), "karmada"),
            (apis.gateway_kubeconfig(), "gateway"),
        ] {
            let text = kubeconfig(karmada_address, gateway_address, current);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(apis)
    }

    /// A kubeconfig with the contexts `karmada`, the current one, and `gateway`.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// The same, with `gateway` as the current one.
    pub(crate) fn gateway_kubeconfig(&self) -> PathBuf {
        self.path("gateway.kubeconfig")
    }

    /// Adds a kind to the Karmada API, from the YAML of its definition.
    pub(crate) fn install(&self, definition: &str) -> Result<()> {
        let definition = serde_saphyr::from_str(definition)?;
        Ok(self.karmada.install(&definition)?)
    }

    /// The sandbox's own way to the Karmada API, which no fault touches.
    pub(crate) fn karmada(&self) -> Result<Client> {
        own_client(&self.karmada)
    }

    /// The same to the gateway's.
    pub(crate) fn gateway(&self) -> Result<Client> {
        own_client(&self.gateway)
    }

    /// Breaks the Karmada API in this way until something else is said, or for a while.
    pub(crate) fn set(&self, fault: ApiFault, lasting: Option<Duration>) {
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
        self.facts.tell(Fact::Api {
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
        if let Err(error) = server.serve(listener, std::future::pending()).await {
            tracing::error!(%error, "An API server ended");
        }
    });
    Ok(address)
}

fn own_client(server: &ApiServer) -> Result<Client> {
    let config = Config::new(http::Uri::from_static("http://sandbox"));
    Ok(client::with_service(server.service(), config, "sandbox")?)
}

/// Tells, again and again, whether the API answers its clients.
async fn look(address: SocketAddr, facts: Facts) {
    let getter = Getter::new(LOOKER, ANSWER_LIMIT);
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let answer = getter.get(address, "/version").await;
        facts.tell(Fact::ApiAnswers(answer.is_ok()));
    }
}

fn kubeconfig(karmada: SocketAddr, gateway: SocketAddr, current: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
  - {{ name: karmada, cluster: {{ server: 'http://{karmada}' }} }}
  - {{ name: gateway, cluster: {{ server: 'http://{gateway}' }} }}
users:
  - {{ name: sandbox, user: {{}} }}
contexts:
  - {{ name: karmada, context: {{ cluster: karmada, user: sandbox }} }}
  - {{ name: gateway, context: {{ cluster: gateway, user: sandbox }} }}
current-context: {current}
"
    )
}
