//! The flags of the probe of a gateway, and the settings made of them.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::args::cluster_name;

use super::addresses::{AddressSource, Addresses};
use super::exchange::HttpRequest;

/// The flags of the probe of a gateway.
#[derive(clap::Args, Debug)]
pub(crate) struct ReachabilityArgs {
    /// Address of a member cluster to connect to, if --detectors has reachability. May be repeated [default: those in the EndpointSlices that the ingress-controller keeps in the gateway cluster].
    #[arg(
        long = "reachability-address",
        env = "KARMADA_REACHABILITY_ADDRESS",
        value_name = "CLUSTER=IP:PORT",
        value_delimiter = ',',
        value_parser = member_address
    )]
    reachability_addresses: Vec<(Arc<str>, SocketAddr)>,
    /// Host and path to request of each address, if --detectors has reachability: a cluster is reached if the status of a response is below 500 [default: nothing is requested, and a connection, even a refused one, is enough].
    #[arg(long, env = "KARMADA_REACHABILITY_HTTP", value_name = "HOST/PATH")]
    reachability_http: Option<HttpRequest>,
}

/// The settings of the probe.
#[derive(Clone, Debug)]
pub(crate) struct ReachabilityProbe {
    pub(crate) addresses: AddressSource,
    /// The request that must have a response.
    pub(super) request: Option<HttpRequest>,
    /// The deadline of a round, from its start.
    pub(super) timeout: Duration,
}

impl ReachabilityArgs {
    pub(in crate::probe) fn probe(self, timeout: Duration) -> ReachabilityProbe {
        let mut given = Addresses::new();
        for (cluster, address) in self.reachability_addresses {
            given.entry(cluster).or_default().insert(address);
        }
        ReachabilityProbe {
            addresses: if given.is_empty() {
                AddressSource::Slices
            } else {
                AddressSource::Given(given)
            },
            request: self.reachability_http,
            timeout,
        }
    }
}

fn member_address(text: &str) -> Result<(Arc<str>, SocketAddr), String> {
    let (cluster, address) = text
        .split_once('=')
        .ok_or_else(|| "write CLUSTER=IP:PORT, such as member1=10.0.0.7:443".to_owned())?;
    let address = address
        .parse()
        .map_err(|_| format!("{address:?} is no address with a port, such as 10.0.0.7:443"))?;
    Ok((cluster_name(cluster)?.into(), address))
}

impl FromStr for HttpRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, path) = text.split_once('/').unwrap_or((text, ""));
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        if host.is_empty() || host.ends_with(':') || !is_plain {
            return Err(
                "write a host and a path without a scheme, such as shop.example.com/healthz"
                    .to_owned(),
            );
        }
        Ok(Self {
            host: host.to_owned(),
            path: format!("/{path}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request is a host and a path, and an address has a cluster.
    #[test]
    fn flags_are_checked() {
        for (text, host, path) in [
            (
                "shop.example.com/healthz?a=b",
                "shop.example.com",
                "/healthz?a=b",
            ),
            ("shop.example.com", "shop.example.com", "/"),
            ("shop:8080/", "shop:8080", "/"),
        ] {
            let request: HttpRequest = text.parse().unwrap();
            assert_eq!((&*request.host, &*request.path), (host, path));
        }
        for text in [
            "",
            "/healthz",
            "http://shop/healthz",
            "shop/a b",
            "shop/\r\nX: y",
        ] {
            assert!(text.parse::<HttpRequest>().is_err(), "{text}");
        }
        let (cluster, address) = member_address("member1=[fd00::7]:443").unwrap();
        assert_eq!((&*cluster, address.port()), ("member1", 443));
        for text in [
            "10.0.0.7:443",
            "member1=10.0.0.7",
            "member1=shop:443",
            "A=10.0.0.7:443",
        ] {
            assert!(member_address(text).is_err(), "{text}");
        }
    }
}
