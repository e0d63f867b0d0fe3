//! The DNS server of a cluster: a real CoreDNS with its `kubernetes` plugin, which answers from an
//! API server; a cache in front of it; and what takes its place when its packets get lost.

use std::{
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

use crate::{kubeconfig::write, process::Process, scratch, tools::Tool};

/// CoreDNS waits up to 5 s for its first list from the API.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// One question of [`ask`].
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A name that every cluster's DNS knows.
const PROBE: &str = "kubernetes.default.svc.cluster.local.";

/// A CoreDNS that answers for the zone `cluster.local`. Dropping it ends it.
#[derive(Debug)]
pub struct CoreDns {
    address: SocketAddr,
    process: Option<Process>,
    folder: TempDir,
}

impl CoreDns {
    /// Starts CoreDNS on `address` and waits until it answers for
    /// `kubernetes.default.svc.cluster.local`, which it learns from the API of `kubeconfig`. Its
    /// binary must have been [built](crate::tools::build).
    pub async fn start(address: SocketAddr, kubeconfig: &Path) -> Result<Self> {
        let path = kubeconfig.display();
        let plugins =
            format!("kubernetes cluster.local {{\n    kubeconfig {path}\n    ttl 0\n  }}");
        Self::serving(address, &plugins).await
    }

    /// Starts a cache on `address`, as a node-local cache of a cluster is one, and waits until it answers. It
    /// asks `upstream` over TCP, and goes on answering what it knows when that is dead.
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

    /// Where it answers, UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it as a crash would; from then on its address refuses questions.
    pub async fn stop(&mut self) -> Result<()> {
        let process = self.process.take();
        process
            .with_context(|| format!("no CoreDNS runs on {}", self.address))?
            .kill()
            .await
    }

    /// Starts it again after [`Self::stop`] and waits until it answers.
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
                ask(self.address, PROBE)
                    .await
                    .is_ok_and(|answer| !answer.addresses.is_empty())
            })
            .await?;
        self.process = Some(process);
        Ok(())
    }
}

/// Takes every question to an address and answers none, as when packets get lost on the way. It
/// can take the place of a stopped [`CoreDns`] until it is dropped.
#[derive(Debug)]
pub struct Silence {
    // Open and never read: questions wait in the kernel, which throws away what it cannot hold.
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

/// What a DNS server says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Success, or why there is none.
    pub code: ResponseCode,
    /// The IPv4 addresses of the name.
    pub addresses: Vec<Ipv4Addr>,
}

/// Asks a server over UDP, once, for the IPv4 addresses of a full name.
///
/// # Errors
/// When the server refuses the question or does not answer within a second.
pub async fn ask(server: SocketAddr, name: &str) -> Result<Answer> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut question = Message::query();
    question.add_query(Query::query(Name::from_ascii(name)?, RecordType::A));
    let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&question.to_vec()?).await?;
    let mut buffer = [0; 4096];
    let length = timeout(ANSWER_WITHIN, socket.recv(&mut buffer))
        .await
        .with_context(|| format!("{server} does not answer"))??;
    let answer = Message::from_vec(&buffer[..length])?;
    if answer.metadata.id != question.metadata.id {
        bail!("{server} answers another question");
    }
    Ok(Answer {
        code: answer.metadata.response_code,
        addresses: answer
            .answers
            .iter()
            .filter_map(|record| match &record.data {
                RData::A(address) => Some(address.0),
                _ => None,
            })
            .collect(),
    })
}
