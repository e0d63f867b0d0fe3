//! The program's flags, and the configuration made of them.

mod cluster;
mod detector;
mod member;
mod peers;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use health::SIGNALS;
use health::quorum::Quorum;
use health::report::Pace;
use health::signal::Signal;
use health::threshold::Thresholds;
use karmada_api::condition::GATEWAY_REPORTER_NAMESPACE;
use karmada_runtime::args::{CommonArgs, duration};
use karmada_runtime::client::Source;
use karmada_runtime::program::StartError;
use traffic::ClusterKind;

use self::cluster::ClusterArgs;
use self::detector::DetectorArgs;
pub(crate) use self::member::Member;
use self::member::MemberArgs;
use self::peers::PeersArgs;
use crate::flag_values::{expanded, within_a_day};
use crate::peers::PeerSource;
use crate::probe::{ProbeArgs, Probes};
use crate::report::Subject;

const LONGEST_HOST_NAME: usize = 253;

/// Probes the DNS of a member cluster from this node, or the way from a gateway to each member, and reports their health to the Karmada control plane.
#[derive(clap::Parser, Debug)]
#[command(
    name = crate::identity::NAME,
    version,
    after_help = "cluster-health-agent check FILE says what is wrong with a file of signals, and runs each of its probes once."
)]
pub struct Args {
    /// Kubeconfig of the Karmada control plane.
    #[arg(
        long,
        env = "KARMADA_KUBECONFIG",
        value_name = "PATH",
        alias = "host-kubeconfig"
    )]
    karmada_kubeconfig: PathBuf,
    /// Context in the kubeconfig [default: the current context].
    #[arg(
        long,
        env = "KARMADA_CONTEXT",
        value_name = "NAME",
        alias = "host-context"
    )]
    karmada_context: Option<String>,
    /// Address of the Karmada API server, used instead of looking up the host name in the kubeconfig. May be repeated.
    #[arg(
        long = "karmada-address",
        env = "KARMADA_ADDRESS",
        value_name = "IP",
        value_delimiter = ','
    )]
    karmada_addresses: Vec<IpAddr>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Name of the node this agent runs on [default: the host name].
    #[arg(long, env = "KARMADA_HOST_NAME", value_name = "NAME", value_parser = host_name)]
    host_name: Option<String>,

    /// Duration for which DNS must fail before this node votes unhealthy.
    #[arg(
        long,
        env = "KARMADA_DETECT_FAILURE_THRESHOLD",
        default_value = "30s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-failure-threshold"
    )]
    detect_failure_threshold: Duration,
    /// Duration for which DNS must work before this node votes healthy again.
    #[arg(
        long,
        env = "KARMADA_DETECT_SUCCESS_THRESHOLD",
        default_value = "30s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-success-threshold"
    )]
    detect_success_threshold: Duration,
    /// Upper limit of the success threshold on a node where DNS keeps failing: each failure within 10 minutes of the last doubles the threshold, up to this limit. A limit below the threshold has no effect.
    #[arg(
        long,
        env = "KARMADA_MAX_RECOVERY_HOLD",
        default_value = "5m",
        value_name = "DURATION",
        value_parser = duration
    )]
    max_recovery_hold: Duration,
    #[command(flatten)]
    probe: ProbeArgs,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    member: MemberArgs,
    #[command(flatten)]
    detector: DetectorArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// The checked flags.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) source: Source,
    /// The cluster whose agents are one group, by the name that they tell each other.
    pub(crate) cluster: String,
    pub(crate) subject: Subject,
    pub(crate) cluster_kind: ClusterKind,
    pub(crate) node: String,
    pub(crate) listen_address: SocketAddr,
    pub(crate) leader_elect: bool,
    pub(crate) probes: Probes,
    pub(crate) thresholds: Thresholds,
    pub(crate) pace: Pace,
    pub(crate) quorum: Quorum,
    pub(crate) peers: PeerSource,
    pub(crate) member: Option<Member>,
    pub(crate) node_condition: bool,
    /// Flags that were given and have no effect.
    pub(crate) ignored: Vec<&'static str>,
}

impl Config {
    /// Returns `true` if a part of the program uses the API of the member cluster.
    pub(crate) fn needs_member(&self) -> bool {
        self.node_condition
            || matches!(self.peers, PeerSource::Service(_))
            // A file may ask for the nodes at any time.
            || self.probes.declared.signals_file.is_some()
            || self.probes.needs_member()
    }

    /// Returns the namespace of the Lease of the agents.
    pub(crate) fn lease_namespace(&self) -> String {
        match &self.subject {
            Subject::Own(cluster) => self.cluster_kind.namespace(cluster),
            Subject::Members => GATEWAY_REPORTER_NAMESPACE.to_owned(),
        }
    }
}

impl TryFrom<Args> for Config {
    type Error = StartError;

    fn try_from(args: Args) -> Result<Self, StartError> {
        args.check().map_err(StartError::Config)?;
        let probes = args.probe.probes(|signal| args.detector.enables(signal));
        let period = probes.period;
        let (failure, success) = (args.detect_failure_threshold, args.detect_success_threshold);
        let ignored = args.detector.ignored();
        let mut listen_address = args.common.listen_address;
        if let Some(ip) = args.detector.bind_address {
            listen_address.set_ip(ip);
        }
        if let Some(port) = args.detector.healthz_port {
            listen_address.set_port(port);
        }
        // The kubelet sets this variable in every container.
        let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        let member = args.member.api(in_pod);
        if args.member.node_condition && member.is_none() {
            let problem = "--node-condition needs the API of the member cluster: run in it, or name --member-kubeconfig";
            return Err(StartError::Config(problem.to_owned()));
        }
        let quorum = args.peers.quorum();
        let peers = args.peers.source(listen_address.port(), member.is_some());
        if !args.detector.leader_elect && peers != PeerSource::Alone {
            let problem = "--leader-elect=false is for an agent without peers, since each of several would send requests to all others and write the same conditions: leave it out";
            return Err(StartError::Config(problem.to_owned()));
        }
        let source = Source {
            kubeconfig: Some(args.karmada_kubeconfig),
            context: args.karmada_context,
            addresses: args.karmada_addresses,
            ..Source::default()
        };
        let (cluster_kind, cluster, subject) = if probes.reachability.is_some() {
            let gateway = args.cluster.gateway()?;
            (ClusterKind::Cluster, gateway, Subject::Members)
        } else {
            let (kind, name) = args.cluster.identify(&source)?;
            (kind, name.clone(), Subject::Own(name))
        };
        Ok(Self {
            source,
            node_condition: args.member.node_condition,
            cluster,
            subject,
            cluster_kind,
            node: args
                .host_name
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| gethostname::gethostname().to_string_lossy().into_owned()),
            listen_address,
            leader_elect: args.detector.leader_elect,
            probes,
            thresholds: Thresholds {
                period,
                failure,
                success,
                // Within two periods a round always ends, however short the threshold is.
                silence: failure.max(2 * period),
                max_hold: args.max_recovery_hold,
            },
            pace: Pace {
                period,
                // A restarted agent votes after the longer threshold; its first round and the
                // leader's next request take up to a period each.
                patience: failure.max(success) + 2 * period,
            },
            quorum,
            peers,
            member,
            ignored,
        })
    }
}

impl Args {
    fn check(&self) -> Result<(), String> {
        self.probe.check()?;
        within_a_day("--detect-failure-threshold", self.detect_failure_threshold)?;
        within_a_day("--detect-success-threshold", self.detect_success_threshold)?;
        within_a_day("--max-recovery-hold", self.max_recovery_hold)?;
        let enabled = SIGNALS.iter().filter(|it| self.detector.enables(it));
        let enabled: Vec<&&Signal> = enabled.collect();
        if enabled.is_empty() {
            let names = SIGNALS.map(|signal| signal.name).join(" and ");
            return Err(format!(
                "--detectors disables {names}, the only detectors of this program: leave the flag out, or do not run the agent"
            ));
        }
        if let Some(signal) = enabled.iter().find(|it| !it.is_of_own_cluster()) {
            let name = signal.name;
            if enabled.len() > 1 {
                return Err(format!(
                    "--detectors has {name} beside others, and it is about other clusters: run it in agents of its own, with --detectors={name}"
                ));
            }
            if self.probe.declares() {
                return Err(format!(
                    "--signals-file is for signals of the agent's own cluster, and {name} is about others: leave it out"
                ));
            }
            if self.member.node_condition {
                return Err(format!(
                    "--node-condition is for detectors of the agent's own cluster, and {name} is about others: leave it out"
                ));
            }
        }
        Ok(())
    }
}

/// Parses a host name. An empty one, as an unset variable in a manifest leaves it, counts as absent.
fn host_name(text: &str) -> Result<String, String> {
    expanded(text)?;
    if text.len() > LONGEST_HOST_NAME
        || text.contains(|c: char| c.is_control() || c.is_whitespace())
    {
        Err(format!(
            "a host's name has at most {LONGEST_HOST_NAME} characters and no white space"
        ))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests;
