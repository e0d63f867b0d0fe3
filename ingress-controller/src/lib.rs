//! `ingress-controller`: takes the clusters that a Remedy blocks out of the `MultiClusterIngress`es
//! with Services there, in their status and in the load balancer.

mod args;
mod events;
#[cfg(test)]
mod fixtures;
mod index;
pub mod provider;
mod reconcile;
#[cfg(test)]
mod test_api;
mod watch;

use std::sync::Arc;

use karmada_runtime::events::EventRecorder;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::Writer;
use karmada_runtime::{controller, lease};
use kube::Client;

pub use crate::args::Args;
use crate::events::IngressEvents;
use crate::index::Backends;
use crate::provider::LoadBalancer;
use crate::reconcile::Reconciler;
use crate::watch::SharedIndex;

/// The program's name: its user agent, its lease, and the prefix of its metrics.
pub const NAME: &str = "ingress-controller";

/// Connects to the load balancer and the Karmada API, and adds the tasks of the controller to
/// `program`.
///
/// # Errors
/// Fails if the flags contradict each other or name a file that cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let balancer =
        provider::connect(&args.provider, &args.ingress_class_controller, program).await?;
    let client = program.connect("karmada", &args.client.source()).await?;
    assemble(args, client, balancer, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the Karmada API.
pub fn assemble(
    args: Args,
    client: Client,
    balancer: Arc<dyn LoadBalancer>,
    program: &mut Program,
) {
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    let metrics = WriteMetrics::register(&mut program.registry);

    let queue = Queue::default();
    let backends = balancer.needs_backends().then(Backends::default);
    let index = Arc::new(SharedIndex::new(queue.clone(), backends));
    index.watch(program, &client);
    Arc::clone(&balancer).watch(program, &queue);

    let events = EventRecorder::spawn(program, client.clone());
    let reconciler = Reconciler {
        index,
        controller: args.ingress_class_controller,
        balancer,
        client,
        writer: Writer::new(leadership.clone(), metrics),
        events: IngressEvents::new(move |regarding, event| events.record(regarding, event)),
    };
    controller::spawn(
        program,
        "multiclusteringress",
        reconciler,
        queue,
        leadership,
    );
}
