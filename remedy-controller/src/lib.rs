//! `remedy-controller`: compares the conditions of every cluster with the users' `Remedy` objects and
//! writes the required actions to `Cluster.status.remedyActions`, or on the hub of a KubeFleet to a condition of the
//! `MemberCluster`.
//!
//! `clusters` are those of either kind. `watch` says which change wakes which cluster or Remedy; `index` has the watched
//! objects, and the decisions across the fleet.
//! `reconcile` writes the actions of a cluster; `status` lets a Remedy tell its effect, where `support` finds
//! that its definition has a status; `silence` marks reporters whose lease nobody renews. `condition_types`
//! counts the conditions of the fleet, to which Remedies refer.

mod args;
mod clusters;
mod condition_types;
mod events;
mod identity;
mod index;
mod metrics;
mod reason;
mod reconcile;
mod silence;
mod status;
mod support;
mod watch;

use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::WriteMode;
use karmada_runtime::{controller, lease};
use kube::Client;
use parking_lot::Mutex;

pub use crate::args::Args;
use crate::clusters::Clusters;
use crate::events::notices;
pub use crate::identity::{IDENTITY, NAME};
use crate::index::{CLUSTER, Index, REMEDY};
use crate::metrics::{FleetMetrics, action_delay};
pub use crate::reason::Reason;
use crate::reconcile::Reconciler;
use crate::silence::{SharedReporters, SilenceReconciler};
use crate::status::StatusReconciler;
use crate::watch::Queues;

/// Connects to the Karmada API and adds the tasks of the controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = program.connect("karmada", &args.client.source()).await?;
    assemble(&args, client, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the Karmada API.
pub fn assemble(args: &Args, client: Client, program: &mut Program) {
    program.identity.lease_namespace = args.cluster_kind.system_namespace();
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    let (leadership, writes) = WriteMode::perform(program, leadership);

    let queues = Queues::default();
    let expectations = Expectations::default();
    expectations.add_queue(CLUSTER, &queues.clusters);
    expectations.add_queue(REMEDY, &queues.remedies);
    let clusters = Clusters {
        kind: args.cluster_kind,
        client: client.clone(),
    };
    let (max_blocked, clock) = (args.max_blocked_clusters, program.clock);
    let index = Index::new(clusters.kind, max_blocked, clock, &expectations);
    let index = Arc::new(Mutex::new(index));
    watch::watch(program, &clusters, &index, &queues);
    let events = EventRecorder::spawn(program, client.clone(), args.events);
    let notices = Some(notices(events.clone()));
    let committer = Committer::new(client.clone(), NAME, writes, expectations, notices);
    let status = StatusReconciler::new(
        Arc::clone(&index),
        queues.clone(),
        client,
        committer.clone(),
        events.clone(),
    );
    let (due, remedies) = (queues.clusters.clone(), queues.remedies.clone());
    controller::spawn(program, "remedy", status, remedies, leadership.clone());
    let silent = Queue::default();
    let reporters = Arc::new(SharedReporters::new(
        clusters.kind,
        args.reporter_grace_period,
    ));
    reporters.watch(program, &clusters.client, silent.clone());
    let fleet = FleetMetrics {
        index: Arc::clone(&index),
        reporters: Arc::clone(&reporters),
    };
    let labels = [
        ("clusters_with_action", "action"),
        ("overdue_drains", "member"),
        ("remedies", "state"),
        ("silent_reporters", "member"),
        ("traffic_blocked", "member"),
    ];
    program.registry.register_collector(fleet, &labels);

    let silence = SilenceReconciler {
        reporters,
        index: Arc::clone(&index),
        clusters: clusters.clone(),
        committer: committer.clone(),
        clock: program.clock,
    };
    let reconciler = Reconciler {
        index,
        clusters,
        surveying: tokio::sync::Mutex::default(),
        committer,
        events,
        queues,
        following: action_delay(&mut program.registry),
    };
    controller::spawn(program, "cluster", reconciler, due, leadership.clone());
    controller::spawn(program, "lease", silence, silent, leadership);
}
