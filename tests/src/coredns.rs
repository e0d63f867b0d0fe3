//! The DNS server of a cluster: a real CoreDNS with its `kubernetes` plugin, which reads an API
//! server; a cache in front of it; and a silent socket in its place, for lost packets.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use hickory_proto::{
    op::{Message, Query, ResponseCode},
    rr::{Name, RData, RecordType},
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};
use tools::Tool;

use crate::{kubeconfig::write, process::Process, scratch};

/// CoreDNS waits up to 5 s for its first list from the API.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The limit of one [`query`].
const RESPONSE_WITHIN: Duration = Duration::from_secs(1);

/// A name that resolves in every cluster.
pub const PROBE: &str = "kubernetes.default.svc.cluster.local.";

/// A CoreDNS that answers for the zone `cluster.local`. Dropping it ends it.
#[derive(Debug)]
pub struct CoreDns {
    address: SocketAddr,
    process: Option<Process>,
    folder: TempDir,
}

impl CoreDns {
    /// Starts CoreDNS on `address` and waits until it resolves
    /// `kubernetes.default.svc.cluster.local`, which it learns from the API of `kubeconfig`. Its
    /// binary must have been [built](tools::build).
    pub async fn start(address: SocketAddr, kubeconfig: &Path) -> Result<Self> {
        let path = kubeconfig.display();
        let plugins =
            format!("kubernetes cluster.local {{\n    kubeconfig {path}\n    ttl 0\n  }}");
        Self::serving(address, &plugins).await
    }

    /// Starts a node-local cache on `address` and waits until it responds. It queries `upstream` over TCP,
    /// and still serves cached names when that is dead.
    pub async fn cache(address: SocketAddr, upstream: SocketAddr) -> Result<Self> {
        let plugins = format!(
            "cache 30 {{\n    success 9984 30\n    denial 9984 5\n    serve_stale\n  }}\n  forward . {upstream} {{\n    force_tcp\n  }}"
        );
        Self::serving(address, &plugins).await
    }

    async fn serving(address: SocketAddr, plugins: &str) -> Result<Self> {
        let folder = scratch::folder("coredns")?;
        let corefile = format!(
            ".:{port} {{\n  bind {ip}\n  errors\n  {plugins}\n}}\n",
            port = address.port(),
            ip = address.ip(),
        );
        write(folder.path(), "Corefile", &corefile)?;
        let mut coredns = Self {
            address,
            process: None,
            folder,
        };
        coredns.restart().await?;
        Ok(coredns)
    }

    /// Returns its address, UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills it; from then on its address refuses queries.
    pub async fn stop(&mut self) -> Result<()> {
        let process = self.process.take();
        process
            .with_context(|| format!("no CoreDNS runs on {}", self.address))?
            .kill()
            .await
    }

    /// Starts it again after [`Self::stop`] and waits until it responds.
    pub async fn restart(&mut self) -> Result<()> {
        ensure!(
            self.process.is_none(),
            "CoreDNS runs on {} already",
            self.address
        );
        let mut command = Command::new(Tool::CoreDns.path()?);
        command
            .arg("-conf")
            .arg(self.folder.path().join("Corefile"));
        let mut process = Process::start("coredns", command, self.folder.path())?;
        process
            .ready(READY_WITHIN, async || {
                query(self.address, PROBE)
                    .await
                    .is_ok_and(|answer| !answer.addresses.is_empty())
            })
            .await?;
        self.process = Some(process);
        Ok(())
    }
}

/// Sockets that receive every query to an address and respond to none, as if packets were lost. They
/// take the place of a stopped [`CoreDns`] until they are dropped.
#[derive(Debug)]
pub struct Silence {
    // Never read: queries wait in the kernel, which drops those that its buffer cannot hold.
    _udp: UdpSocket,
    _tcp: TcpListener,
}

impl Silence {
    /// Occupies UDP and TCP of `address`.
    pub fn on(address: SocketAddr) -> Result<Self> {
        let occupied = || format!("cannot listen on {address}");
        Ok(Self {
            _udp: UdpSocket::bind(address).with_context(occupied)?,
            _tcp: TcpListener::bind(address).with_context(occupied)?,
        })
    }
}

/// The response of a DNS server about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsResponse {
    /// The response code.
    pub code: ResponseCode,
    /// The IPv4 addresses of the name.
    pub addresses: Vec<Ipv4Addr>,
}

/// Queries a server over UDP, once, for the IPv4 addresses of a full name.
///
/// # Errors
/// The server refuses the query or does not respond within a second.
pub async fn query(server: SocketAddr, name: &str) -> Result<DnsResponse> {
    let response = ask(server, name, RecordType::A).await?;
    Ok(DnsResponse {
        code: response.metadata.response_code,
        addresses: response
            .answers
            .iter()
            .filter_map(|record| match &record.data {
                RData::A(address) => Some(address.0),
                _ => None,
            })
            .collect(),
    })
}

/// Queries a server as [`query`] does, for the addresses of both families.
///
/// # Errors
/// See [`query`].
pub async fn addresses(server: SocketAddr, name: &str) -> Result<BTreeSet<IpAddr>> {
    let mut found = BTreeSet::new();
    for family in [RecordType::A, RecordType::AAAA] {
        let response = ask(server, name, family).await?;
        let answers = response.answers.iter();
        found.extend(answers.filter_map(|record| record.data.ip_addr()));
    }
    Ok(found)
}

async fn ask(server: SocketAddr, name: &str, kind: RecordType) -> Result<Message> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name)?, kind));
    let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&message.to_vec()?).await?;
    let mut buffer = [0; 4096];
    let length = timeout(RESPONSE_WITHIN, socket.recv(&mut buffer))
        .await
        .with_context(|| format!("{server} does not respond"))??;
    let response = Message::from_vec(&buffer[..length])?;
    if response.metadata.id != message.metadata.id {
        bail!("the response of {server} is to another query");
    }
    Ok(response)
}
