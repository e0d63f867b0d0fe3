//! A Kubernetes API: etcd and kube-apiserver on this machine, with RBAC and client certificates.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use rcgen::KeyPair;
use tempfile::TempDir;
use tokio::{net::TcpStream, process::Command, time::timeout};

use crate::{
    certs::Authority,
    crds,
    kubeconfig::{Access, write},
    process::Process,
    scratch,
    tools::Tool,
    writes::Writes,
};

/// A cold start takes about four seconds on two free cores.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// One request that asks whether the API server is ready.
const READY_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The Service that every Kubernetes API has.
const OWN_SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";

/// How to start a [`ControlPlane`].
#[derive(Clone, Debug)]
pub struct Options {
    /// What to call it in logs and kubeconfigs.
    pub name: String,
    /// Where kube-apiserver listens, on a free port.
    pub address: IpAddr,
}

impl Options {
    /// A control plane of that name on 127.0.0.1.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: Ipv4Addr::LOCALHOST.into(),
        }
    }
}

/// A running API. Dropping it ends both programs and removes their files.
pub struct ControlPlane {
    access: Access,
    kubeconfig: PathBuf,
    client: Client,
    arguments: Vec<String>,
    api: Option<Process>,
    etcd: Process,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver and waits until the API is ready. Their binaries must have
    /// been [built](crate::tools::build).
    pub async fn start(options: Options) -> Result<Self> {
        let Options { name, address } = options;
        let folder = scratch::folder(&name)?;
        let ports = Ports::free(address)?;
        let access = Access {
            authority: Authority::new(&format!("{name} authority"))?,
            name,
            address: ports.api,
        };
        let kubeconfig = access.grant(folder.path(), "admin", Some("system:masters"))?;
        let mut control_plane = Self {
            arguments: api_arguments(folder.path(), &access.authority, &ports)?,
            client: client(&kubeconfig).await?,
            etcd: start_etcd(folder.path(), &ports).await?,
            api: None,
            access,
            kubeconfig,
            folder,
        };
        control_plane.start_api().await?;
        Ok(control_plane)
    }

    /// Where the API listens.
    pub fn address(&self) -> SocketAddr {
        self.access.address
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The kubeconfig of a user with every right.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// A new kubeconfig for a user who has only the rights that RBAC gives that name or group.
    /// `system:serviceaccount:<namespace>:<name>` has those of the service account.
    pub fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        self.access.grant(self.folder.path(), user, group)
    }

    /// Makes a namespace; one that exists is left as it is.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let api: Api<Namespace> = Api::all(self.client());
        match api.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            result => result
                .map(drop)
                .with_context(|| format!("cannot create the namespace {name}")),
        }
    }

    /// Applies the CRDs in the `.yaml` files of these folders and waits until all are served.
    /// [`crds::karmada`] has the folders that make this a Karmada API.
    pub async fn install_crds(&self, folders: &[impl AsRef<Path>]) -> Result<()> {
        crds::install(&self.client, folders).await
    }

    /// What has been written since the API server started, in its own count.
    pub async fn successful_writes(&self) -> Result<Writes> {
        let request = Request::get("/metrics").body(Vec::new())?;
        let metrics = self.client.request_text(request).await;
        let metrics =
            metrics.with_context(|| format!("cannot read the metrics of {}", self.access.name))?;
        Ok(Writes::from_metrics(&metrics))
    }

    /// Ends the API server as a crash would; data and address are kept.
    pub async fn stop_api(&mut self) -> Result<()> {
        let api = self.api.take();
        api.with_context(|| format!("the API server of {} does not run", self.access.name))?
            .kill()
            .await
    }

    /// Starts the API server after [`Self::stop_api`] and waits until it is ready.
    pub async fn start_api(&mut self) -> Result<()> {
        ensure!(
            self.api.is_none(),
            "the API server of {} runs already",
            self.access.name
        );
        let mut command = Command::new(Tool::KubeApiserver.path()?);
        command.args(&self.arguments);
        let mut api = Process::start("kube-apiserver", command, self.folder.path())?;
        api.ready(READY_WITHIN, async || self.is_ready().await)
            .await?;
        self.api = Some(api);
        Ok(())
    }

    /// Waits until etcd or the API server ends by itself, and says how it ended.
    pub async fn failure(&mut self) -> anyhow::Error {
        let Some(api) = &mut self.api else {
            return self.etcd.failure().await;
        };
        tokio::select! {
            failure = api.failure() => failure,
            failure = self.etcd.failure() => failure,
        }
    }

    /// Whether the API server is ready and has made its own Service, which it does a moment later.
    async fn is_ready(&self) -> bool {
        if TcpStream::connect(self.access.address).await.is_err() {
            return false;
        }
        let answers = async |path: &str| {
            let Ok(request) = Request::get(path).body(Vec::new()) else {
                return false;
            };
            let answer = timeout(READY_REQUEST_TIMEOUT, self.client.request_text(request)).await;
            matches!(answer, Ok(Ok(_)))
        };
        answers("/readyz").await && answers(OWN_SERVICE).await
    }
}

/// The addresses of one control plane.
struct Ports {
    api: SocketAddr,
    etcd: SocketAddr,
    etcd_peers: SocketAddr,
}

impl Ports {
    /// Ports that nobody listens on, different from each other.
    fn free(address: IpAddr) -> Result<Self> {
        let listen = |address: IpAddr| {
            TcpListener::bind((address, 0)).with_context(|| format!("cannot listen on {address}"))
        };
        let api = listen(address)?;
        let etcd = listen(Ipv4Addr::LOCALHOST.into())?;
        let etcd_peers = listen(Ipv4Addr::LOCALHOST.into())?;
        Ok(Self {
            api: api.local_addr()?,
            etcd: etcd.local_addr()?,
            etcd_peers: etcd_peers.local_addr()?,
        })
    }
}

async fn start_etcd(folder: &Path, ports: &Ports) -> Result<Process> {
    let Ports {
        etcd, etcd_peers, ..
    } = ports;
    let mut command = Command::new(Tool::Etcd.path()?);
    command.args([
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://{etcd}"),
        format!("--advertise-client-urls=http://{etcd}"),
        format!("--listen-peer-urls=http://{etcd_peers}"),
        format!("--initial-advertise-peer-urls=http://{etcd_peers}"),
        format!("--initial-cluster=default=http://{etcd_peers}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
    ]);
    let mut process = Process::start("etcd", command, folder)?;
    process
        .ready(READY_WITHIN, async || {
            TcpStream::connect(etcd).await.is_ok()
        })
        .await?;
    Ok(process)
}

/// No admission that waits for a controller, and no endpoints of its own, since it may not write a
/// loopback address there.
fn api_arguments(folder: &Path, authority: &Authority, ports: &Ports) -> Result<Vec<String>> {
    let Ports { api, etcd, .. } = ports;
    let server = authority.server(&["localhost"], &[api.ip(), Ipv4Addr::LOCALHOST.into()])?;
    let accounts = KeyPair::generate()?;
    let file = |flag: &str, name: &str, text: &str| -> Result<String> {
        Ok(format!("{flag}={}", write(folder, name, text)?.display()))
    };
    Ok(vec![
        format!("--etcd-servers=http://{etcd}"),
        format!("--bind-address={}", api.ip()),
        format!("--advertise-address={}", api.ip()),
        format!("--secure-port={}", api.port()),
        file("--tls-cert-file", "server.crt", &server.certificate)?,
        file("--tls-private-key-file", "server.key", &server.key)?,
        file("--client-ca-file", "ca.crt", authority.certificate())?,
        file(
            "--service-account-signing-key-file",
            "service-accounts.key",
            &accounts.serialize_pem(),
        )?,
        file(
            "--service-account-key-file",
            "service-accounts.pub",
            &accounts.public_key_pem(),
        )?,
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--anonymous-auth=false".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ])
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
