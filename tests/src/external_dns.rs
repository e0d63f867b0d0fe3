//! The DNS of users without a gateway: a real ExternalDNS, and the name server of its zones.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};
use tools::Tool;

use crate::{coredns::addresses, process::Process, scratch};

/// The flags of docs/dns.md, and a zone of the provider that has no cloud.
const FLAGS: [&str; 8] = [
    "--source=crd",
    "--events",
    "--registry=txt",
    "--txt-owner-id=karmada-rs",
    "--namespace=karmada-rs",
    "--policy=sync",
    "--provider=inmemory",
    "--inmemory-zone=example.com",
];
/// The limit until ExternalDNS has read the objects.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// The interval between two queries, as nobody tells of a change.
const POLL: Duration = Duration::from_millis(50);
/// The longest wait for a change of a record.
const CHANGE_WITHIN: Duration = Duration::from_mins(2);

/// A running ExternalDNS, the owner of the zone `example.com`. Dropping it ends it.
#[derive(Debug)]
pub struct ExternalDns {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl ExternalDns {
    /// Starts ExternalDNS on the `DNSEndpoint`s of `kubeconfig`, and its name server on `address`. Somebody else has the records
    /// `theirs` there. Its binary must have been [built](tools::build).
    pub async fn start(
        address: SocketAddr,
        kubeconfig: &Path,
        theirs: &[(&str, IpAddr)],
    ) -> Result<Self> {
        let folder = scratch::folder("external-dns")?;
        let mut command = Command::new(Tool::ExternalDns.path()?);
        command
            .arg(address.to_string())
            .args(theirs.iter().map(|(name, ip)| format!("{name}={ip}")))
            .args(FLAGS)
            .arg(format!("--kubeconfig={}", kubeconfig.display()));
        let mut process = Process::start("external-dns", command, folder.path())?;
        process
            .ready(READY_WITHIN, async || {
                addresses(address, "example.com.").await.is_ok()
            })
            .await?;
        Ok(Self {
            address,
            _process: process,
            _folder: folder,
        })
    }

    /// Waits until a host resolves to exactly these addresses.
    pub async fn becomes(&self, host: &str, expected: &[IpAddr]) -> Result<()> {
        let expected: BTreeSet<IpAddr> = expected.iter().copied().collect();
        let looking = async {
            while self.resolve(host).await? != expected {
                sleep(POLL).await;
            }
            anyhow::Ok(())
        };
        timeout(CHANGE_WITHIN, looking)
            .await
            .with_context(|| format!("{host} does not resolve to {expected:?}"))?
    }

    /// Resolves a host again and again.
    ///
    /// # Errors
    /// It resolves to nothing.
    pub async fn stays(&self, host: &str) -> Result<Infallible> {
        loop {
            let found = self.resolve(host).await?;
            ensure!(!found.is_empty(), "{host} resolves to nothing");
            sleep(POLL).await;
        }
    }

    async fn resolve(&self, host: &str) -> Result<BTreeSet<IpAddr>> {
        addresses(self.address, &format!("{host}.")).await
    }
}
