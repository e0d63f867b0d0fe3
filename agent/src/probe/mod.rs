//! The probes of this node, one for each signal.
//!
//! Each has a folder of its own with its flags and its rounds, and only this file lists them. Those that users
//! declare in a file have [`declared`] together. A probe waits for its [`Schedule`], asks, and hands over its observation; the
//! vote that follows from these rounds is made elsewhere, and in the same way for all.

mod declared;
mod dns;
mod metrics;
mod reachability;
mod schedule;
mod service_network;

use std::time::Duration;

use health::dns::DNS;
use health::reachability::REACHABILITY;
use health::service_network::SERVICE_NETWORK;
use health::signal::Signal;
use health::threshold::Round;
use karmada_runtime::args::duration;
use karmada_runtime::program::{Program, StartError};
use kube::Client;
use tokio::sync::mpsc;

use self::declared::DeclaredArgs;
pub use self::declared::check::check_if_asked;
pub(crate) use self::declared::{Defaults, Shared};
use self::schedule::Schedule;
use crate::flag_values::within_a_day;
use crate::vote::Rounds;

const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
/// The default of `--probe-timeout`, unless the period is short.
const LONGEST_ROUND: Duration = Duration::from_secs(2);

/// The flags of every probe.
#[derive(clap::Args, Debug)]
pub(crate) struct ProbeArgs {
    /// Time from the start of one probe round to the start of the next.
    #[arg(
        long,
        env = "KARMADA_DETECT_PERIOD",
        default_value = "5s",
        value_name = "DURATION",
        value_parser = duration,
        alias = "coredns-detect-period"
    )]
    detect_period: Duration,
    /// Deadline of a probe round, from its start [default: 2s, or 0.4 of the period if that is less].
    #[arg(long, env = "KARMADA_PROBE_TIMEOUT", value_name = "DURATION", value_parser = duration)]
    probe_timeout: Option<Duration>,
    #[command(flatten)]
    dns: dns::DnsArgs,
    #[command(flatten)]
    service_network: service_network::ServiceNetworkArgs,
    #[command(flatten)]
    reachability: reachability::ReachabilityArgs,
    #[command(flatten)]
    declared: DeclaredArgs,
}

/// The checked flags of the probes to run.
#[derive(Debug)]
pub(crate) struct Probes {
    /// From the start of a round to the start of the next.
    pub(crate) period: Duration,
    /// The deadline of a round, from its start.
    pub(crate) timeout: Duration,
    pub(crate) dns: Option<dns::DnsProbe>,
    pub(crate) service_network: Option<service_network::ServiceNetworkProbe>,
    /// Runs alone, since it is about other clusters.
    pub(crate) reachability: Option<reachability::ReachabilityProbe>,
    /// The signals that users declare, which come and go.
    pub(crate) declared: DeclaredArgs,
}

impl ProbeArgs {
    /// # Errors
    /// Returns a message for the user if the flags contradict each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (period, timeout) = (self.detect_period, self.timeout());
        within_a_day("--detect-period", period)?;
        if period < SHORTEST_PERIOD {
            return Err(format!(
                "--detect-period {period:?} is too short: make it at least {SHORTEST_PERIOD:?}"
            ));
        }
        within_a_day("--probe-timeout", timeout)?;
        if timeout >= period {
            return Err(format!(
                "--probe-timeout {timeout:?} must be shorter than --detect-period {period:?}: a round must end before the next begins"
            ));
        }
        self.dns.check()
    }

    /// Returns the probes of those signals that are enabled.
    pub(crate) fn probes(self, enabled: impl Fn(&Signal) -> bool) -> Probes {
        let timeout = self.timeout();
        let Self {
            dns,
            service_network,
            reachability,
            declared,
            ..
        } = self;
        Probes {
            period: self.detect_period,
            timeout,
            declared,
            dns: enabled(&DNS).then(|| dns.probe(timeout)),
            service_network: enabled(&SERVICE_NETWORK).then(|| service_network.probe(timeout)),
            reachability: enabled(&REACHABILITY).then(|| reachability.probe(timeout)),
        }
    }

    /// Returns `true` if users declare signals.
    pub(crate) fn declares(&self) -> bool {
        self.declared.signals_file.is_some()
    }

    fn timeout(&self) -> Duration {
        let default = LONGEST_ROUND.min(self.detect_period * 2 / 5);
        self.probe_timeout.unwrap_or(default)
    }
}

impl Probes {
    /// Returns `true` if a probe reads the API of the member cluster.
    pub(crate) fn needs_member(&self) -> bool {
        let dns = self.dns.as_ref();
        let service_network = self.service_network.as_ref();
        let reachability = self.reachability.as_ref();
        dns.is_some_and(|probe| probe.direct.needs_member())
            || service_network.is_some_and(|probe| probe.address.needs_member())
            || reachability.is_some_and(|probe| probe.addresses.needs_member())
    }

    /// Spawns the probes as tasks of `program` and returns the finished rounds of each.
    ///
    /// # Errors
    /// Returns an error if a probe needs the API of the member cluster and `member` is `None`.
    pub(crate) fn start(
        &self,
        program: &mut Program,
        cluster: &str,
        member: Option<Client>,
    ) -> Result<Rounds, StartError> {
        if let Some(probe) = &self.reachability {
            let (schedule, finished) = self.schedule(program, REACHABILITY.name);
            probe.start(program, schedule, member)?;
            return Ok(Rounds::Others(&REACHABILITY, finished));
        }
        let mut rounds = Vec::new();
        if let Some(probe) = &self.dns {
            let (schedule, finished) = self.schedule(program, "probe");
            probe.clone().start(program, schedule, member.clone())?;
            rounds.push((&DNS, finished));
        }
        if let Some(probe) = &self.service_network {
            let (schedule, finished) = self.schedule(program, SERVICE_NETWORK.name);
            probe.start(program, schedule, cluster, member)?;
            rounds.push((&SERVICE_NETWORK, finished));
        }
        Ok(Rounds::Own(rounds.into_iter().collect()))
    }

    /// Returns the schedule of a probe, whose first round opens `gate`, and its finished rounds.
    fn schedule<O>(
        &self,
        program: &Program,
        gate: &'static str,
    ) -> (Schedule<O>, mpsc::Receiver<Round<O>>) {
        // One slot: a probe that is ahead of the vote waits instead of queueing stale rounds.
        let (finished, rounds) = mpsc::channel(1);
        let gate = program.readiness.gate(gate);
        (Schedule::spread(self.period, finished, gate), rounds)
    }
}
