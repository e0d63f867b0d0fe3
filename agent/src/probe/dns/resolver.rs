//! Lookups of the names that this program connects to: by `/etc/hosts`, and then as the probe looks its
//! names up. Unlike the system's resolver such a lookup blocks no thread, ends soon and can be dropped:
//! while DNS is dead there are many of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use hickory_proto::rr::Name;
use karmada_runtime::client::Addresses;
use tokio::time::Instant;

use super::Network;
use super::exchange::ProbeError;
use super::lookup::{Expected, Lookup};
use super::resolv_conf::ResolvConf;

/// The deadline of a lookup. A new connection without known addresses waits for the whole of it.
const LIMIT: Duration = Duration::from_secs(4);
/// The wait for the addresses of the other family: RFC 8305, section 3, waits 50 ms, but a search list
/// may be long, the server far and a datagram lost, and a connection with known addresses does not wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// The files that a lookup reads anew each time.
#[derive(Clone, Debug)]
struct Files {
    hosts: PathBuf,
    resolv_conf: PathBuf,
}

/// Returns the addresses of names by the files of this system.
pub(crate) fn addresses() -> Addresses {
    let files = Files {
        hosts: "/etc/hosts".into(),
        resolv_conf: "/etc/resolv.conf".into(),
    };
    Addresses::by(move |name| {
        let files = files.clone();
        async move { files.look_up(&name).await }.boxed()
    })
}

impl Files {
    async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let listed = match std::fs::read_to_string(&self.hosts) {
            Ok(text) => listed(&text, name),
            // DNS may well know the name.
            Err(_) => Vec::new(),
        };
        if !listed.is_empty() {
            return Ok(listed);
        }
        let name = Name::from_ascii(name).map_err(io::Error::other)?;
        let conf = ResolvConf::read(&self.resolv_conf)?;
        look_up_at(&conf.servers, &conf, &name).await
    }
}

async fn look_up_at(
    servers: &[SocketAddr],
    conf: &ResolvConf,
    name: &Name,
) -> io::Result<Vec<IpAddr>> {
    let start = Instant::now();
    let lookup = Lookup {
        client: &Network,
        servers,
        transport: conf.transport,
        families: conf.families,
        patience: PATIENCE,
        expected: Expected::Addresses(&[]),
        start,
        deadline: start + LIMIT,
    };
    match lookup.resolve(&conf.candidates(name), None).await {
        Ok(found) => {
            let mut addresses = found.addresses;
            // The family that responds first is chance; connections start with the first address.
            addresses.sort();
            Ok(addresses)
        }
        Err(not_found) => match not_found.error {
            ProbeError::Failed(failure) => Err(io::Error::other(failure.to_string())),
            ProbeError::Internal(error) => Err(error),
        },
    }
}

/// Returns the addresses that the text of a hosts file (`man 5 hosts`) lists for a name.
fn listed(text: &str, name: &str) -> Vec<IpAddr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let lines = text.lines().filter_map(|line| {
        let entry = line.split('#').next()?;
        let mut words = entry.split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let named = words.any(|word| word.eq_ignore_ascii_case(name));
        named.then_some(address)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hickory_proto::op::ResponseCode;
    use hickory_proto::rr::RecordType;
    use lab_parts::dns::{Behaviour, DnsServer, Response};
    use tempfile::TempDir;

    use super::*;

    const HOSTS: &str = "# made by the kubelet\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n\
                         192.0.2.7 karmada.example Karmada # hostAliases\nnonsense karmada.example\n";

    #[test]
    fn a_hosts_file_lists_addresses_by_name() {
        let cases: [(&str, &[&str]); 5] = [
            ("localhost", &["127.0.0.1", "::1"]),
            ("karmada", &["192.0.2.7"]),
            ("KARMADA.example.", &["192.0.2.7"]),
            ("hostAliases", &[]),
            ("example", &[]),
        ];
        for (name, addresses) in cases {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(listed(HOSTS, name), addresses, "{name}");
        }
    }

    /// Files of a test's own, and the queries of a lookup by them.
    struct Place {
        _folder: TempDir,
        files: Files,
    }

    impl Place {
        fn new(hosts: &str, resolv_conf: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let files = Files {
                hosts: folder.path().join("hosts"),
                resolv_conf: folder.path().join("resolv.conf"),
            };
            std::fs::write(&files.hosts, hosts).unwrap();
            std::fs::write(&files.resolv_conf, resolv_conf).unwrap();
            Self {
                _folder: folder,
                files,
            }
        }
    }

    #[tokio::test]
    async fn a_listed_name_needs_no_dns() {
        let place = Place::new(HOSTS, "");
        let found = place.files.look_up("karmada.example").await.unwrap();
        assert_eq!(found, [IpAddr::from([192, 0, 2, 7])]);
        // Any other does, and the file names no server that knows it.
        place.files.look_up("other.example").await.unwrap_err();
        std::fs::remove_file(&place.files.hosts).unwrap();
        place.files.look_up("karmada.example").await.unwrap_err();
    }

    #[tokio::test]
    async fn a_name_is_looked_up_through_the_search_list_in_both_families() {
        // A server on port 53 needs a namespace of its own, so the lookup is given this one.
        let known = "karmada.corp.example.";
        let server = DnsServer::start(Behaviour::zone([known], Response::Loopback))
            .await
            .unwrap();
        let conf = ResolvConf::parse(b"search shop.local corp.example\noptions ndots:2\n");
        let name = Name::from_ascii("karmada").unwrap();
        let found = look_up_at(&[server.address()], &conf, &name).await.unwrap();
        let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), "::1".parse().unwrap()];
        assert_eq!(found, both);
        // One family, and one of two servers, is enough.
        server.set(Behaviour::new(|received| match received.query.query_type {
            RecordType::A => Response::Loopback,
            _ => Response::Drop,
        }));
        let broken = DnsServer::start(Response::Code(ResponseCode::ServFail))
            .await
            .unwrap();
        let servers = [broken.address(), server.address()];
        let found = look_up_at(&servers, &conf, &name).await.unwrap();
        assert_eq!(found, both[..1]);
        let error = look_up_at(&[broken.address()], &conf, &name)
            .await
            .unwrap_err();
        assert!(
            error.to_string().starts_with("servfail from 127.0.0.1"),
            "{error}"
        );
    }
}
