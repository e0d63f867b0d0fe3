//! Lookups of names by the system's files: by `/etc/hosts`, and then at the servers of `/etc/resolv.conf`. Unlike one of
//! the system's own resolver, such a lookup blocks no thread, ends soon and can be dropped: while DNS is dead there are
//! many of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_ok;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use tokio::time::{sleep, timeout};

use crate::resolv_conf::ResolvConf;

/// The deadline of a lookup: time for a pod's search list at a server that drops the queries of one family. A new connection
/// without known addresses waits no longer than its own limit.
const LIMIT: Duration = Duration::from_secs(15);
/// The wait for one response. An answer that came does not wait longer than twice this for that of the other family.
const RESPONSE_LIMIT: Duration = Duration::from_secs(1);

/// The files that a lookup reads anew each time.
#[derive(Clone, Debug)]
pub(super) struct Files {
    hosts: PathBuf,
    resolv_conf: PathBuf,
}

impl Files {
    /// Returns the files of this system.
    pub(super) fn of_system() -> Self {
        Self {
            hosts: "/etc/hosts".into(),
            resolv_conf: "/etc/resolv.conf".into(),
        }
    }

    /// Returns the addresses of a name.
    pub(super) async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let name = Name::from_ascii(name).map_err(io::Error::other)?;
        // A listed name needs no DNS, which the search list would ask first.
        let listed = self.listed(&name);
        if !listed.is_empty() {
            return Ok(listed);
        }
        let conf = ResolvConf::read(&self.resolv_conf)?;
        look_up_at(&conf.servers, &conf, name).await
    }

    fn listed(&self, name: &Name) -> Vec<IpAddr> {
        let mut hosts = Hosts::default();
        // DNS may well know the names of a file that cannot be read.
        if let Ok(text) = std::fs::read(&self.hosts) {
            // A comment in another encoding hides no line.
            let text = String::from_utf8_lossy(&text);
            drop(hosts.read_hosts_conf(text.as_bytes()));
        }
        let families = [RecordType::A, RecordType::AAAA];
        let found = families
            .into_iter()
            .filter_map(|family| hosts.lookup_static_host(&Query::query(name.clone(), family)));
        let records = found.flat_map(|found| found.answers().to_vec());
        records.filter_map(|record| record.data.ip_addr()).collect()
    }
}

async fn look_up_at(
    servers: &[SocketAddr],
    conf: &ResolvConf,
    name: Name,
) -> io::Result<Vec<IpAddr>> {
    let usable = servers.iter().filter(|server| !has_scope(server));
    // Each by itself: hickory-resolver ends a lookup with the first server that fails. A later one may know other addresses
    // of the name, so those before it have time to answer.
    let asking = (0..).zip(usable).map(|(place, server)| {
        let name = name.clone();
        let asked = async move {
            sleep(RESPONSE_LIMIT * place).await;
            ask(*server, conf, name).await
        };
        asked.boxed()
    });
    let asking: Vec<_> = asking.collect();
    if asking.is_empty() {
        return Err(io::Error::other(
            "every server of /etc/resolv.conf is link-local, which is not supported",
        ));
    }
    let found = timeout(LIMIT, select_ok(asking)).await;
    let (found, _others) = found
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer from DNS in time"))??;
    let mut addresses: Vec<_> = found.iter().collect();
    // The order of a response is chance; connections start with the first address.
    addresses.sort();
    Ok(addresses)
}

async fn ask(server: SocketAddr, conf: &ResolvConf, name: Name) -> io::Result<LookupIp> {
    let found = resolver(server, conf)?.lookup_ip(name).await;
    found.map_err(|error| {
        let kind = if error.is_no_records_found() {
            io::ErrorKind::NotFound
        } else {
            io::ErrorKind::Other
        };
        io::Error::new(kind, format!("{error} from {server}"))
    })
}

fn resolver(server: SocketAddr, conf: &ResolvConf) -> io::Result<TokioResolver> {
    let servers = vec![name_server(server, conf)];
    let config = ResolverConfig::from_parts(None, conf.search.clone(), servers);
    let provider = TokioRuntimeProvider::default();
    let mut builder = TokioResolver::builder_with_config(config, provider);
    let options = builder.options_mut();
    options.ndots = conf.ndots;
    options.timeout = RESPONSE_LIMIT;
    options.attempts = 1;
    options.edns0 = false;
    options.ip_strategy = if conf.families.contains(&RecordType::AAAA) {
        LookupIpStrategy::Ipv4AndIpv6
    } else {
        LookupIpStrategy::Ipv4Only
    };
    // It lives as long as one lookup.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    builder.build().map_err(io::Error::other)
}

fn name_server(server: SocketAddr, conf: &ResolvConf) -> NameServerConfig {
    let mut config = if conf.over_tcp {
        NameServerConfig::tcp(server.ip())
    } else {
        NameServerConfig::udp_and_tcp(server.ip())
    };
    for connection in &mut config.connections {
        connection.port = server.port();
    }
    config
}

/// Returns `true` for a server on one interface, which hickory-resolver cannot be told.
fn has_scope(server: &SocketAddr) -> bool {
    matches!(server, SocketAddr::V6(server) if server.scope_id() != 0)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hickory_resolver::proto::op::ResponseCode;
    use lab_parts::dns::{Behaviour, DnsServer, Response};
    use tempfile::TempDir;

    use super::*;

    const HOSTS: &str = "# made by the kubelet\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n\
                         192.0.2.7 karmada.example Karmada # hostAliases\nnonsense karmada.example\n";
    const LOOPBACK: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
    ];

    /// Files of a test's own.
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

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    /// A hosts file lists addresses by name, whatever its case.
    #[test]
    fn hosts_file_lists_names() {
        let place = Place::new(HOSTS, "");
        let cases: [(&str, &[&str]); 5] = [
            ("localhost", &["127.0.0.1", "::1"]),
            ("karmada", &["192.0.2.7"]),
            ("KARMADA.example.", &["192.0.2.7"]),
            ("hostAliases", &[]),
            ("example", &[]),
        ];
        for (text, addresses) in cases {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(place.files.listed(&name(text)), addresses, "{text}");
        }
    }

    /// A listed name is found without DNS, and any other is not.
    #[tokio::test]
    async fn listed_name_needs_no_dns() {
        let place = Place::new(HOSTS, "search a.example b.example\noptions ndots:5\n");
        let found = place.files.look_up("karmada.example").await.unwrap();
        assert_eq!(found, [IpAddr::from([192, 0, 2, 7])]);
        place.files.look_up("other.example").await.unwrap_err();
        std::fs::remove_file(&place.files.hosts).unwrap();
        place.files.look_up("karmada.example").await.unwrap_err();
        // This name needs neither.
        let found = place.files.look_up("localhost").await.unwrap();
        assert_eq!(found, LOOPBACK);
    }

    /// A name is looked up through the search list in both families; one family, and one of two servers, is enough.
    #[tokio::test]
    async fn search_list_leads_to_addresses() {
        // A server on port 53 needs a namespace of its own, so the lookup is given this one.
        let known = "karmada.corp.example.";
        let server = DnsServer::start(Behaviour::zone([known], Response::Loopback))
            .await
            .unwrap();
        let conf = ResolvConf::parse(b"search shop.local corp.example\noptions ndots:2\n");
        let look_up =
            async |servers: &[SocketAddr]| look_up_at(servers, &conf, name("karmada")).await;
        assert_eq!(look_up(&[server.address()]).await.unwrap(), LOOPBACK);

        server.set(Behaviour::new(|received| match received.query.query_type {
            RecordType::A => Response::Loopback,
            _ => Response::Drop,
        }));
        let broken = DnsServer::start(Response::Code(ResponseCode::ServFail))
            .await
            .unwrap();
        let servers = [broken.address(), server.address()];
        assert_eq!(look_up(&servers).await.unwrap(), LOOPBACK[..1]);
        look_up(&[broken.address()]).await.unwrap_err();
    }

    /// The first server decides, and a later one only once that has had its time.
    #[tokio::test]
    async fn first_server_has_time() {
        let (first, second) = (
            DnsServer::start(Response::Loopback).await.unwrap(),
            DnsServer::start(Response::Code(ResponseCode::NXDomain))
                .await
                .unwrap(),
        );
        let conf = ResolvConf::parse(b"");
        let servers = [first.address(), second.address()];
        let found = look_up_at(&servers, &conf, name("karmada.example.")).await;
        assert_eq!(found.unwrap(), LOOPBACK);
        assert_eq!(second.received().len(), 0);
    }

    /// A name that does not exist is told apart from a DNS that fails.
    #[tokio::test]
    async fn missing_name_is_not_found() {
        let conf = ResolvConf::parse(b"");
        for (code, expected) in [
            (ResponseCode::NXDomain, io::ErrorKind::NotFound),
            (ResponseCode::ServFail, io::ErrorKind::Other),
        ] {
            let server = DnsServer::start(Response::Code(code)).await.unwrap();
            let servers = [server.address()];
            let error = look_up_at(&servers, &conf, name("karmada.example.")).await;
            assert_eq!(error.unwrap_err().kind(), expected, "{code}");
        }
    }

    /// A server that never answers holds up a lookup no longer than its deadline.
    #[tokio::test]
    async fn silent_server_ends_in_time() {
        let silent = DnsServer::start(Response::Drop).await.unwrap();
        let conf = ResolvConf::parse(b"search a.example b.example c.example\noptions ndots:5\n");
        let servers = [silent.address()];
        let looking_up = look_up_at(&servers, &conf, name("karmada"));
        let found = timeout(LIMIT * 2, looking_up).await.unwrap();
        found.unwrap_err();
    }
}
