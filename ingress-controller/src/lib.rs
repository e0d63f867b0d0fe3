//! `ingress-controller`: takes clusters that a Remedy blocks out of the `MultiClusterIngress`es whose
//! Services run there, in their status and at the load balancer.

mod args;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod fixtures;
mod known;
mod notices;
mod provider;
mod reconcile;
mod watch;

use std::sync::Arc;

use karmada_rules::ingress::kubernetes::Gateway;
use karmada_runtime::client::{self, Source};
use karmada_runtime::controller;
use karmada_runtime::events::Events;
use karmada_runtime::lease;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::Writer;
use kube::Client;

pub use crate::args::Args;
use crate::args::GatewayArgs;
use crate::known::Backends;
use crate::notices::Notices;
use crate::provider::{Balancer, Kubernetes, NoLoadBalancer};
use crate::reconcile::Reconciler;
use crate::watch::{Index, watch_all};

/// The program's name: its user agent, its lease, and the prefix of its metrics.
pub const NAME: &str = "ingress-controller";

/// Connects, and gives `program` its tasks.
///
/// # Errors
/// When the flags do not fit together, or a file they name cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let gateway = args.gateway()?;
    let client = client::connect(&args.client.source(), NAME).await?;
    let gateway = match gateway {
        Some(gateway) => Some(connect_gateway(&args, gateway).await?),
        None => None,
    };
    assemble(args, client, gateway, program);
    Ok(())
}

/// Gives `program` its tasks, over connections that are there already: to the Karmada API, and to
/// that of the gateway cluster where the provider has one.
pub fn assemble(
    args: Args,
    client: Client,
    gateway: Option<(Client, Gateway)>,
    program: &mut Program,
) {
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    let metrics = WriteMetrics::register(&mut program.registry);
    let writer = Writer::new(leadership.clone(), metrics);

    let queue = Queue::default();
    let backends = gateway.as_ref().map(|_| Backends::default());
    let index = Arc::new(Index::new(queue.clone(), backends));
    watch_all(program, &client, &index);
    let balancer = match gateway {
        None => Balancer::None(NoLoadBalancer),
        Some((gateway_client, gateway)) => {
            let provider = Kubernetes::new(gateway_client.clone(), gateway, writer.clone());
            let provider = Arc::new(provider);
            provider.watch_all(program, &gateway_client, &queue);
            Balancer::Kubernetes(provider)
        }
    };

    let events = Events::new(program, client.clone());
    let reconciler = Reconciler {
        index,
        controller: args.ingress_class_controller,
        balancer,
        client,
        writer,
        notices: Notices::new(move |regarding, event| events.tell(regarding, event)),
    };
    controller::spawn(program, reconciler, queue, leadership);
}

async fn connect_gateway(
    args: &Args,
    gateway: GatewayArgs,
) -> Result<(Client, Gateway), StartError> {
    let source = Source {
        kubeconfig: Some(gateway.kubeconfig),
        ..Source::default()
    };
    let client = client::connect(&source, NAME).await?;
    let gateway = Gateway::new(&args.ingress_class_controller, gateway.ingress_class);
    Ok((client, gateway))
}
