//! How DNS is asked.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_proto::rr::Name;
use karmada_runtime::args::duration;

use super::within_a_day;
use crate::probe::{self, Origin, Past, Probe};

/// Without --probe-timeout.
const LONGEST_ROUND: Duration = Duration::from_secs(2);
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
/// Says in place of an address that it is to be found.
const AUTO: &str = "auto";

/// What is asked, of whom, how often and how long.
#[derive(clap::Args, Debug)]
pub(super) struct ProbeArgs {
    /// How often DNS is asked.
    #[arg(
        long,
        env = "KARMADA_DETECT_PERIOD",
        default_value = "5s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-detect-period"
    )]
    pub(super) detect_period: Duration,
    /// Name that must have an address, as a pod would write it. May be repeated: all of them must.
    #[arg(
        long = "probe-name",
        env = "KARMADA_PROBE_NAME",
        default_value = "kubernetes.default",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = probe_name
    )]
    probe_names: Vec<Name>,
    /// The longest that asking takes; without it 2s, or 0.4 of the period if that is less.
    #[arg(long, env = "KARMADA_PROBE_TIMEOUT", value_name = "DURATION", value_parser = duration)]
    probe_timeout: Option<Duration>,
    /// DNS server asked in place of those of /etc/resolv.conf. May be repeated.
    #[arg(
        long = "nameserver",
        env = "KARMADA_NAMESERVER",
        value_name = "IP[:PORT]",
        value_delimiter = ',',
        value_parser = probe::nameserver
    )]
    nameservers: Vec<SocketAddr>,
    /// The address that a probe name must have; any other is a failure (mismatch). May be repeated: every address of every probe name must be among them.
    #[arg(
        long = "expect-address",
        env = "KARMADA_EXPECT_ADDRESS",
        value_name = "IP",
        value_delimiter = ','
    )]
    expected: Vec<IpAddr>,
    /// Ask each time also for a random name that must not exist, so that no cache answers for a dead server.
    #[arg(long, env = "KARMADA_PROBE_UNCACHED")]
    probe_uncached: bool,
    /// Ask also the DNS Service's address, to tell where a fault is; without a value, or with auto, the member cluster's API gives the address.
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
    /// Ask also each DNS pod, to tell where a fault is; without a value, or with auto, the member cluster's API gives the addresses.
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
    /// The Service of the cluster's DNS, whose addresses are found.
    #[arg(
        long,
        env = "KARMADA_DNS_SERVICE",
        default_value = "kube-system/kube-dns",
        value_name = "NAMESPACE/NAME",
        value_parser = service
    )]
    dns_service: (String, String),
}

/// A server to ask: given, or to be found.
type Server = Option<SocketAddr>;

impl ProbeArgs {
    pub(super) fn check(&self) -> Result<(), String> {
        let period = self.detect_period;
        within_a_day("--detect-period", period)?;
        if period < SHORTEST_PERIOD {
            return Err(format!(
                "--detect-period {period:?} is too short: make it at least {SHORTEST_PERIOD:?}"
            ));
        }
        let timeout = self.timeout();
        within_a_day("--probe-timeout", timeout)?;
        if timeout >= period {
            return Err(format!(
                "--probe-timeout {timeout:?} must be shorter than --detect-period {period:?}: a round must end before the next begins"
            ));
        }
        if self.probe_endpoints.len() > 1 && self.probe_endpoints.contains(&None) {
            return Err(format!(
                "--probe-endpoints has {AUTO} among addresses: write either {AUTO} or the addresses"
            ));
        }
        Ok(())
    }

    pub(super) fn probe(&self) -> Probe {
        Probe {
            names: self.probe_names.clone(),
            expected: self.expected.clone(),
            uncached: self.probe_uncached,
            nameservers: self.nameservers.clone(),
            period: self.detect_period,
            timeout: self.timeout(),
            resolv_conf: "/etc/resolv.conf".into(),
        }
    }

    pub(super) fn past(self) -> Past {
        Past {
            service: origin(self.probe_kube_dns.as_slice()),
            pods: origin(&self.probe_endpoints),
            dns_service: self.dns_service,
        }
    }

    fn timeout(&self) -> Duration {
        let default = LONGEST_ROUND.min(self.detect_period * 2 / 5);
        self.probe_timeout.unwrap_or(default)
    }
}

fn origin(servers: &[Server]) -> Origin {
    if servers.is_empty() {
        return Origin::Nowhere;
    }
    let given: Option<Vec<_>> = servers.iter().copied().collect();
    given.map_or(Origin::Found, Origin::Given)
}

fn server(text: &str) -> Result<Server, String> {
    if text == AUTO {
        return Ok(None);
    }
    probe::nameserver(text).map(Some)
}

fn service(text: &str) -> Result<(String, String), String> {
    let label = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !text.is_empty() && text.len() < 64 && text.chars().all(plain)
    };
    match text.split_once('/') {
        Some((namespace, name)) if label(namespace) && label(name) => {
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
        Ok(name) if name.iter().next().is_some() => Ok(name),
        _ => Err("write a DNS name such as kubernetes.default".to_owned()),
    }
}
