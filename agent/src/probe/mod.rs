//! The probes of this node, one for each signal.
//!
//! Each has a folder of its own with its flags, its rounds and its metrics, and only this file lists them. A
//! probe waits for its [`Schedule`], asks, and hands over what it observed; the vote that follows from these
//! rounds is made elsewhere, and in the same way for all.

mod dns;
mod schedule;

use std::time::Duration;

use karmada_rules::health::dns::DNS;
use karmada_rules::health::signal::PerSignal;
use karmada_rules::health::threshold::Round;
use karmada_runtime::args::duration;
use karmada_runtime::program::{Program, StartError};
use kube::Client;
use tokio::sync::mpsc;

pub(crate) use self::dns::addresses;
use self::schedule::Schedule;
use crate::args::within_a_day;

const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

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
    #[command(flatten)]
    dns: dns::DnsArgs,
}

/// The checked flags of every probe.
#[derive(Debug)]
pub(crate) struct Probes {
    /// From the start of a round to the start of the next.
    pub(crate) period: Duration,
    pub(crate) dns: dns::DnsProbe,
}

impl ProbeArgs {
    /// # Errors
    /// Returns a message for the user if the flags contradict each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let period = self.detect_period;
        within_a_day("--detect-period", period)?;
        if period < SHORTEST_PERIOD {
            return Err(format!(
                "--detect-period {period:?} is too short: make it at least {SHORTEST_PERIOD:?}"
            ));
        }
        self.dns.check(period)
    }

    pub(crate) fn probes(self) -> Probes {
        Probes {
            period: self.detect_period,
            dns: self.dns.probe(self.detect_period),
        }
    }
}

impl Probes {
    /// Returns `true` if a probe reads the API of the member cluster.
    pub(crate) fn needs_member(&self) -> bool {
        self.dns.direct.needs_member()
    }

    /// Spawns the probes as tasks of `program` and returns their finished rounds.
    ///
    /// # Errors
    /// Returns an error if a probe needs the API of the member cluster and `member` is `None`.
    pub(crate) fn start(
        &self,
        program: &mut Program,
        member: Option<Client>,
    ) -> Result<PerSignal<mpsc::Receiver<Round>>, StartError> {
        // One slot: a probe that is ahead of the vote waits instead of queueing stale rounds.
        let (finished, rounds) = mpsc::channel(1);
        let gate = program.readiness.gate("probe");
        let schedule = Schedule::spread(self.period, finished, gate);
        self.dns.clone().start(program, schedule, member)?;
        Ok(PerSignal::from_iter([(&DNS, rounds)]))
    }
}
