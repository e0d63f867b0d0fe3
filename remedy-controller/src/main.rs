//! `remedy-controller`: compares every cluster's conditions with the users' `Remedy` objects and
//! writes what must be done to `Cluster.status.remedyActions`.

mod args;
mod metrics;
mod reconcile;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;

use kube::Api;
use kube::runtime::watcher::Config;
use runtime::client;
use runtime::controller::{self, Environment};
use runtime::events::Events;
use runtime::lease::{self, Campaign, Leadership};
use runtime::metrics::{ControllerMetrics, WriteMetrics};
use runtime::program::{self, Program, StartError};
use runtime::queue::Queue;
use runtime::watch::{events, feed};
use runtime::write::Writer;

use crate::args::Args;
use crate::reconcile::Reconciler;
use crate::watch::World;

/// The program's name: its user agent, its lease, and the prefix of its metrics.
const NAME: &str = "remedy-controller";

fn main() -> ExitCode {
    program::run(NAME, start)
}

async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = client::connect(&args.client.source(), NAME).await?;
    let leadership = if args.leader_election.leader_elect {
        lease::campaign(program, client.clone(), Campaign::of(NAME))
    } else {
        Leadership::always()
    };

    let queue = Queue::default();
    let world = Arc::new(World::new(queue.clone()));
    metrics::register(&mut program.registry, Arc::clone(&world));
    watch_all(program, &client, &world);

    let reconciler = Reconciler {
        world,
        clusters: Api::all(client.clone()),
        writer: Writer::new(
            leadership.clone(),
            WriteMetrics::register(&mut program.registry),
        ),
        events: Events::new(program, client),
    };
    let environment = Environment {
        queue: queue.clone(),
        readiness: program.readiness.clone(),
        leadership,
        stopping: program.stopping.clone(),
        metrics: ControllerMetrics::register(&mut program.registry, queue),
    };
    program.tasks.spawn(
        "reconcile",
        controller::run(Arc::new(reconciler), environment),
    );
    Ok(())
}

fn watch_all(program: &mut Program, client: &kube::Client, world: &Arc<World>) {
    let clusters = feed(
        events(Api::all(client.clone()), Config::default()),
        program.readiness.gate("clusters"),
        program.stopping.clone(),
        {
            let world = Arc::clone(world);
            move |event| world.observe_cluster(event)
        },
    );
    program.tasks.spawn("clusters", clusters);
    let remedies = feed(
        events(Api::all(client.clone()), Config::default()),
        program.readiness.gate("remedies"),
        program.stopping.clone(),
        {
            let world = Arc::clone(world);
            move |event| world.observe_remedy(event)
        },
    );
    program.tasks.spawn("remedies", remedies);
}
