//! `ingress-controller`: takes the clusters that a Remedy blocks out of the `MultiClusterIngress`es
//! with Services there, in their status and in the load balancer.
//!
//! `routes` has the `HTTPRoute`s that are read as such, too, of kinds that the API need not have (`optional`);
//! `gateway_classes` tells users that their class has a controller, and `parents` that their Gateway has.
//!
//! `watch` is the table of the changes that wake ingresses, through the `index` of the watched objects. The loops
//! share no worker, so that trouble with one API holds up no write to the other:
//!
//! - `reconcile` keeps finalizer and status; `ingresses` has their writes.
//! - `gateway` keeps the load balancer of a `provider`, and releases ingresses that are no longer ours; `outage` waits
//!   for one that does not answer. Of several load balancers each has such a loop; `reports` joins their reports.
//! - `exports` has Karmada collect the endpoints of the Services.
//!
//! `names` looks up the hosts that load balancers of members are called by.
//!
//! `enforcement` measures how far these loops have followed a change. `events` tells users; `grace` holds back the news of
//! endpoints that are still being collected.

mod args;
mod cached;
mod enforcement;
mod events;
mod exports;
#[cfg(test)]
mod fixtures;
mod gateway;
mod gateway_classes;
mod grace;
mod identity;
mod index;
mod ingresses;
mod metrics;
mod names;
mod optional;
mod outage;
mod parents;
pub mod provider;
mod reason;
mod reconcile;
mod reports;
mod routes;
mod watch;

use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::controller;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::lease::{self, Leadership};
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::readiness::Readiness;
use karmada_runtime::write::{WriteMode, Writer};
use kube::Client;
use traffic::ClusterKind;
use traffic::ingress::{Exporter, Settings};

pub use crate::args::Args;
use crate::events::IngressEvents;
use crate::exports::ExportReconciler;
use crate::gateway::GatewayReconciler;
use crate::gateway_classes::GatewayClasses;
use crate::grace::Grace;
pub use crate::identity::{IDENTITY, NAME};
use crate::index::Backends;
use crate::ingresses::Ingresses;
use crate::metrics::{Gauges, Readmissions};
use crate::outage::Outage;
use crate::parents::Parents;
use crate::provider::NamedBalancer;
pub use crate::reason::Reason;
use crate::reconcile::Reconciler;
use crate::reports::Reports;
use crate::routes::Routes;
use crate::watch::{Queues, SharedIndex};

/// Connects to the load balancers and the Karmada API, or that of a hub, and adds the tasks of the controller to
/// `program`.
///
/// # Errors
/// Fails if the flags contradict each other or name a file that cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    args.check()?;
    let balancers =
        provider::connect(&args.provider, &args.ingress_class_controller, program).await?;
    let client = program.connect("karmada", &args.client.source()).await?;
    assemble(args, client, balancers, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the Karmada API, and `balancers` returns the load
/// balancers that write with a writer.
pub fn assemble(
    args: Args,
    client: Client,
    balancers: impl FnOnce(&Writer) -> Vec<NamedBalancer>,
    program: &mut Program,
) {
    program.identity.lease_namespace = args.cluster_kind.system_namespace();
    let leadership = lease::leadership(program, client.clone(), &args.leader_election);
    let metrics = WriteMetrics::register(&mut program.registry);
    let writer = Writer::new(leadership.clone(), metrics);
    let balancers = balancers(&writer);

    let queues = Queues::new(balancers.len());
    let serves = balancers.iter().any(|named| named.balancer.serves());
    let backends = serves.then(|| backends(&args));
    let exports = backends.is_some_and(|b| b.exports);
    let routes = Routes::new(
        args.gateway_class_controller.clone(),
        args.ingress_class_controller.clone(),
    );
    let index = SharedIndex::new(queues.clone(), backends);
    let index = Arc::new(index.on(args.cluster_kind).reading(routes));
    index.watch(program, &client);
    watch::routes::watch(program, &client, &index);
    if serves {
        names::look_up(program, &index);
    }

    let readmissions = Readmissions::default();
    let names = balancers.iter().zip(&queues.gateways);
    let outages: Vec<Arc<Outage>> = names
        .map(|(named, queue)| Arc::new(Outage::new(named.name, queue.clone())))
        .collect();
    index.enforcement.register(&mut program.registry);
    let gauges = Gauges::new(&leadership, &index, &readmissions, outages.clone());
    program.registry.register_collector(gauges, &Gauges::LABELS);
    let events = events(&args, &client, program);
    let settings = settings(&args);
    let committer = committer(&client, writer, &events);
    if exports {
        let exporter = Exporter::new(&settings.controller);
        exports::watch(program, &client, &index, &exporter);
        let exporting = ExportReconciler {
            index: Arc::clone(&index),
            settings: settings.clone(),
            exporter,
            client: client.clone(),
            committer: committer.clone(),
            events: Arc::clone(&events),
            queue: queues.exports.clone(),
        };
        let (queue, leadership) = (queues.exports.clone(), leadership.clone());
        controller::spawn(program, "serviceexport", exporting, queue, leadership);
    }
    spawn_parents(program, &index, &committer, &queues, &leadership);
    let ingresses = Ingresses {
        client,
        committer,
        gateway_controller: args.gateway_class_controller,
    };
    let status = Reconciler {
        index: Arc::clone(&index),
        settings: settings.clone(),
        ingresses: ingresses.clone(),
        events: Arc::clone(&events),
        queue: queues.status.clone(),
    };
    let (name, queue) = ("multiclusteringress", queues.status);
    controller::spawn(program, name, status, queue, leadership.clone());
    let reports = Arc::new(Reports::new(balancers.len()));
    let grace = Arc::<Grace>::default();
    let loops = balancers.into_iter().zip(outages).zip(queues.gateways);
    for (place, ((NamedBalancer { name, balancer }, outage), queue)) in loops.enumerate() {
        let gateway = GatewayReconciler {
            index: Arc::clone(&index),
            settings: settings.clone(),
            balancer,
            name,
            place,
            reports: Arc::clone(&reports),
            ingresses: ingresses.clone(),
            events: Arc::clone(&events),
            grace: Arc::clone(&grace),
            outage,
            readmissions: readmissions.clone(),
            queue,
        };
        spawn_gateway(program, gateway, leadership.clone());
    }
}

fn settings(args: &Args) -> Settings {
    Settings {
        controller: args.ingress_class_controller.clone(),
        when_all_blocked: args.when_all_blocked,
        backend_addresses: args.backend_addresses,
        possible_addresses: args.possible_addresses(),
        withheld: args.withhold_annotations.clone(),
    }
}

/// Spawns the loop of a load balancer, its watches, and the requests that end an outage.
fn spawn_gateway(program: &mut Program, gateway: GatewayReconciler, leadership: Leadership) {
    // Its keys come from the gateway, which it must know as a whole, and no other loop needs any of that.
    program.elsewhere = Readiness::default();
    let (balancer, queue) = (Arc::clone(&gateway.balancer), gateway.queue.clone());
    Arc::clone(&balancer).watch(program, &queue);
    let stopping = program.stopping.clone().cancelled_owned();
    let probing = Arc::clone(&gateway.outage).probe(balancer, stopping);
    let name = provider::label("load_balancer_probe", gateway.name);
    program.tasks.spawn(name, probing);
    let name = provider::label("load_balancer", gateway.name);
    let also = program.elsewhere.clone();
    controller::spawn_after(program, also, name, gateway, queue, leadership);
}

/// Spawns the loops that tell users that their classes and Gateways have a controller.
fn spawn_parents(
    program: &mut Program,
    index: &Arc<SharedIndex>,
    committer: &Committer,
    queues: &Queues,
    leadership: &Leadership,
) {
    let (queue, leads) = (queues.classes.clone(), leadership.clone());
    let classes = GatewayClasses {
        index: Arc::clone(index),
        committer: committer.clone(),
        queue: queue.clone(),
    };
    controller::spawn(program, "gatewayclass", classes, queue, leads);
    let (queue, leads) = (queues.parents.clone(), leadership.clone());
    let parents = Parents {
        index: Arc::clone(index),
        committer: committer.clone(),
        queue: queue.clone(),
    };
    controller::spawn(program, "gateway", parents, queue, leads);
}

fn committer(client: &Client, writer: Writer, events: &Arc<IngressEvents>) -> Committer {
    Committer::new(
        client.clone(),
        NAME,
        WriteMode::Perform(writer),
        // Nothing is waited for: a second decision about an ingress is the same.
        Expectations::default(),
        Some(events.notices()),
    )
}

/// Returns the objects to watch for a load balancer.
fn backends(args: &Args) -> Backends {
    Backends {
        secrets: args.provider.copies_secrets(),
        // A hub exports nothing: the endpoints of placed Services are collected.
        exports: args.export_services && args.cluster_kind == ClusterKind::Cluster,
        names: args.provider.takes_names(),
    }
}

/// Spawns the writer of Events.
fn events(args: &Args, client: &Client, program: &mut Program) -> Arc<IngressEvents> {
    let recorder = EventRecorder::spawn(program, client.clone(), args.events);
    Arc::new(IngressEvents::new(
        args.cluster_kind,
        move |regarding, event| {
            recorder.record(regarding, event);
        },
    ))
}
