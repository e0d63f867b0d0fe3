//! The DNS of a fleet's members.

use anyhow::Result;

use super::{Fleet, Member};
use crate::{control_plane::Server, coredns::CoreDns, dns::DnsServer};

/// The DNS server of a member: a real CoreDNS beside a real API, otherwise one in this process.
/// Dropping it ends it.
#[derive(Debug)]
pub enum MemberDns {
    /// It answers from the gateway's API.
    CoreDns(Box<CoreDns>),
    /// It knows every name.
    InProcess(DnsServer),
}

impl Fleet {
    /// Starts the DNS server of a member and waits until it responds.
    pub async fn dns(&self, member: Member) -> Result<MemberDns> {
        let address = member.dns();
        match self.server {
            Server::Embedded => {
                let server = DnsServer::start(address).await?;
                Ok(MemberDns::InProcess(server))
            }
            Server::Real => {
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
            Self::InProcess(server) => server.stop().await,
        }
    }

    /// Starts it again after [`Self::stop`] and waits until it responds.
    pub async fn restart(&mut self) -> Result<()> {
        match self {
            Self::CoreDns(server) => server.restart().await,
            Self::InProcess(server) => server.restart().await,
        }
    }
}
