//! The probe of the Service network: connects to the cluster IP of the agents' Service, once a period.
//!
//! It probes the work of kube-proxy, or of its replacement: that this node translates a cluster IP
//! into the address of an endpoint, on whichever node that is. The member's API takes no part in it.
//!
//! - Which address: [`address`], from a flag or from the Service.
//! - The request, and the answers that count as a response: [`exchange`].
//! - How many connections, until when, and the observation: [`round`].

mod address;
mod args;
mod exchange;
mod round;

use karmada_runtime::program::{Program, StartError};
use kube::Client;

pub(crate) use self::args::{ServiceNetworkArgs, ServiceNetworkProbe};
use self::round::{Prober, metrics};
use super::schedule::Schedule;

impl ServiceNetworkProbe {
    /// Spawns the probe as a task of `program`. Agents of `cluster` respond to it.
    ///
    /// # Errors
    /// Returns an error if the address must be read and `member` is `None`.
    pub(super) fn start(
        &self,
        program: &mut Program,
        schedule: Schedule,
        cluster: &str,
        member: Option<Client>,
    ) -> Result<(), StartError> {
        let prober = Prober {
            address: address::start(program, &self.address, member)?,
            cluster: cluster.to_owned(),
            timeout: self.timeout,
            metrics: metrics(&mut program.registry),
        };
        program.run_until_stopped("service-network", prober.run(schedule));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
