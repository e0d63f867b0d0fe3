//! The proxy of a gateway cluster: a real Traefik, which serves the Ingresses of an API server, or its Gateways.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::Result;
use http::Request;
use http_body_util::Empty;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tempfile::TempDir;
use tokio::process::Command;
use tools::Tool;

use crate::{process::Process, scratch};

/// The limit until Traefik is ready, which takes about a second on two free cores.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// The `controllerName` of its `GatewayClasses`.
pub const GATEWAY_CONTROLLER: &str = "traefik.io/gateway-controller";

/// A running Traefik. Dropping it ends it.
#[derive(Debug)]
pub struct Traefik {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Traefik {
    /// Starts Traefik on `address` and waits until it serves the Ingresses of an IngressClass in the
    /// API of `kubeconfig`; without a class, those of every class whose controller is
    /// `traefik.io/ingress-controller`. Its own state is on the next port. Its binary must have been
    /// [built](tools::build).
    pub async fn start(
        address: SocketAddr,
        kubeconfig: &Path,
        ingress_class: Option<&str>,
    ) -> Result<Self> {
        let provider = "--providers.kubernetesingress";
        let mut flags = vec![
            format!("{provider}=true"),
            format!("{provider}.throttleduration=0s"),
        ];
        flags.extend(ingress_class.map(|class| format!("{provider}.ingressclass={class}")));
        Self::run(address, kubeconfig, flags).await
    }

    /// Starts Traefik on `address` as [`Self::start`] does, as the controller of the Gateways of every class with
    /// [`GATEWAY_CONTROLLER`].
    pub async fn start_for_gateways(address: SocketAddr, kubeconfig: &Path) -> Result<Self> {
        let provider = "--providers.kubernetesgateway";
        let flags = vec![
            format!("{provider}=true"),
            format!("{provider}.throttleduration=0s"),
            format!("{provider}.statusaddress.ip={}", address.ip()),
        ];
        Self::run(address, kubeconfig, flags).await
    }

    async fn run(address: SocketAddr, kubeconfig: &Path, flags: Vec<String>) -> Result<Self> {
        let folder = scratch::folder("traefik")?;
        let mut ping = address;
        ping.set_port(address.port() + 1);
        let mut command = Command::new(Tool::Traefik.path()?);
        command
            .env("KUBECONFIG", kubeconfig)
            .arg(format!("--entrypoints.web.address={address}"))
            .arg(format!("--entrypoints.ping.address={ping}"))
            .args([
                "--ping=true",
                "--ping.entrypoint=ping",
                "--global.checknewversion=false",
                "--global.sendanonymoususage=false",
                "--log.level=INFO",
            ])
            .args(flags)
            .current_dir(folder.path());
        let mut process = Process::start("traefik", command, folder.path())?;
        let client: Client<_, Empty<&[u8]>> = Client::builder(TokioExecutor::new()).build_http();
        let url = format!("http://{ping}/ping");
        process
            .ready(READY_WITHIN, async || {
                let Ok(request) = Request::get(&url).body(Empty::new()) else {
                    return false;
                };
                let answer = client.request(request).await;
                answer.is_ok_and(|answer| answer.status().is_success())
            })
            .await?;
        Ok(Self {
            address,
            _process: process,
            _folder: folder,
        })
    }

    /// Returns the address that it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
