//! The DNS of a fleet's members.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use lab_parts::dns::{self, DnsServer};

use super::{Fleet, Member};
use crate::{control_plane::ApiKind, coredns::CoreDns};

/// The DNS server of a member: a real CoreDNS beside a real API, otherwise one in this process.
/// Dropping it ends it.
#[derive(Debug)]
pub enum MemberDns {
    /// It answers from the gateway's API.
    CoreDns(Box<CoreDns>),
    /// It knows every name. None while it is stopped: its address is free then.
    InProcess(SocketAddr, Option<DnsServer>),
}

async fn in_process(address: SocketAddr) -> Result<DnsServer> {
    DnsServer::start_at(address, dns::cluster())
        .await
        .with_context(|| format!("cannot serve DNS on {address}"))
}

impl Fleet {
    /// Starts the DNS server of a member and waits until it responds.
    pub async fn dns(&self, member: Member) -> Result<MemberDns> {
        let address = member.dns();
        match self.server {
            ApiKind::Embedded | ApiKind::EmbeddedByTls => {
                let server = in_process(address).await?;
                Ok(MemberDns::InProcess(address, Some(server)))
            }
            ApiKind::Real => {
                let server = CoreDns::start(address, self.gateway.kubeconfig_path()).await?;
                Ok(MemberDns::CoreDns(Box::new(server)))
            }
        }
    }
}

impl MemberDns {
    /// Kills it; from then on its address refuses queries.
    pub async fn stop(&mut self) -> Result<()> {
        match self {
            Self::CoreDns(server) => server.stop().await,
            Self::InProcess(address, server) => {
                let server = server.take();
                let server = server.with_context(|| format!("no DNS on {address}"))?;
                // It frees its address before it is dropped.
                Ok(server.stop().await?)
            }
        }
    }

    /// Starts it again after [`Self::stop`] and waits until it responds.
    pub async fn restart(&mut self) -> Result<()> {
        match self {
            Self::CoreDns(server) => server.restart().await,
            Self::InProcess(address, server) => {
                ensure!(server.is_none(), "DNS on {address} already");
                *server = Some(in_process(*address).await?);
                Ok(())
            }
        }
    }
}
