//! Who the other agents of this cluster are, and how many of them it takes.

use std::net::{IpAddr, SocketAddr};

use http::Uri;
use karmada_rules::health::quorum::Quorum;

use crate::peers::{List, Others, Peer, Service};

/// The agents' Service in `manifests/member`.
const SERVICE: &str = crate::NAME;

/// Where the other agents of this cluster are, and how many of them must agree.
#[derive(clap::Args, Debug)]
pub(super) struct PeersArgs {
    /// Address of another agent. May be repeated: name all others.
    #[arg(
        long = "peer",
        env = "KARMADA_PEER",
        value_name = "IP[:PORT]|URL",
        value_delimiter = ',',
        value_parser = address,
        conflicts_with = "peer_service"
    )]
    peers: Vec<Address>,
    /// Headless Service of the agents, whose EndpointSlices name the others; with a member API and no --peer, cluster-health-agent.
    #[arg(
        long,
        env = "KARMADA_PEER_SERVICE",
        value_name = "[NAMESPACE/]NAME",
        value_parser = service
    )]
    peer_service: Option<Service>,
    /// How many percent of the known agents must vote for a verdict.
    #[arg(
        long,
        env = "KARMADA_MIN_ANSWERING",
        default_value = "50%",
        value_name = "PERCENT",
        value_parser = |text: &str| percent(text, 1)
    )]
    min_answering: u8,
    /// How many percent of the votes must be unhealthy to make the verdict so; it is healthy again when at most half are.
    #[arg(
        long,
        env = "KARMADA_FAILURE_QUORUM",
        default_value = "80%",
        value_name = "PERCENT",
        value_parser = |text: &str| percent(text, 51)
    )]
    failure_quorum: u8,
}

/// Where one agent is; without a port, at that of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: Option<u16>,
}

impl PeersArgs {
    pub(super) fn quorum(&self) -> Quorum {
        Quorum {
            min_answering: self.min_answering,
            failure: self.failure_quorum,
        }
    }

    /// The others, for an agent that listens on `port` and may have the API of its cluster.
    pub(super) fn others(self, port: u16, has_member_api: bool) -> Others {
        let own_service = || Service {
            namespace: None,
            name: SERVICE.to_owned(),
        };
        if !self.peers.is_empty() {
            let peers = self.peers.into_iter().map(|address| {
                let address = format!("{}:{}", address.host, address.port.unwrap_or(port));
                let peer = Peer {
                    node: None,
                    addresses: vec![address.clone()],
                };
                (address, peer)
            });
            return Others::Fixed(peers.collect::<List>());
        }
        match self.peer_service {
            Some(service) => Others::Listed(service),
            None if has_member_api => Others::Listed(own_service()),
            None => Others::Alone,
        }
    }
}

fn address(text: &str) -> Result<Address, String> {
    const HELP: &str =
        "write an address such as 10.0.0.7, 10.0.0.7:8080, [fd00::7]:8080 or http://10.0.0.7:8080";
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Address {
            host: host(address.ip()),
            port: Some(address.port()),
        });
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(Address {
            host: host(ip),
            port: None,
        });
    }
    let uri: Uri = text.parse().map_err(|_| HELP.to_owned())?;
    let plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/");
    match uri.host().filter(|host| !host.is_empty()) {
        Some(host) if plain && uri.query().is_none() => Ok(Address {
            host: host.to_owned(),
            port: Some(uri.port_u16().unwrap_or(80)),
        }),
        _ => Err(HELP.to_owned()),
    }
}

/// An address as it stands before a port.
fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn service(text: &str) -> Result<Service, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    let label = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=63).contains(&text.len()) && text.chars().all(plain)
    };
    if label(name) && namespace.is_none_or(label) {
        Ok(Service {
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
        })
    } else {
        Err("write the name of a Service, or NAMESPACE/NAME".to_owned())
    }
}

fn percent(text: &str, least: u8) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(percent) if (least..=100).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "write a whole number of percent from {least}% to 100%"
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser, Debug)]
    struct Program {
        #[command(flatten)]
        peers: PeersArgs,
    }

    fn parse(flags: &[&str]) -> Result<PeersArgs, clap::Error> {
        let args = std::iter::once("agent").chain(flags.iter().copied());
        Program::try_parse_from(args).map(|program| program.peers)
    }

    #[test]
    fn peers_are_addresses_with_our_port_unless_they_name_one() {
        let cases = [
            ("--peer=10.0.0.7", "10.0.0.7:8080"),
            ("--peer=10.0.0.7:9090", "10.0.0.7:9090"),
            ("--peer=fd00::7", "[fd00::7]:8080"),
            ("--peer=[fd00::7]", "[fd00::7]:8080"),
            ("--peer=[fd00::7]:9090", "[fd00::7]:9090"),
            ("--peer=http://agent-2:9090", "agent-2:9090"),
            ("--peer=http://10.0.0.7/", "10.0.0.7:80"),
        ];
        for (flag, expected) in cases {
            let Others::Fixed(list) = parse(&[flag]).unwrap().others(8080, true) else {
                panic!("{flag}: not a list");
            };
            let addresses: Vec<_> = list.into_values().flat_map(|peer| peer.addresses).collect();
            assert_eq!(addresses, [expected], "{flag}");
        }
        for flag in [
            "--peer=",
            "--peer=agent-2",
            "--peer=https://10.0.0.7",
            "--peer=http://10.0.0.7/x",
        ] {
            parse(&[flag]).unwrap_err();
        }
    }

    #[test]
    fn the_service_is_the_default_where_the_cluster_has_an_api() {
        let own = Service {
            namespace: None,
            name: "cluster-health-agent".to_owned(),
        };
        let other = Service {
            namespace: Some("ns".to_owned()),
            name: "agents".to_owned(),
        };
        let others = |flags: &[&str], api| parse(flags).unwrap().others(8080, api);
        assert_eq!(others(&[], true), Others::Listed(own));
        assert_eq!(others(&[], false), Others::Alone);
        assert_eq!(
            others(&["--peer-service=ns/agents"], true),
            Others::Listed(other)
        );
        parse(&["--peer-service=ns/agents", "--peer=10.0.0.7"]).unwrap_err();
        parse(&["--peer-service=/agents"]).unwrap_err();
        parse(&["--peer-service=a/b/c"]).unwrap_err();
    }

    #[test]
    fn a_quorum_is_in_percent_and_a_failure_takes_more_than_half() {
        let quorum = parse(&["--min-answering=40", "--failure-quorum=90%"])
            .unwrap()
            .quorum();
        assert_eq!(
            quorum,
            Quorum {
                min_answering: 40,
                failure: 90
            }
        );
        for flag in [
            "--min-answering=0",
            "--failure-quorum=50%",
            "--failure-quorum=101%",
            "--min-answering=x",
        ] {
            parse(&[flag]).unwrap_err();
        }
    }
}
