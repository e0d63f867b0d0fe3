//! The node on which probes run, and the way from there to a server: the addresses of its name, and a connection to one of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karmada_runtime::client::Addresses;
use kube::Client;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::tls::Authorities;
use super::unmet::{NO_ADDRESS, Unmet};

/// The most addresses of a name that a round tries.
const TRIED: usize = 3;
/// The part of a round that a lookup may take while addresses are known.
const LOOKUP_PART: u32 = 4;
/// The time for which a lookup counts. With a search list it is many queries, and every node makes them.
const LOOKUP_EVERY: Duration = Duration::from_secs(30);
/// The addresses at which clouds give a node or a pod its credentials (AWS, Azure, Google and others; ECS; EKS; Alibaba; AWS, EKS
/// and Google by IPv6). A file of signals must be no way to them.
const METADATA_SERVICES: [IpAddr; 7] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Returns `true` for an address that no probe may ask.
pub(super) fn is_metadata_service(ip: IpAddr) -> bool {
    METADATA_SERVICES.contains(&ip.to_canonical())
}

/// When names were looked up last.
#[derive(Clone, Debug, Default)]
struct Lookups(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Lookups {
    fn is_due(&self, host: &str) -> bool {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times
            .get(host)
            .is_none_or(|last| last.elapsed() >= LOOKUP_EVERY)
    }

    fn succeeded(&self, host: &str) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.insert(host.to_owned(), Instant::now());
    }

    /// Has the next round look the name up: it may have moved.
    fn expire(&self, host: &str) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.remove(host);
    }
}

/// The node on which probes run.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) addresses: Addresses,
    /// Its address, if a flag gives it.
    pub(super) ip: Option<IpAddr>,
    /// The API of its cluster.
    pub(super) member: Option<Client>,
    lookups: Lookups,
    pub(super) authorities: Authorities,
}

impl Node {
    /// Creates the node on which nothing is known yet.
    pub(super) fn new(addresses: Addresses, ip: Option<IpAddr>, member: Option<Client>) -> Self {
        Self {
            addresses,
            ip,
            member,
            lookups: Lookups::default(),
            authorities: Authorities::default(),
        }
    }

    /// Connects to a host, at the first of its addresses that accepts.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
        deadline: Instant,
    ) -> Result<(TcpStream, SocketAddr), Unmet> {
        let addresses = self.addresses_of(host, deadline).await?;
        let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut first: Option<Unmet> = None;
        for ip in addresses {
            if is_metadata_service(ip) {
                let problem =
                    format!("{host} is the metadata service of a cloud, which no probe may ask");
                return Err(Unmet::unobserved(problem));
            }
            let server = SocketAddr::new(ip, port);
            // One that is silent leaves time for the others.
            let share = deadline.saturating_duration_since(Instant::now()) / left.max(1);
            left = left.saturating_sub(1);
            let unmet = match timeout(share, TcpStream::connect(server)).await {
                Ok(Ok(stream)) => return Ok((stream, server)),
                Ok(Err(error)) => Unmet::by_io(&error, server),
                Err(_) => Unmet::late(server),
            };
            // The first of several, so that the message of a verdict stays the same.
            first.get_or_insert(unmet);
        }
        self.lookups.expire(host);
        Err(first.unwrap_or_else(|| Unmet::nowhere(NO_ADDRESS, format!("{host} has no address"))))
    }

    /// Looks a name up. While DNS fails, its last addresses are used: a probe is not about that.
    async fn addresses_of(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Unmet> {
        if let Ok(ip) = host.parse() {
            return Ok(vec![ip]);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = if self.addresses.known(host).is_empty() {
            Some(left)
        } else {
            let due = self.lookups.is_due(host);
            due.then_some(left / LOOKUP_PART)
        };
        let mut is_late = false;
        if let Some(limit) = limit {
            match timeout(limit, self.addresses.refresh(host)).await {
                Ok(true) => self.lookups.succeeded(host),
                // The known part counts all the same.
                Ok(false) => {}
                Err(_) => is_late = true,
            }
        }
        let mut known = self.addresses.known(host);
        known.truncate(TRIED);
        if known.is_empty() {
            let problem = if is_late {
                format!("no answer from DNS for {host} in time")
            } else {
                format!("{host} has no address")
            };
            return Err(Unmet::nowhere(NO_ADDRESS, problem));
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In any form of its address.
    #[test]
    fn metadata_service_is_known() {
        for text in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
            "fd20:ce::254",
            "169.254.170.23",
        ] {
            assert!(is_metadata_service(text.parse().unwrap()), "{text}");
        }
        // The node's own cache of DNS, for example, is no such service.
        assert!(!is_metadata_service("169.254.20.10".parse().unwrap()));
    }
}
