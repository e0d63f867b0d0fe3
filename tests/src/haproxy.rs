//! The proxy of users without a gateway cluster: a real HAProxy, with the backend `web` of many ingresses.

use std::{collections::BTreeSet, fmt::Write, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::{sleep, timeout},
};
use traffic::ingress::haproxy::{Server, State};

use crate::{
    fleet::{NAMESPACE, SERVICE},
    scratch,
};

/// The interval between two looks at the servers, which cannot be watched.
const POLL: Duration = Duration::from_millis(20);
/// The longest wait for a change of the servers.
const CHANGE_WITHIN: Duration = Duration::from_mins(2);
/// The name of the server at which requests wait while a backend has no other.
const WAITING: &str = "waiting";

/// A running HAProxy. Dropping it ends it.
#[derive(Debug)]
pub struct Haproxy {
    process: tools::haproxy::Haproxy,
    folder: TempDir,
}

impl Haproxy {
    /// Starts HAProxy on `address`. Requests to the host `NAME.…` go to the backend of the ingress `NAME`, and wait there
    /// while it has no server, as docs/haproxy.md has it for reloads.
    pub fn start(address: SocketAddr, ingresses: &[String]) -> Result<Self> {
        let folder = scratch::folder("haproxy")?;
        let path = folder.path().display();
        let mut configuration = format!(
            "global
  stats socket {path}/admin.sock mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option idle-close-on-response
  option redispatch 1
  retries 20
frontend web
  bind {address}
  use_backend {NAMESPACE}_%[req.hdr(host),field(1,.)]_{SERVICE}_80
"
        );
        for ingress in ingresses {
            writeln!(
                configuration,
                "backend {NAMESPACE}_{ingress}_{SERVICE}_80\n  server {WAITING} 127.0.0.1:1 backup"
            )?;
        }
        let process = tools::haproxy::Haproxy::start(folder.path(), &configuration)?;
        Ok(Self { process, folder })
    }

    /// Returns the path of its Runtime API.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("admin.sock")
    }

    /// Ends it as a crash does.
    pub fn kill(&self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again after that: it has no servers yet.
    pub fn revive(&self) -> Result<()> {
        self.process.revive()
    }

    /// Has another process take its sockets over, as a reload does: that one has no servers yet.
    pub fn reload(&self) -> Result<()> {
        self.process.reload(&self.socket())
    }

    /// Waits until every backend has servers that get requests, and over all of them exactly at these addresses.
    pub async fn becomes(&self, addresses: &[SocketAddr]) -> Result<()> {
        let wanted: BTreeSet<SocketAddr> = addresses.iter().copied().collect();
        let looking = async {
            while self.serving().await?.as_ref() != Some(&wanted) {
                sleep(POLL).await;
            }
            anyhow::Ok(())
        };
        timeout(CHANGE_WITHIN, looking)
            .await
            .with_context(|| format!("HAProxy has other servers than {wanted:?}"))?
    }

    /// Returns the addresses of all servers that get requests; none if a backend has no such server.
    async fn serving(&self) -> Result<Option<BTreeSet<SocketAddr>>> {
        let mut serving = BTreeSet::new();
        let backends = self.state().await?.backends;
        let of_ingresses = backends
            .iter()
            .filter(|(name, _)| name.starts_with(NAMESPACE));
        for (_, servers) in of_ingresses {
            let ours = servers.iter().filter(|(name, _)| *name != WAITING);
            let open = ours
                .map(|(_, server)| server)
                .filter(|it| it.takes_requests());
            let open: Vec<&Server> = open.collect();
            if open.is_empty() {
                return Ok(None);
            }
            serving.extend(open.iter().filter_map(|server| server.address));
        }
        Ok(Some(serving))
    }

    async fn state(&self) -> Result<State> {
        let mut stream = UnixStream::connect(self.socket()).await?;
        stream.write_all(b"show info; show servers state\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        State::read(&answer).context("HAProxy does not tell its state")
    }
}
