//! The flags for the other agents of this cluster and the quorum.

use std::net::{IpAddr, SocketAddr};

use health::quorum::Quorum;
use http::Uri;

use crate::flag_values::{port_of, service};
use crate::peers::{Peer, PeerList, PeerSource, Service};

/// The name of the agents' Service in `manifests/member`.
const SERVICE: &str = crate::identity::NAME;

/// The flags for the other agents of this cluster and the quorum.
#[derive(clap::Args, Debug)]
pub(super) struct PeersArgs {
    /// Address of another agent. Repeat the flag for every other agent.
    #[arg(
        long = "peer",
        env = "KARMADA_PEER",
        value_name = "IP[:PORT]|URL",
        value_delimiter = ',',
        value_parser = address,
        conflicts_with = "peer_service"
    )]
    peers: Vec<Address>,
    /// Headless Service of the agents, whose EndpointSlices list the other agents [default: cluster-health-agent, if there is a member API and no --peer].
    #[arg(
        long,
        env = "KARMADA_PEER_SERVICE",
        value_name = "[NAMESPACE/]NAME",
        value_parser = service
    )]
    peer_service: Option<Service>,
    /// Percentage of the known agents that must vote for a verdict.
    #[arg(
        long,
        env = "KARMADA_MIN_ANSWERING",
        default_value = "50%",
        value_name = "PERCENT",
        value_parser = |text: &str| percent(text, 1)
    )]
    min_answering: u8,
    /// Percentage of the votes that must be unhealthy for an unhealthy verdict; it becomes healthy again when at most half are.
    #[arg(
        long,
        env = "KARMADA_FAILURE_QUORUM",
        default_value = "80%",
        value_name = "PERCENT",
        // With half of the votes or less, both verdicts could have their quorum at once.
        value_parser = |text: &str| percent(text, 51)
    )]
    failure_quorum: u8,
}

/// An agent's address. Without a port, the agent listens on the same port as this one.
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

    /// Returns the source of the other agents. `port` is the port this agent listens on.
    pub(super) fn source(self, port: u16, has_member_api: bool) -> PeerSource {
        if !self.peers.is_empty() {
            let peers = self.peers.into_iter().map(|address| {
                let address = format!("{}:{}", address.host, address.port.unwrap_or(port));
                let peer = Peer {
                    node: None,
                    addresses: vec![address.clone()],
                };
                (address, peer)
            });
            return PeerSource::Fixed(peers.collect::<PeerList>());
        }
        match self.peer_service {
            Some(service) => PeerSource::Service(service),
            None if has_member_api => PeerSource::Service(Service {
                namespace: None,
                name: SERVICE.to_owned(),
            }),
            None => PeerSource::Alone,
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
    // An IPv6 address may have brackets even without a port.
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(Address {
            host: host(ip),
            port: None,
        });
    }
    let uri: Uri = text.parse().map_err(|_| HELP.to_owned())?;
    // Agents serve plain HTTP at a fixed path, so anything else in a URL is a mistake.
    let plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/");
    let authority = uri.authority().filter(|it| !it.host().is_empty());
    let port = authority.and_then(|authority| port_of(authority, 80));
    match authority.zip(port) {
        Some((authority, port)) if plain && uri.query().is_none() => Ok(Address {
            host: authority.host().to_owned(),
            port: Some(port),
        }),
        _ => Err(HELP.to_owned()),
    }
}

/// Formats an address for use before a port.
fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
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
            let PeerSource::Fixed(list) = parse(&[flag]).unwrap().source(8080, true) else {
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
            "--peer=http://10.0.0.7:99999",
            "--peer=http://agent-2:admin",
        ] {
            parse(&[flag]).unwrap_err();
        }
    }

    #[test]
    fn only_peers_given_by_name_are_looked_up() {
        let flags = [
            "--peer=10.0.0.7",
            "--peer=[fd00::7]:9090",
            "--peer=http://agent-2:9090",
            "--peer=http://agent-3.example/",
        ];
        let source = parse(&flags).unwrap().source(8080, true);
        assert_eq!(source.names(), ["agent-2", "agent-3.example"]);
        assert!(PeerSource::Alone.names().is_empty());
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
        let source = |flags: &[&str], api| parse(flags).unwrap().source(8080, api);
        assert_eq!(source(&[], true), PeerSource::Service(own));
        assert_eq!(source(&[], false), PeerSource::Alone);
        assert_eq!(
            source(&["--peer-service=ns/agents"], true),
            PeerSource::Service(other)
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
