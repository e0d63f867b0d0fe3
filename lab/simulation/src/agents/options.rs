//! The options of a simulation, and the patience of its waits.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lab_parts::dns::KUBERNETES;
use lab_parts::thresholds::ProbeTiming;

use super::apis::CLUSTER;

/// The timeout of every wait, without thresholds.
pub(super) const TIMEOUT: Duration = Duration::from_mins(2);
/// The interval at which something that cannot be watched is polled.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// Options of a simulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of nodes.
    pub nodes: u16,
    /// The probe period of each agent.
    pub period: Duration,
    /// The time for which DNS must fail, or work again, before a node's vote changes.
    pub threshold: Duration,
    /// The time for which the cluster is observed at rest.
    pub rest: Duration,
    /// The binary of the leader.
    pub binary: PathBuf,
}

impl Options {
    /// Returns the flags that all agents share.
    pub(super) fn flags(&self, dns: SocketAddr) -> Vec<String> {
        let thresholds = ProbeTiming {
            period: self.period,
            threshold: self.threshold,
        };
        let mut flags = vec![
            format!("--cluster-name={CLUSTER}"),
            format!("--nameserver={dns}"),
            // A fully qualified name, to which this machine's search list does not apply.
            format!("--probe-name={KUBERNETES}"),
        ];
        flags.extend(thresholds.flags());
        flags
    }
}
