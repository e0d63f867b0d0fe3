//! The servers and the candidates of a name by `/etc/resolv.conf`, read as glibc reads it (`man 5
//! resolv.conf`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::Path;

use hickory_resolver::proto::rr::{Name, RecordType};
use resolv_conf::{Config, ScopedIp};

/// glibc ignores further servers (`MAXNS`).
const MOST_SERVERS: usize = 3;
/// glibc caps `ndots` at this (`RES_MAXNDOTS`).
const MOST_DOTS: u32 = 15;
const PORT: u16 = 53;
/// The servers where the file is missing or names none: that on this host.
const HERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// The settings of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// The servers, in the order in which they are asked.
    pub servers: Vec<SocketAddr>,
    /// The domains of the search list.
    pub search: Vec<Name>,
    /// The dots from which on a name is tried as it is first.
    pub ndots: usize,
    /// The record types of addresses to query.
    pub families: &'static [RecordType],
    /// True if queries go over TCP alone.
    pub over_tcp: bool,
    /// True if each lookup begins at another server.
    pub rotate: bool,
}

impl ResolvConf {
    /// Reads a file. One that is missing is as one that is empty.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::parse(b"")),
            Err(error) => {
                let what = format!("reading {}: {error}", path.display());
                Err(io::Error::new(error.kind(), what))
            }
        }
    }

    /// Parses the text of a file.
    pub fn parse(text: &[u8]) -> Self {
        // Like glibc, skip lines that do not parse and use the rest.
        let (config, _unreadable_lines) = Config::parse_with_errors(text);
        let servers = config.nameservers.iter().take(MOST_SERVERS);
        let mut servers: Vec<_> = servers.filter_map(address).collect();
        if servers.is_empty() {
            servers.extend(HERE.map(|server| SocketAddr::new(server, PORT)));
        }
        Self {
            servers,
            search: search(&config),
            ndots: usize::try_from(config.ndots.min(MOST_DOTS)).unwrap_or_default(),
            families: if config.no_aaaa {
                &[RecordType::A]
            } else {
                &[RecordType::A, RecordType::AAAA]
            },
            over_tcp: config.use_vc,
            rotate: config.rotate,
        }
    }

    /// Returns the absolute names to try for `name`, in order.
    pub fn candidates(&self, name: &Name) -> Vec<Name> {
        let mut as_it_is = name.clone();
        as_it_is.set_fqdn(true);
        if name.is_fqdn() {
            return vec![as_it_is];
        }
        let searched = self
            .search
            .iter()
            // A name of more than 255 octets (RFC 1035, section 2.3.4) is no candidate.
            .filter_map(|suffix| name.clone().append_domain(suffix).ok());
        let mut candidates: Vec<_> = searched.collect();
        let place = if self.is_first(name) {
            0
        } else {
            candidates.len()
        };
        candidates.insert(place, as_it_is);
        // `search .` and repeated suffixes would send the same query twice.
        let mut seen = Vec::with_capacity(candidates.len());
        candidates.retain(|candidate| {
            let new = !seen.contains(candidate);
            seen.push(candidate.clone());
            new
        });
        candidates
    }

    /// Returns `true` if `name` is tried as it is before the search list.
    pub fn is_first(&self, name: &Name) -> bool {
        let dots = name.iter().len().saturating_sub(1);
        name.is_fqdn() || dots >= self.ndots
    }
}

/// Returns the last of `search` and `domain`, which exclude each other, or else the domain of the
/// host name.
fn search(config: &Config) -> Vec<Name> {
    let mut suffixes: Vec<_> = config.get_last_search_or_domain().cloned().collect();
    if config.get_search().is_none() && config.get_domain().is_none() {
        suffixes.extend(config.get_system_domain());
    }
    suffixes
        .iter()
        .filter_map(|suffix| Name::from_ascii(suffix).ok())
        .collect()
}

fn address(server: &ScopedIp) -> Option<SocketAddr> {
    match server {
        ScopedIp::V4(ip) => Some((*ip, PORT).into()),
        ScopedIp::V6(ip, None) => Some((*ip, PORT).into()),
        ScopedIp::V6(ip, Some(interface)) => scoped(*ip, interface),
    }
}

/// Returns a link-local server on an interface given by number or name.
fn scoped(ip: Ipv6Addr, interface: &str) -> Option<SocketAddr> {
    let scope = interface.parse().ok().or_else(|| {
        // The name becomes a path below and must not lead out of that folder.
        if interface.contains('/') {
            return None;
        }
        let index = Path::new("/sys/class/net").join(interface).join("ifindex");
        std::fs::read_to_string(index).ok()?.trim().parse().ok()
    })?;
    Some(SocketAddrV6::new(ip, PORT, 0, scope).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local\n\
                       nameserver 10.96.0.10\noptions ndots:5\n";

    fn parse(text: &str) -> ResolvConf {
        ResolvConf::parse(text.as_bytes())
    }

    fn candidates(text: &str, name: &str) -> Vec<String> {
        let text = format!("nameserver 10.96.0.10\n{text}");
        let names = parse(&text).candidates(&Name::from_ascii(name).unwrap());
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pods_file_gives_its_server_and_its_search_list() {
        let conf = parse(POD);
        assert_eq!(conf.servers, ["10.96.0.10:53".parse().unwrap()]);
        assert_eq!(conf.search.len(), 3);
        assert_eq!(conf.ndots, 5);
        assert_eq!(conf.families, [RecordType::A, RecordType::AAAA]);
        assert!(!conf.over_tcp && !conf.rotate);
    }

    #[test]
    fn candidates_follow_from_search_list_and_ndots() {
        let cases: [(&str, &str, &str, &[&str]); 5] = [
            (
                "fewer dots than ndots: the search list first",
                "search a.local local\noptions ndots:5",
                "kubernetes.default",
                &[
                    "kubernetes.default.a.local.",
                    "kubernetes.default.local.",
                    "kubernetes.default.",
                ],
            ),
            (
                "as many dots as ndots: the name itself first",
                "search a.local\noptions ndots:1",
                "kubernetes.default",
                &["kubernetes.default.", "kubernetes.default.a.local."],
            ),
            (
                "ndots is 1 by default",
                "search a.local",
                "one",
                &["one.a.local.", "one."],
            ),
            (
                "ndots is at most 15",
                "search a\noptions ndots:99",
                "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16",
                &[
                    "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.",
                    "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.a.",
                ],
            ),
            (
                "an absolute name is tried as it is",
                "search a.local\noptions ndots:5",
                "kubernetes.default.svc.cluster.local.",
                &["kubernetes.default.svc.cluster.local."],
            ),
        ];
        for (sentence, text, name, expected) in cases {
            assert_eq!(candidates(text, name), expected, "{sentence}");
        }
    }

    #[test]
    fn the_search_list_is_read_as_glibc_reads_it() {
        let cases: [(&str, &str, &str, &[&str]); 4] = [
            (
                "the last of search and domain counts",
                "search a.local\ndomain b.local",
                "one",
                &["one.b.local.", "one."],
            ),
            (
                "the root as suffix adds no candidate",
                "search . a",
                "one",
                &["one.", "one.a."],
            ),
            (
                "a suffix twice is one candidate",
                "search a a A",
                "one",
                &["one.a.", "one."],
            ),
            (
                "an empty search list is one, so the host's domain does not count",
                "search",
                "one",
                &["one."],
            ),
        ];
        for (sentence, text, name, expected) in cases {
            assert_eq!(candidates(text, name), expected, "{sentence}");
        }
    }

    #[test]
    fn a_suffix_that_makes_the_name_too_long_is_left_out() {
        let long = vec!["x".repeat(60); 4].join(".");
        assert_eq!(
            candidates(&format!("search {long} a"), "kubernetes.default"),
            ["kubernetes.default.", "kubernetes.default.a."]
        );
    }

    #[test]
    fn only_three_servers_are_queried_and_lines_that_do_not_parse_are_skipped() {
        let conf = parse(
            "# made by hand\nnameserver nonsense\nnameserver 10.0.0.1 # first\nnameserver fd00::a\n\
             unheard-of option\nnameserver fe80::1%7\nnameserver 10.0.0.4\noptions odd ndots:2\n",
        );
        let servers: Vec<_> = conf.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.1:53", "[fd00::a]:53", "[fe80::1%7]:53"]);
        assert_eq!(conf.ndots, 2);
    }

    #[test]
    fn an_interface_is_found_by_name() {
        let conf = parse("nameserver fe80::1%lo\n");
        assert_eq!(conf.servers, ["[fe80::1%1]:53".parse().unwrap()]);
    }

    #[test]
    fn options_that_change_transport_or_family_are_applied() {
        let conf = parse("nameserver 10.0.0.1\noptions use-vc no-aaaa rotate\n");
        assert!(conf.over_tcp && conf.rotate);
        assert_eq!(conf.families, [RecordType::A]);
    }

    /// Without a server the one on this host is queried, as every resolver does; the rest of the file counts.
    #[test]
    fn without_a_server_this_host_is_queried() {
        let here: Vec<SocketAddr> = ["127.0.0.1:53", "[::1]:53"]
            .map(|s| s.parse().unwrap())
            .into();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolv.conf");
        assert_eq!(ResolvConf::read(&path).unwrap().servers, here);
        for text in [
            "",
            "search a.local\noptions ndots:5\n",
            "nameserver nonsense\n",
            "nameserver\n",
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(ResolvConf::read(&path).unwrap().servers, here, "{text}");
        }
        assert_eq!(parse("search a.local\noptions ndots:5\n").ndots, 5);
        // A file that is there and cannot be read may name others.
        let folder = ResolvConf::read(folder.path()).unwrap_err();
        assert!(folder.to_string().starts_with("reading /"), "{folder}");
    }
}
