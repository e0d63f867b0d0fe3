//! `scheduler`: chooses the clusters of every binding and its replicas in each, and writes them to
//! `ResourceBinding.spec.clusters`.
//!
//! ```text
//! watch → index → queue → reconcile: snapshot → propagation_rules::schedule::plan → clusters, then status
//! ```
//!
//! - Which change wakes which binding: `watch`; which time: `reconcile`, with `propagation_rules::schedule::next_due`.
//! - The facts of a decision: `index::Snapshot`, with the `groups` of workloads, and the room that `assumptions` leave.
//!   Both count the decisions that are not written yet; those that are, `index` has before the watch shows them. Bindings
//!   of both scopes are read alike in `binding`. Of these and of clusters only the parts that scheduling reads are kept: a
//!   change of anything else wakes nobody.
//! - With `--enable-scheduler-estimator`, `estimators` are asked before a decision that depends on the room of clusters.
//! - The writes of a decision, and a crash between two of them: `reconcile`.
//! - With `--rebalance-workloads`, `rebalance` serves the requests to schedule workloads anew.
//! - Reports to users: `events` with `reason`, `metrics`.

mod args;
mod assumptions;
mod binding;
mod estimators;
mod events;
mod groups;
mod identity;
mod index;
mod metrics;
mod reason;
mod rebalance;
mod reconcile;
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
use propagation_rules::feature_gates;

pub use crate::args::Args;
use crate::args::GATES;
use crate::estimators::{Answers, Estimators};
pub use crate::identity::{IDENTITY, NAME};
use crate::index::{BINDING, Index};
use crate::metrics::BindingMetrics;
pub use crate::reason::Reason;
use crate::rebalance::RebalanceReconciler;
use crate::reconcile::Reconciler;

/// Connects to the Karmada API and adds the tasks of the scheduler to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = program.connect("karmada", &args.client.source()).await?;
    assemble(&args, client, program);
    Ok(())
}

/// Adds the tasks of the scheduler to `program`; `client` is connected to the Karmada API.
pub fn assemble(args: &Args, client: Client, program: &mut Program) {
    let unknown = feature_gates::unknown(&args.feature_gates, &GATES);
    if !unknown.is_empty() {
        let features = unknown.join(", ");
        tracing::warn!(
            features,
            "Features that this program does not have are not switched"
        );
    }
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let leadership =
            lease::leadership_by(program, client.clone(), &args.leader_election, args.lease());
        WriteMode::perform(program, leadership)
    };
    let events =
        (!args.observe_only).then(|| EventRecorder::spawn(program, client.clone(), args.events));

    let queue = Queue::default();
    let heeded = args.heeded(program.clock);
    let expectations = Expectations::default();
    expectations.add_queue(BINDING, &queue);
    let index = Index::new(args.scheduler(), heeded, &expectations);
    let index = Arc::new(Mutex::new(index));
    watch::watch(program, &client, &index, &queue);
    let notices = events.clone();
    let notices = notices.map(|events| events::notices(events, Arc::clone(&index)));
    let committer = Committer::new(client.clone(), NAME, writes, expectations.clone(), notices);
    let bindings = BindingMetrics {
        index: Arc::clone(&index),
        clock: program.clock,
    };
    program
        .registry
        .register_collector(bindings, &[("bindings", "reason")]);
    if args.rebalance_workloads {
        let queue = Queue::default();
        let rebalancers = RebalanceReconciler {
            requests: rebalance::watch(program, &client, &queue, &expectations),
            queue: queue.clone(),
            index: Arc::clone(&index),
            client: client.clone(),
            committer: committer.clone(),
            clock: program.clock,
        };
        let (name, leadership) = ("workloadrebalancer", leadership.clone());
        controller::spawn(program, name, rebalancers, queue, leadership);
    }
    let answers = Answers::register(&mut program.registry);
    let estimators = args.estimators.clone();
    let estimators = estimators
        .enable_scheduler_estimator
        .then(|| Estimators::new(estimators, client, answers));
    let reconciler = Reconciler {
        index,
        queue: queue.clone(),
        estimators,
        committer,
        events,
        clock: program.clock,
    };
    controller::spawn(program, "resourcebinding", reconciler, queue, leadership);
}
