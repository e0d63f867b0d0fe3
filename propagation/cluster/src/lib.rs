//! `cluster-controller`: keeps the Clusters of a fleet without Karmada. It makes their execution namespaces,
//! asks their APIs for health, kinds and capacity, and taints those that are not ready or have a condition that a flag
//! names. Where a flag asks for it, it publishes their nodes.
//!
//! With `--pull` it runs in a member, as a part of Karmada's agent does: it asks that one alone, writes the status of its
//! Cluster, and with `heartbeat` that it lives. In the control plane, `heard` tells who has fallen silent.

mod args;
mod events;
mod fleet;
mod heard;
mod heartbeat;
mod identity;
mod index;
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

use karmada_runtime::commit::Committer;
use karmada_runtime::events::{EventForm, EventRecorder};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::members::{self, Background, MemberQueues, Way};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteMode;
use karmada_runtime::{controller, lease};
use kube::{Client, Resource};
use parking_lot::Mutex;

pub use crate::args::Args;
use crate::fleet::Fleet;
use crate::heartbeat::Heartbeat;
pub use crate::identity::{IDENTITY, NAME};
use crate::index::{CLUSTER, Index};
use crate::metrics::Reachable;
use crate::probe::Prober;
pub use crate::reason::Reason;
use crate::reconcile::{Reconciler, Role};
use crate::watch::Probing;

/// The place where the program runs.
pub enum Place {
    /// The control plane: with a client of the fleet's API.
    ControlPlane(Client),
    /// The member of mode Pull whose Cluster has this name: with a client of the fleet's API, and one of its own.
    Member(String, Client, Client),
}

/// Connects to the API of the fleet, and to that of the member in which the program runs, and adds the tasks of the
/// controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let place = if let Some(cluster) = args.pull.cluster() {
        let karmada = program.connect("karmada", &args.pull.karmada()).await?;
        let member = program.connect("member", &args.client.source()).await?;
        Place::Member(cluster.to_owned(), karmada, member)
    } else {
        Place::ControlPlane(program.connect("karmada", &args.client.source()).await?)
    };
    assemble(&args, place, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`.
///
/// One loop writes and never waits for a member; the other asks each member and writes nothing.
pub fn assemble(args: &Args, place: Place, program: &mut Program) {
    let (client, way, form) = match &place {
        Place::ControlPlane(client) => {
            let connect = members::over_network(program.addresses.clone(), NAME);
            let way = Way::Secrets(client.clone(), connect);
            (client.clone(), way, EventForm::Current)
        }
        Place::Member(_, karmada, member) => {
            (karmada.clone(), Way::Own(member.clone()), EventForm::Core)
        }
    };
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let (Place::ControlPlane(near) | Place::Member(_, _, near)) = &place;
        let leadership = lease::leadership(program, near.clone(), &args.leader_election);
        WriteMode::perform(program, leadership)
    };
    let budget = args.events;
    let events = (!args.observe_only)
        .then(|| EventRecorder::spawn_in_form(program, client.clone(), budget, form));

    let (queue, probes) = (Queue::default(), MemberQueues::default());
    let expectations = Expectations::default();
    expectations.add_queue(CLUSTER, &queue);
    let index = Arc::new(Mutex::new(Index::new(&expectations)));
    let (recorder, clusters) = (events.clone(), Arc::clone(&index));
    let background = Background::spawn(program, "members", move |cluster, panicked| {
        let cluster = clusters.lock().cluster(cluster);
        if let (Some(recorder), Some(cluster)) = (&recorder, cluster) {
            recorder.record(cluster.object_ref(&()), events::panicked(panicked));
        }
    });
    let fleet = Arc::new(Fleet::new(way, background));
    let reachable = Reachable::register(&mut program.registry);
    let probing = Probing {
        queues: probes.clone(),
        fleet: Arc::clone(&fleet),
        reachable: reachable.clone(),
    };
    let role = match place {
        Place::ControlPlane(client) => {
            watch::watch(program, &client, &index, &queue, probing);
            if args.publish_node_addresses.is_some() {
                watch::watch_node_slices(program, &client, &index, &queue);
            }
            Role::ControlPlane {
                evict_after: args.taint_no_execute_after,
                condition_taints: args.condition_taints.clone(),
            }
        }
        Place::Member(cluster, karmada, _) => {
            watch::watch_own(program, (&karmada, &cluster), &index, &queue, probing);
            Role::Member(Box::new(Heartbeat::new(karmada)))
        }
    };
    let reconciler = Reconciler {
        index: Arc::clone(&index),
        committer: Committer::new(client, NAME, writes, expectations, None),
        events,
        queue: queue.clone(),
        role,
        clock: program.clock,
    };
    let (is_read, leads) = (program.elsewhere.clone(), leadership.clone());
    let clusters = queue.clone();
    controller::spawn_after(program, is_read, "cluster", reconciler, queue, leads);
    let observer = Prober {
        index,
        clusters,
        fleet,
        queues: probes.clone(),
        reachable,
        node_addresses: args.publish_node_addresses,
        health: Mutex::default(),
    };
    let is_read = program.elsewhere.clone();
    members::spawn_after(program, is_read, "probe", observer, probes, leadership);
}
