//! The DNS probe: resolves names as a pod of this node would, once a period.

mod args;
mod direct_checks;
mod exchange;
mod lookup;
mod metrics;
mod outage;
mod right;
mod round;

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use fastrand::Rng;
use health::diagnosis::Transport;
use hickory_proto::op::Query;
use karmada_runtime::program::{Program, StartError};
use kube::Client;
use tokio::time::Instant;

pub(crate) use self::args::{DnsArgs, DnsProbe};
pub(in crate::probe) use self::exchange::{Response, exchange as ask};
use self::lookup::DnsClient;
use self::metrics::DnsMetrics;
use self::round::Prober;
use super::schedule::Schedule;

impl DnsProbe {
    /// Spawns the probe as a task of `program`.
    ///
    /// # Errors
    /// Returns an error if servers must be discovered and `member` is `None`.
    pub(super) fn start(
        self,
        program: &mut Program,
        schedule: Schedule,
        member: Option<Client>,
    ) -> Result<(), StartError> {
        let direct = direct_checks::start(program, self.direct.clone(), member)?;
        let metrics = DnsMetrics::register(&mut program.registry);
        let prober = Prober::new(self, Network, direct, metrics, Rng::new());
        program.run_until_stopped("probe", prober.run(schedule));
        Ok(())
    }
}

/// Queries real servers.
#[derive(Debug)]
struct Network;

impl DnsClient for Network {
    fn query(
        &self,
        server: SocketAddr,
        transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> impl Future<Output = io::Result<Response>> + Send {
        exchange::exchange(server, transport, query, deadline)
    }
}

#[cfg(test)]
mod tests;
