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

use std::process::ExitCode;
use std::sync::Arc;

use kube::Client;
use rules::ingress::gateway::Gateway;
use runtime::client::{self, Source};
use runtime::controller;
use runtime::events::Events;
use runtime::lease;
use runtime::metrics::WriteMetrics;
use runtime::program::{self, Program, StartError};
use runtime::queue::Queue;
use runtime::write::Writer;

use crate::args::{Args, GatewayArgs};
use crate::known::Backends;
use crate::notices::Notices;
use crate::provider::{Balancer, Kubernetes, NoLoadBalancer};
use crate::reconcile::Reconciler;
use crate::watch::{World, watch_all};

/// The program's name: its user agent, its lease, and the prefix of its metrics.
const NAME: &str = "ingress-controller";

fn main() -> ExitCode {
    program::run(NAME, start)
}

async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let gateway = args.gateway()?;
    let client = client::connect(&args.client.source(), NAME).await?;
    let gateway = match gateway {
        Some(gateway) => Some(connect_gateway(&args, gateway).await?),
        None => None,
    };
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    let metrics = WriteMetrics::register(&mut program.registry);
    let writer = Writer::new(leadership.clone(), metrics);

    let queue = Queue::default();
    let backends = gateway.as_ref().map(|_| Backends::default());
    let world = Arc::new(World::new(queue.clone(), backends));
    watch_all(program, &client, &world);
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
        world,
        controller: args.ingress_class_controller,
        balancer,
        client,
        writer,
        notices: Notices::new(move |regarding, event| events.tell(regarding, event)),
    };
    controller::spawn(program, reconciler, queue, leadership);
    Ok(())
}

async fn connect_gateway(
    args: &Args,
    gateway: GatewayArgs,
) -> Result<(Client, Gateway), StartError> {
    let source = Source {
        kubeconfig: Some(gateway.kubeconfig),
        context: None,
    };
    let client = client::connect(&source, NAME).await?;
    let gateway = Gateway::new(&args.ingress_class_controller, gateway.ingress_class);
    Ok((client, gateway))
}
