//! The flags of the DNS probe, and the settings made of them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use health::resolver::Resolver;
use health::resolvers::Judge;
use hickory_proto::rr::Name;
use objects::qualified_name::is_label;

use super::direct_checks::{AddressSource, DirectTargets};
use super::right::api_address;

/// The port of a server that a flag names without one.
const PORT: u16 = 53;
/// The value of a flag whose addresses are to be discovered.
const AUTO: &str = "auto";
/// The value of a flag for which any one resolver is enough.
const ANY: &str = "any";

/// The flags of the DNS probe.
#[derive(clap::Args, Debug)]
pub(crate) struct DnsArgs {
    /// Name that must have an address, written as a pod would write it. May be repeated; then all of them must have one.
    #[arg(
        long = "probe-name",
        env = "KARMADA_PROBE_NAME",
        default_value = "kubernetes.default",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = probe_name
    )]
    probe_names: Vec<Name>,
    /// DNS server to query instead of those of /etc/resolv.conf. May be repeated.
    #[arg(
        long = "nameserver",
        env = "KARMADA_NAMESERVER",
        value_name = "IP[:PORT]",
        value_delimiter = ',',
        value_parser = nameserver
    )]
    nameservers: Vec<SocketAddr>,
    /// Address that a probe name must have; any other is a failure (mismatch). May be repeated; then every address of every probe name must be one of them.
    #[arg(
        long = "expect-address",
        env = "KARMADA_EXPECT_ADDRESS",
        value_name = "IP",
        value_delimiter = ','
    )]
    expected: Vec<IpAddr>,
    /// Resolver whose pods must be able to look up the names: glibc, musl or go; with any, one of these is enough. May be repeated; then each of them must.
    #[arg(
        long,
        env = "KARMADA_JUDGE_AS",
        default_value = ANY,
        value_name = "any|RESOLVER",
        value_delimiter = ',',
        value_parser = resolver
    )]
    judge_as: Vec<Judged>,
    /// Also query a random name that must not exist in each round, so that no cache hides a dead server.
    #[arg(long, env = "KARMADA_PROBE_UNCACHED")]
    probe_uncached: bool,
    /// Also query the DNS Service's address, to locate a fault. Without a value, or with auto, the address is discovered in the member cluster's API.
    #[arg(
        long,
        env = "KARMADA_PROBE_KUBE_DNS",
        value_name = "IP[:PORT]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = AUTO,
        value_parser = server
    )]
    probe_kube_dns: Option<Server>,
    /// Also query each DNS pod, to locate a fault. Without a value, or with auto, the addresses are discovered in the member cluster's API.
    #[arg(
        long,
        env = "KARMADA_PROBE_ENDPOINTS",
        value_name = "IP[:PORT]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = AUTO,
        value_delimiter = ',',
        value_parser = server
    )]
    probe_endpoints: Vec<Server>,
    /// Service of the cluster's DNS, for the discovery of its addresses.
    #[arg(
        long,
        env = "KARMADA_DNS_SERVICE",
        default_value = "kube-system/kube-dns",
        value_name = "NAMESPACE/NAME",
        value_parser = service
    )]
    dns_service: (String, String),
}

/// The settings of the DNS probe.
#[derive(Clone, Debug)]
pub(crate) struct DnsProbe {
    /// Names that must have an address, written as a pod would write them.
    pub(crate) names: Vec<Name>,
    /// The addresses that are right; if empty, those of the cluster are.
    pub(crate) expected: Vec<IpAddr>,
    /// The address of the API's Service, if it is known.
    pub(crate) api: Option<IpAddr>,
    /// The resolvers whose failure counts.
    pub(crate) judge: Judge,
    /// Set if each round also queries a name that no cache can know.
    pub(crate) uncached: bool,
    /// The servers; if empty, those of `resolv_conf`.
    pub(crate) nameservers: Vec<SocketAddr>,
    /// The deadline of a round, from its start.
    pub(crate) timeout: Duration,
    /// The file with the search list and the servers, read anew for every round.
    pub(crate) resolv_conf: PathBuf,
    pub(crate) direct: DirectTargets,
}

/// A server to query, or `None` if it is to be discovered.
type Server = Option<SocketAddr>;
/// A resolver whose failure counts, or `None` for any.
type Judged = Option<Resolver>;

impl DnsArgs {
    /// # Errors
    /// Returns a message for the user if the flags contradict each other.
    pub(in crate::probe) fn check(&self) -> Result<(), String> {
        if self.probe_endpoints.len() > 1 && self.probe_endpoints.contains(&None) {
            return Err(format!(
                "--probe-endpoints has {AUTO} among addresses: write either {AUTO} or the addresses"
            ));
        }
        if self.judge_as.len() > 1 && self.judge_as.contains(&None) {
            return Err(format!(
                "--judge-as has {ANY} among resolvers: write either {ANY} or the resolvers"
            ));
        }
        Ok(())
    }

    pub(in crate::probe) fn probe(self, timeout: Duration) -> DnsProbe {
        DnsProbe {
            timeout,
            names: self.probe_names,
            expected: self.expected,
            // Of another cluster's servers, this pod's API says nothing.
            api: api_address().filter(|_| self.nameservers.is_empty()),
            judge: Judge {
                each: self.judge_as.into_iter().flatten().collect(),
            },
            uncached: self.probe_uncached,
            nameservers: self.nameservers,
            resolv_conf: "/etc/resolv.conf".into(),
            direct: DirectTargets {
                service: source(self.probe_kube_dns.as_slice()),
                pods: source(&self.probe_endpoints),
                dns_service: self.dns_service,
            },
        }
    }
}

fn source(servers: &[Server]) -> AddressSource {
    if servers.is_empty() {
        return AddressSource::None;
    }
    // `None` if any is to be discovered; `check` rejects a mixture.
    let given: Option<Vec<_>> = servers.iter().copied().collect();
    given.map_or(AddressSource::Discovered, AddressSource::Given)
}

fn server(text: &str) -> Result<Server, String> {
    if text == AUTO {
        return Ok(None);
    }
    nameserver(text).map(Some)
}

/// Parses a resolver; `None` stands for any.
fn resolver(text: &str) -> Result<Judged, String> {
    if text == ANY {
        return Ok(None);
    }
    let known = text.parse().map(Some);
    known.map_err(|_| format!("write {ANY}, or one of glibc, musl and go"))
}

fn service(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_label(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(
            "write the namespace and the name of a Service, such as kube-system/kube-dns"
                .to_owned(),
        ),
    }
}

fn probe_name(text: &str) -> Result<Name, String> {
    match Name::from_ascii(text) {
        // The root alone has no address.
        Ok(name) if name.iter().next().is_some() => Ok(name),
        _ => Err("write a DNS name such as kubernetes.default".to_owned()),
    }
}

/// Parses a server as a flag gives it: an address, with a port unless it is 53.
fn nameserver(text: &str) -> Result<SocketAddr, String> {
    let bare = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    bare.or_else(|_| text.parse())
        .ok()
        .filter(|server| server.port() != 0 && !server.ip().is_unspecified())
        .ok_or_else(|| {
            "write an IP address, or one with a port, such as 10.96.0.10, 10.96.0.10:53 or [fd00::a]:53"
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser, Debug)]
    struct Program {
        #[command(flatten)]
        dns: DnsArgs,
    }

    #[test]
    fn servers_of_direct_checks_are_given_or_discovered() {
        let server = |text: &str| text.parse().unwrap();
        let cases: [(&[&str], AddressSource, AddressSource); 4] = [
            (&[], AddressSource::None, AddressSource::None),
            (
                &["--probe-kube-dns", "--probe-endpoints"],
                AddressSource::Discovered,
                AddressSource::Discovered,
            ),
            (
                &["--probe-kube-dns=auto", "--probe-endpoints=auto"],
                AddressSource::Discovered,
                AddressSource::Discovered,
            ),
            (
                &[
                    "--probe-kube-dns=10.96.0.10",
                    "--probe-endpoints=10.244.0.2,[fd00::2]:5353",
                ],
                AddressSource::Given(vec![server("10.96.0.10:53")]),
                AddressSource::Given(vec![server("10.244.0.2:53"), server("[fd00::2]:5353")]),
            ),
        ];
        for (flags, service, pods) in cases {
            let args = ["agent"].iter().chain(flags);
            let args = Program::try_parse_from(args).unwrap().dns;
            args.check().unwrap();
            let direct = args.probe(Duration::from_secs(2)).direct;
            assert_eq!((direct.service, direct.pods), (service, pods), "{flags:?}");
            assert_eq!(
                direct.dns_service,
                ("kube-system".to_owned(), "kube-dns".to_owned())
            );
        }
    }

    fn judge(flags: &[&str]) -> Result<Vec<Resolver>, String> {
        let args = Program::try_parse_from(["agent"].iter().chain(flags));
        let args = args.map_err(|error| error.to_string())?.dns;
        args.check()?;
        Ok(args.probe(Duration::from_secs(2)).judge.each)
    }

    #[test]
    fn any_resolver_or_each_of_some() {
        let [glibc, musl, go] = Resolver::ALL;
        assert_eq!(judge(&[]), Ok(vec![]));
        assert_eq!(judge(&["--judge-as=any"]), Ok(vec![]));
        let two = ["--judge-as=musl,go"];
        assert_eq!(judge(&two), Ok(vec![musl, go]));
        let repeated = ["--judge-as=glibc", "--judge-as=musl"];
        assert_eq!(judge(&repeated), Ok(vec![glibc, musl]));
        assert!(
            judge(&["--judge-as=any,go"])
                .unwrap_err()
                .contains("either any or")
        );
        assert!(
            judge(&["--judge-as=bionic"])
                .unwrap_err()
                .contains("glibc, musl and go")
        );
    }

    #[test]
    fn nameserver_may_have_a_port() {
        let good = [
            ("10.96.0.10", "10.96.0.10:53"),
            ("10.96.0.10:5353", "10.96.0.10:5353"),
            ("fd00::a", "[fd00::a]:53"),
            ("[fd00::a]:5353", "[fd00::a]:5353"),
        ];
        for (text, server) in good {
            assert_eq!(nameserver(text), Ok(server.parse().unwrap()));
        }
        for bad in [
            "",
            "dns.example",
            "10.96.0.10:",
            "10.96.0.10:0",
            "10.96.0",
            "0.0.0.0",
            "[::]:53",
        ] {
            assert!(nameserver(bad).is_err(), "{bad}");
        }
    }
}
