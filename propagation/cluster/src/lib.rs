//! `cluster-controller`: keeps the Clusters of a fleet without Karmada. It makes their execution namespaces,
//! asks their APIs for health, kinds and capacity, and taints those that are not ready or have a condition that a flag
//! names.

mod args;
mod events;
mod fleet;
mod identity;
mod member;
mod metrics;
mod probe;
mod reason;
mod reconcile;
mod stored;
mod usage;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use karmada_runtime::events::EventRecorder;
use karmada_runtime::members::{self, Background, MemberQueues};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteMode;
use karmada_runtime::{controller, lease};
use kube::Client;

pub use crate::args::Args;
use crate::fleet::Fleet;
pub use crate::identity::{IDENTITY, NAME};
use crate::metrics::Reachable;
use crate::probe::Prober;
pub use crate::reason::Reason;
use crate::reconcile::Reconciler;
use crate::watch::SharedIndex;

/// Connects to the API of the fleet and adds the tasks of the controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = program.connect("karmada", &args.client.source()).await?;
    assemble(&args, client, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the API of the fleet.
///
/// One loop writes and never waits for a member; the other asks each member and writes nothing.
pub fn assemble(args: &Args, client: Client, program: &mut Program) {
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let leadership = lease::leadership(program, client.clone(), &args.leader_election);
        WriteMode::perform(program, leadership)
    };
    let events = (!args.observe_only)
        .then(|| EventRecorder::spawn(program, client.clone(), args.events.budget()));

    let (queue, probes) = (Queue::default(), MemberQueues::default());
    let background = Background::spawn(program, "members");
    let addresses = program.addresses.clone();
    let fleet = Arc::new(Fleet::new(client.clone(), background, addresses));
    let index = Arc::new(SharedIndex::new(queue.clone(), probes.clone()));
    let reachable = Reachable::register(&mut program.registry);
    index.watch(program, &client, &fleet, &reachable);
    let reconciler = Reconciler {
        index: Arc::clone(&index),
        client,
        writes,
        events,
        queue: queue.clone(),
        evict_after: args.taint_no_execute_after,
        condition_taints: args.condition_taints.clone(),
        clock: program.clock,
    };
    controller::spawn(program, "cluster", reconciler, queue, leadership.clone());
    let observer = Prober::new(index, fleet, probes.clone(), reachable);
    members::spawn(program, "probe", observer, probes, leadership);
}
