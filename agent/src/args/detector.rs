//! The flags of Karmada's own detector.

mod klog;

use std::net::IpAddr;

use clap::ArgAction;
use health::dns::DNS;
use health::signal::Signal;

use self::klog::KlogArgs;

/// Further flags of Karmada's own detector, accepted so that its manifests work with this program.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of Karmada's own detector")]
pub(super) struct DetectorArgs {
    /// Write conditions only while holding the lease of this cluster's agents. Only an agent without peers can do without.
    // As Go's flag package parses booleans: alone it means true, and a value needs `=`.
    #[arg(long, env = "KARMADA_LEADER_ELECT", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(super) leader_elect: bool,
    /// Overrides the address in --listen-address.
    #[arg(
        long,
        env = "KARMADA_BIND_ADDRESS",
        value_name = "IP",
        conflicts_with = "listen_address"
    )]
    pub(super) bind_address: Option<IpAddr>,
    /// Overrides the port in --listen-address.
    #[arg(
        long,
        env = "KARMADA_HEALTHZ_PORT",
        value_name = "PORT",
        conflicts_with = "listen_address"
    )]
    pub(super) healthz_port: Option<u16>,
    /// Detectors to run: coredns-detector, for which * stands too, and service-network; or, on the nodes of a gateway, reachability alone.
    // An entry such as `-coredns-detector` disables a detector, hence the hyphens.
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
    /// Ignored: the lock is always a Lease.
    #[arg(long, env = "KARMADA_LEADER_ELECT_RESOURCE_LOCK", value_name = "KIND")]
    leader_elect_resource_lock: Option<String>,
    /// Ignored: the Lease is named cluster-health-agent.
    #[arg(long, env = "KARMADA_LEADER_ELECT_RESOURCE_NAME", value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Ignored: the Lease is in the cluster's execution namespace.
    #[arg(
        long,
        env = "KARMADA_LEADER_ELECT_RESOURCE_NAMESPACE",
        value_name = "NAMESPACE"
    )]
    leader_elect_resource_namespace: Option<String>,
    #[command(flatten)]
    klog: KlogArgs,
}

impl DetectorArgs {
    /// Returns `true` if the detector of `signal` is to run. As in Karmada, the first entry that names it
    /// decides, then `*`, which stands for those that are on by default: for DNS.
    pub(super) fn enables(&self, signal: &Signal) -> bool {
        let mut entries = self.detectors.iter();
        let named = entries.find(|entry| entry.strip_prefix('-').unwrap_or(entry) == signal.name);
        named.map_or_else(
            || signal == &DNS && self.detectors.iter().any(|entry| entry == "*"),
            |entry| entry == signal.name,
        )
    }

    /// Returns the flags that were given and have no effect, without hyphens before them.
    pub(super) fn ignored(&self) -> Vec<&'static str> {
        let flags = [
            ("coredns-stale-threshold", &self.coredns_stale_threshold),
            (
                "leader-elect-lease-duration",
                &self.leader_elect_lease_duration,
            ),
            (
                "leader-elect-renew-deadline",
                &self.leader_elect_renew_deadline,
            ),
            ("leader-elect-retry-period", &self.leader_elect_retry_period),
            (
                "leader-elect-resource-lock",
                &self.leader_elect_resource_lock,
            ),
            (
                "leader-elect-resource-name",
                &self.leader_elect_resource_name,
            ),
            (
                "leader-elect-resource-namespace",
                &self.leader_elect_resource_namespace,
            ),
        ];
        let given = flags.into_iter().filter(|(_, value)| value.is_some());
        given
            .map(|(flag, _)| flag)
            .chain(self.klog.given())
            .collect()
    }
}
