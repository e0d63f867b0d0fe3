//! `remedy-controller`: compares every cluster's conditions with the users' `Remedy` objects and
//! writes what must be done to `Cluster.status.remedyActions`.

mod args;
mod reconcile;
mod watch;

use std::sync::Arc;

use karmada_runtime::events::Events;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::Writer;
use karmada_runtime::{client, controller, lease};
use kube::{Api, Client};

pub use crate::args::Args;
use crate::reconcile::Reconciler;
use crate::watch::Index;

/// The program's name: its user agent, its lease, and the prefix of its metrics.
pub const NAME: &str = "remedy-controller";

/// Connects, and gives `program` its tasks.
///
/// # Errors
/// When a file that the flags name cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = client::connect(&args.client.source(), NAME).await?;
    assemble(&args, client, program);
    Ok(())
}

/// Gives `program` its tasks, over a connection to the Karmada API that is there already.
pub fn assemble(args: &Args, client: Client, program: &mut Program) {
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    let writes = WriteMetrics::register(&mut program.registry);

    let queue = Queue::default();
    let index = Arc::new(Index::new(queue.clone()));
    index.watch(program, &client);
    let reconciler = Reconciler {
        index,
        clusters: Api::all(client.clone()),
        writer: Writer::new(leadership.clone(), writes),
        events: Events::new(program, client),
    };
    controller::spawn(program, reconciler, queue, leadership);
}
