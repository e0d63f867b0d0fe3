//! The program's flags, and what they come to.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use hickory_proto::rr::Name;
use rules::report::Pace;
use rules::threshold::Thresholds;
use runtime::args::{CommonArgs, duration};
use runtime::client::Source;
use runtime::program::StartError;

use crate::probe::{self, Probe};

/// Karmada's name for what this program is.
const DETECTOR: &str = "coredns-detector";
/// Karmada accepts no longer name of a cluster.
const LONGEST_CLUSTER_NAME: usize = 48;
const LONGEST_HOST_NAME: usize = 253;
/// Without --probe-timeout.
const LONGEST_ROUND: Duration = Duration::from_secs(2);
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_hours(24);

/// Asks the DNS of a member cluster from this node, and reports to the Karmada control plane whether it works.
#[derive(clap::Parser, Debug)]
#[command(name = crate::NAME, version)]
pub(crate) struct Args {
    /// Kubeconfig of the Karmada control plane.
    #[arg(
        long,
        env = "KARMADA_KUBECONFIG",
        value_name = "PATH",
        alias = "host-kubeconfig"
    )]
    karmada_kubeconfig: PathBuf,
    /// Context in the kubeconfig; without it the current one.
    #[arg(
        long,
        env = "KARMADA_CONTEXT",
        value_name = "NAME",
        alias = "host-context"
    )]
    karmada_context: Option<String>,
    /// Name of the Cluster object of this member cluster.
    #[arg(long, env = "KARMADA_CLUSTER_NAME", value_name = "NAME", value_parser = cluster_name)]
    cluster_name: String,
    /// Name of the node this agent runs on; without it the host name.
    #[arg(long, env = "KARMADA_HOST_NAME", value_name = "NAME", value_parser = host_name)]
    host_name: Option<String>,

    /// How often DNS is asked.
    #[arg(
        long,
        env = "KARMADA_DETECT_PERIOD",
        default_value = "5s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-detect-period"
    )]
    detect_period: Duration,
    /// How long DNS must fail until this node votes unhealthy.
    #[arg(
        long,
        env = "KARMADA_DETECT_FAILURE_THRESHOLD",
        default_value = "30s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-failure-threshold"
    )]
    detect_failure_threshold: Duration,
    /// How long DNS must work again until this node votes healthy.
    #[arg(
        long,
        env = "KARMADA_DETECT_SUCCESS_THRESHOLD",
        default_value = "30s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-success-threshold"
    )]
    detect_success_threshold: Duration,
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

    #[command(flatten)]
    detector: DetectorArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// What else Karmada's own detector accepts, so that its manifests work with this program.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of Karmada's own detector")]
struct DetectorArgs {
    /// Report only while holding the lease of this cluster's agents.
    #[arg(long, env = "KARMADA_LEADER_ELECT", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    leader_elect: bool,
    /// Address in place of that of --listen-address.
    #[arg(
        long,
        env = "KARMADA_BIND_ADDRESS",
        value_name = "IP",
        conflicts_with = "listen_address"
    )]
    bind_address: Option<IpAddr>,
    /// Port in place of that of --listen-address.
    #[arg(
        long,
        env = "KARMADA_HEALTHZ_PORT",
        value_name = "PORT",
        conflicts_with = "listen_address"
    )]
    healthz_port: Option<u16>,
    /// What to detect: there is coredns-detector only.
    #[arg(
        long,
        env = "KARMADA_DETECTORS",
        default_value = "*",
        value_name = "NAMES",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    detectors: Vec<String>,
    /// Ignored.
    #[arg(long, env = "KARMADA_COREDNS_STALE_THRESHOLD", value_name = "DURATION")]
    coredns_stale_threshold: Option<String>,
    /// Ignored: the lease lasts 15s.
    #[arg(
        long,
        env = "KARMADA_LEADER_ELECT_LEASE_DURATION",
        value_name = "DURATION"
    )]
    leader_elect_lease_duration: Option<String>,
    /// Ignored: leadership ends 1s before the lease.
    #[arg(
        long,
        env = "KARMADA_LEADER_ELECT_RENEW_DEADLINE",
        value_name = "DURATION"
    )]
    leader_elect_renew_deadline: Option<String>,
    /// Ignored: the lease is renewed every 5s, and 2s after a failure.
    #[arg(
        long,
        env = "KARMADA_LEADER_ELECT_RETRY_PERIOD",
        value_name = "DURATION"
    )]
    leader_elect_retry_period: Option<String>,
    /// Ignored: it is a Lease.
    #[arg(long, env = "KARMADA_LEADER_ELECT_RESOURCE_LOCK", value_name = "KIND")]
    leader_elect_resource_lock: Option<String>,
    /// Ignored: the lease is cluster-health-agent.
    #[arg(long, env = "KARMADA_LEADER_ELECT_RESOURCE_NAME", value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Ignored: the lease is in the execution namespace of the cluster.
    #[arg(
        long,
        env = "KARMADA_LEADER_ELECT_RESOURCE_NAMESPACE",
        value_name = "NAMESPACE"
    )]
    leader_elect_resource_namespace: Option<String>,
}

/// What the flags come to.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) source: Source,
    pub(crate) cluster: String,
    pub(crate) node: String,
    pub(crate) listen_address: SocketAddr,
    pub(crate) leader_elect: bool,
    pub(crate) probe: Probe,
    pub(crate) thresholds: Thresholds,
    pub(crate) pace: Pace,
    /// Flags that were given and mean nothing here.
    pub(crate) ignored: Vec<&'static str>,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

impl TryFrom<Args> for Config {
    type Error = StartError;

    fn try_from(args: Args) -> Result<Self, StartError> {
        args.check().map_err(StartError::Config)?;
        let period = args.detect_period;
        let timeout = args.timeout();
        let (failure, success) = (args.detect_failure_threshold, args.detect_success_threshold);
        let ignored = args.detector.ignored();
        let mut listen_address = args.common.listen_address;
        if let Some(ip) = args.detector.bind_address {
            listen_address.set_ip(ip);
        }
        if let Some(port) = args.detector.healthz_port {
            listen_address.set_port(port);
        }
        let host = || gethostname::gethostname().to_string_lossy().into_owned();
        Ok(Self {
            source: Source {
                kubeconfig: Some(args.karmada_kubeconfig),
                context: args.karmada_context,
            },
            cluster: args.cluster_name,
            node: args
                .host_name
                .filter(|name| !name.is_empty())
                .unwrap_or_else(host),
            listen_address,
            leader_elect: args.detector.leader_elect,
            probe: Probe {
                names: args.probe_names,
                nameservers: args.nameservers,
                period,
                timeout,
                resolv_conf: "/etc/resolv.conf".into(),
            },
            thresholds: Thresholds {
                failure,
                success,
                // Two rounds always come within two periods, however short the threshold.
                silence: failure.max(2 * period),
            },
            pace: Pace {
                period,
                patience: failure.max(success),
            },
            ignored,
        })
    }
}

impl Args {
    fn timeout(&self) -> Duration {
        let default = LONGEST_ROUND.min(self.detect_period * 2 / 5);
        self.probe_timeout.unwrap_or(default)
    }

    fn check(&self) -> Result<(), String> {
        let period = self.detect_period;
        let durations = [
            ("--detect-period", Some(period)),
            (
                "--detect-failure-threshold",
                Some(self.detect_failure_threshold),
            ),
            (
                "--detect-success-threshold",
                Some(self.detect_success_threshold),
            ),
            ("--probe-timeout", self.probe_timeout),
        ];
        for (flag, duration) in durations {
            if duration.is_some_and(|duration| duration > LONGEST) {
                return Err(format!("{flag} is longer than a day: make it shorter"));
            }
        }
        if period < SHORTEST_PERIOD {
            return Err(format!(
                "--detect-period {period:?} is too short: make it at least {SHORTEST_PERIOD:?}"
            ));
        }
        let timeout = self.timeout();
        if timeout >= period {
            return Err(format!(
                "--probe-timeout {timeout:?} must be shorter than --detect-period {period:?}: a round must end before the next begins"
            ));
        }
        if !self.detector.enabled() {
            return Err(format!(
                "--detectors switches {DETECTOR} off, and there is no other: leave the flag out, or do not run the agent"
            ));
        }
        Ok(())
    }
}

impl DetectorArgs {
    /// As Karmada reads the list: the first entry that names the detector counts, then `*`.
    fn enabled(&self) -> bool {
        let names_it = |entry: &&String| entry.strip_prefix('-').unwrap_or(entry) == DETECTOR;
        let named = self.detectors.iter().find(names_it);
        named.map_or_else(
            || self.detectors.iter().any(|entry| entry == "*"),
            |entry| entry == DETECTOR,
        )
    }

    fn ignored(&self) -> Vec<&'static str> {
        let flags = [
            ("--coredns-stale-threshold", &self.coredns_stale_threshold),
            (
                "--leader-elect-lease-duration",
                &self.leader_elect_lease_duration,
            ),
            (
                "--leader-elect-renew-deadline",
                &self.leader_elect_renew_deadline,
            ),
            (
                "--leader-elect-retry-period",
                &self.leader_elect_retry_period,
            ),
            (
                "--leader-elect-resource-lock",
                &self.leader_elect_resource_lock,
            ),
            (
                "--leader-elect-resource-name",
                &self.leader_elect_resource_name,
            ),
            (
                "--leader-elect-resource-namespace",
                &self.leader_elect_resource_namespace,
            ),
        ];
        let given = flags.into_iter().filter(|(_, value)| value.is_some());
        given.map(|(flag, _)| flag).collect()
    }
}

fn cluster_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = text.chars().all(|c| plain(c) || c == '-')
        && text.starts_with(plain)
        && text.ends_with(plain);
    if label && text.len() <= LONGEST_CLUSTER_NAME {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a cluster's name is at most {LONGEST_CLUSTER_NAME} of a-z, 0-9 and -, with - not first or last"
        ))
    }
}

/// Empty, as an unset variable in a manifest leaves it, is as good as left out.
fn host_name(text: &str) -> Result<String, String> {
    if text.len() > LONGEST_HOST_NAME
        || text.contains(|c: char| c.is_control() || c.is_whitespace())
    {
        Err(format!(
            "a host's name has at most {LONGEST_HOST_NAME} characters, none of them a space"
        ))
    } else {
        Ok(text.to_owned())
    }
}

fn probe_name(text: &str) -> Result<Name, String> {
    match Name::from_ascii(text) {
        Ok(name) if name.iter().next().is_some() => Ok(name),
        _ => Err("write a DNS name such as kubernetes.default".to_owned()),
    }
}

#[cfg(test)]
mod tests;
