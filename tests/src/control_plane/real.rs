//! etcd and kube-apiserver, with RBAC and client certificates.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::Request;
use kube::Client;
use lab_parts::port::ReservedPort;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::{net::TcpStream, process::Command, time::timeout};
use tools::Tool;

use super::token;
use crate::{certs::Authority, kubeconfig::write, process::Process};

/// Who issues tokens of service accounts, and for whom.
const ISSUER: &str = "https://kubernetes.default.svc";

/// A token with every right. On the embedded API any other has, too.
pub(super) const TOKEN: &str = "a-token-of-tests";

/// The controllers of kube-controller-manager that the API of a fleet needs. All of them would run the workloads
/// that are only templates there.
const CONTROLLERS: &str = "garbagecollector,namespace,ttl-after-finished,clusterrole-aggregation";

/// The limit until both are ready: a cold start takes about four seconds on two free cores.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// The limit of one request for readiness.
const READY_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The objects that the API server creates a moment after it is ready. Later, they would be writes that
/// nobody made.
const OWN_OBJECTS: [&str; 6] = [
    "/api/v1/namespaces/kube-system",
    "/api/v1/namespaces/kube-public",
    "/api/v1/namespaces/kube-node-lease",
    "/api/v1/namespaces/default/services/kubernetes",
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
    "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
];

/// The Service of Karmada's API server, which its certificate always names.
const SERVICE: &str = "karmada-apiserver.karmada-system.svc.cluster.local";

/// The limit until the controllers watch every kind.
const CONTROLLERS_WITHIN: Duration = Duration::from_secs(90);

/// The programs. Dropping them ends them.
pub(super) struct Real {
    address: SocketAddr,
    /// The key that signs the tokens of service accounts.
    accounts: KeyPair,
    arguments: Vec<String>,
    api: Option<Process>,
    controllers: Option<Process>,
    etcd: Option<Process>,
    /// The addresses of etcd, for clients and for its peers.
    etcd_addresses: [SocketAddr; 2],
    folder: PathBuf,
    _ports: [ReservedPort; 3],
}

impl Real {
    /// Starts etcd, and creates the files with which kube-apiserver trusts the authority.
    pub(super) async fn new(folder: &Path, authority: &Authority) -> Result<Self> {
        let reserve = ReservedPort::reserve;
        let ports = [reserve()?, reserve()?, reserve()?];
        let [address, etcd, peers] = ports.each_ref().map(ReservedPort::address);
        let accounts = KeyPair::generate()?;
        Ok(Self {
            address,
            arguments: api_arguments(folder, authority, &accounts, [address, etcd])?,
            accounts,
            api: None,
            controllers: None,
            etcd: Some(start_etcd(folder, etcd, peers).await?),
            etcd_addresses: [etcd, peers],
            folder: folder.to_owned(),
            _ports: ports,
        })
    }

    /// Returns the address of the API server.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Signs a token with these claims as one that the API server has issued.
    pub(super) fn token(&self, mut claims: Value) -> Result<String> {
        claims["iss"] = ISSUER.into();
        claims["aud"] = json!([ISSUER]);
        token::sign(&self.accounts, &claims)
    }

    /// Starts the API server and waits until it is ready for this client.
    pub(super) async fn start_api(&mut self, client: &Client) -> Result<()> {
        ensure!(self.api.is_none(), "it runs already");
        let mut command = Command::new(Tool::KubeApiserver.path()?);
        command.args(&self.arguments);
        // It starts some hundred times in a test run: a fifth of its CPU time then would go into collecting garbage.
        command.env("GOGC", "400");
        // That of a benchmark would have all memory of the machine so.
        command.env("GOMEMLIMIT", "8GiB");
        let mut api = Process::start("kube-apiserver", command, &self.folder)?;
        let address = self.address;
        api.ready(READY_WITHIN, async || is_ready(address, client).await)
            .await?;
        self.api = Some(api);
        Ok(())
    }

    /// Kills the API server.
    pub(super) async fn stop_api(&mut self) -> Result<()> {
        self.api.take().context("it does not run")?.kill().await
    }

    /// Copies the data of etcd, which does not run meanwhile. The API server must not run.
    pub(super) async fn copy_data(&mut self) -> Result<()> {
        self.exchange_data("etcd", "etcd-copy").await
    }

    /// Puts the copy in the place of the data of etcd. The API server must not run.
    pub(super) async fn restore_data(&mut self) -> Result<()> {
        self.exchange_data("etcd-copy", "etcd").await
    }

    async fn exchange_data(&mut self, from: &str, to: &str) -> Result<()> {
        let etcd = self.etcd.take().context("etcd does not run")?;
        etcd.kill().await?;
        let (from, to) = (self.folder.join(from), self.folder.join(to));
        if to.exists() {
            std::fs::remove_dir_all(&to)?;
        }
        let copied = Command::new("cp")
            .arg("-r")
            .args([&from, &to])
            .status()
            .await?;
        ensure!(copied.success(), "cannot copy {}", from.display());
        let [clients, peers] = self.etcd_addresses;
        self.etcd = Some(start_etcd(&self.folder, clients, peers).await?);
        Ok(())
    }

    /// Starts the [`CONTROLLERS`], and waits until they work.
    pub(super) async fn start_controllers(&mut self, kubeconfig: &Path) -> Result<()> {
        ensure!(self.controllers.is_none(), "they run already");
        let mut command = Command::new(Tool::KubeControllerManager.path()?);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args([
                &format!("--controllers={CONTROLLERS}"),
                "--leader-elect=false",
                "--secure-port=0",
            ]);
        let name = "kube-controller-manager";
        let mut controllers = Process::start(name, command, &self.folder)?;
        controllers
            .until_written(CONTROLLERS_WITHIN, |output| {
                output
                    .contains("Proceeding to collect garbage")
                    .then_some(())
            })
            .await?;
        self.controllers = Some(controllers);
        Ok(())
    }

    /// Waits until one of them ends by itself, and returns an error about that.
    pub(super) async fn failure(&mut self) -> anyhow::Error {
        let failure = async |process: &mut Option<Process>| match process {
            Some(process) => process.failure().await,
            None => std::future::pending().await,
        };
        tokio::select! {
            failure = failure(&mut self.api) => failure,
            failure = failure(&mut self.controllers) => failure,
            failure = failure(&mut self.etcd) => failure,
        }
    }
}

/// Returns `true` if the API server is ready and has created its own objects.
async fn is_ready(address: SocketAddr, client: &Client) -> bool {
    if TcpStream::connect(address).await.is_err() {
        return false;
    }
    let succeeds = async |path: &str| {
        let Ok(request) = Request::get(path).body(Vec::new()) else {
            return false;
        };
        let response = timeout(READY_REQUEST_TIMEOUT, client.request_text(request)).await;
        matches!(response, Ok(Ok(_)))
    };
    for path in ["/readyz"].into_iter().chain(OWN_OBJECTS) {
        if !succeeds(path).await {
            return false;
        }
    }
    true
}

async fn start_etcd(folder: &Path, etcd: SocketAddr, peers: SocketAddr) -> Result<Process> {
    let mut command = Command::new(Tool::Etcd.path()?);
    command.args([
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://{etcd}"),
        format!("--advertise-client-urls=http://{etcd}"),
        format!("--listen-peer-urls=http://{peers}"),
        format!("--initial-advertise-peer-urls=http://{peers}"),
        format!("--initial-cluster=default=http://{peers}"),
        "--unsafe-no-fsync".to_owned(),
        // The most that etcd recommends: an hour of faults in sixty members writes Events beyond the default of 2 GiB.
        "--quota-backend-bytes=8589934592".to_owned(),
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

/// Returns the arguments of kube-apiserver. They disable admission that waits for a controller, and
/// endpoints of its own, in which a loopback address is invalid.
fn api_arguments(
    folder: &Path,
    authority: &Authority,
    accounts: &KeyPair,
    [api, etcd]: [SocketAddr; 2],
) -> Result<Vec<String>> {
    let names = ["localhost", SERVICE];
    let server = authority.server(&names, &[api.ip(), Ipv4Addr::LOCALHOST.into()])?;
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
        file(
            "--token-auth-file",
            "tokens.csv",
            &format!("{TOKEN},token-user,token-user,system:masters\n"),
        )?,
        format!("--service-account-issuer={ISSUER}"),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--anonymous-auth=false".to_owned(),
        "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ])
}

#[cfg(test)]
mod tests {
    use super::CONTROLLERS;

    /// A fleet that is set up as its page says has the same settings as the tests.
    #[test]
    fn page_names_same_controllers() {
        let page = include_str!("../../../docs/fleet.md");
        let command = format!("kube-controller-manager --controllers={CONTROLLERS}`");
        assert!(page.contains(&command), "{command}");
    }
}
