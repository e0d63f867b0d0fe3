//! `execution-controller`: applies the manifests of every Work to its member cluster, repairs what changes
//! there, and reports the state of the objects in the Work's status.
//!
//! ```text
//! Work or Cluster changed → watch → index → queue of the member → reconcile → engine (crates/apply) → report
//! object in the member changed → fleet ↗
//! ```
//!
//! Beside that, with `--collect-endpoints`, `endpoints` brings those of exported Services the other way.
//!
//! - Which change wakes which Work? `watch`, and `index`, which keeps Works (`stored` as text) and clusters.
//! - How is a member reached, and with which credentials? `fleet`, one engine for each member.
//! - Whose is an object in a member? `ownership`, by the decisions of `karmada_rules::execution`.
//! - What do users say of an object's status and health, and of what it keeps? `scripts`, by customizations and webhooks.
//! - What happens to one Work, and in which order? `reconcile`.
//! - When is a report written? `pending` puts it off, `report` writes it, with the `events` and their `reason`s.

mod args;
mod endpoints;
mod events;
mod fleet;
mod identity;
mod index;
mod metrics;
mod ownership;
mod pending;
mod reason;
mod reconcile;
mod report;
mod scripts;
mod stored;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use karmada_runtime::events::EventRecorder;
use karmada_runtime::lease;
use karmada_runtime::members::{self, Background, Connect, MemberQueues};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::WriteMode;
use kube::Client;
use parking_lot::Mutex;

pub use crate::args::Args;
use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
pub use crate::identity::{IDENTITY, NAME};
use crate::index::SharedIndex;
use crate::metrics::FleetMetrics;
use crate::pending::PendingReports;
pub use crate::reason::Reason;
use crate::reconcile::Reconciler;
use crate::report::Reporter;
use crate::scripts::SharedScripts;

/// Connects to the Karmada API and adds the tasks of the controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = program.connect("karmada", &args.client.source()).await?;
    let connect = members::over_network(program.addresses.clone(), NAME);
    assemble(&args, client, connect, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the Karmada API, and `connect`
/// connects to members.
pub fn assemble(args: &Args, client: Client, connect: Connect, program: &mut Program) {
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let leadership = lease::leadership(program, client.clone(), &args.leader_election);
        WriteMode::perform(program, leadership)
    };
    let events = (!args.observe_only)
        .then(|| EventRecorder::spawn(program, client.clone(), args.events.budget()));

    let queues = MemberQueues::default();
    let background = Background::spawn(program, "members");
    let index = Arc::new(SharedIndex::new(queues.clone()));
    let scripts = SharedScripts::watch(program, &client, &index);
    let endpoints = args.collect_endpoints;
    let endpoints = endpoints.then(|| Arc::new(SharedEndpoints::new(Arc::clone(&index))));
    let fleet = Arc::new(Fleet::new(
        client.clone(),
        &scripts,
        endpoints.clone(),
        background,
        connect,
    ));
    watch::watch(program, &client, &index, &fleet, endpoints.as_ref());
    let gauges = FleetMetrics {
        index: Arc::clone(&index),
        fleet: Arc::clone(&fleet),
        endpoints: endpoints.clone(),
    };
    let labels = [
        ("member_reachable", "member"),
        ("collected_endpoint_slices", "member"),
    ];
    program.registry.register_collector(gauges, &labels);
    if let Some(endpoints) = endpoints {
        let (writes, events) = (writes.clone(), events.clone());
        endpoints::spawn(
            program,
            client.clone(),
            endpoints,
            writes,
            events,
            leadership.clone(),
        );
    }
    let reconciler = Reconciler {
        index,
        fleet,
        scripts,
        client: client.clone(),
        writes: writes.clone(),
        queues: queues.clone(),
        reporter: Reporter {
            client,
            writes,
            events,
            clock: program.clock,
            pending: PendingReports::default(),
            troubles: Mutex::default(),
        },
    };
    members::spawn(program, "work", reconciler, queues, leadership);
}
