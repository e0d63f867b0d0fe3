//! The probe of a gateway: connects from this node to the backends of each member cluster, once a period.
//!
//! The way that requests take is probed: whether something answers where the gateway's proxies send them. Neither
//! the member's API nor the fleet's takes part in it, so a control plane that is cut off is no outage here.
//!
//! - Which addresses: [`addresses`], from a flag or from the slices that the ingress-controller keeps in the gateway.
//! - The request, and the responses that count as reached: [`exchange`].
//! - How many connections, until when, and the observation: [`round`].

mod addresses;
mod args;
mod exchange;
mod round;

use karmada_runtime::program::{Program, StartError};
use kube::Client;

pub(crate) use self::args::{ReachabilityArgs, ReachabilityProbe};
use self::round::{Prober, metrics};
use super::schedule::Schedule;
use crate::vote::ByCluster;

impl ReachabilityProbe {
    /// Spawns the probe as a task of `program`.
    ///
    /// # Errors
    /// Returns an error if the addresses must be read and there is no API of the `gateway`.
    pub(super) fn start(
        &self,
        program: &mut Program,
        schedule: Schedule<ByCluster>,
        gateway: Option<Client>,
    ) -> Result<(), StartError> {
        let prober = Prober {
            addresses: addresses::start(program, &self.addresses, gateway)?,
            request: self.request.clone(),
            timeout: self.timeout,
            metrics: metrics(&mut program.registry),
        };
        program.run_until_stopped("reachability", prober.run(schedule));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
