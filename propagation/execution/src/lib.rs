//! `execution-controller`: applies the manifests of every Work to its member cluster, repairs their objects
//! there, and reports the state of the objects in the Work's status.
//!
//! ```text
//! Work or Cluster changed → watch → index → queue of the member → reconcile → engine (crates/apply) → report
//! object in the member changed → fleet ↗
//! ```
//!
//! With `--pull` it runs in one member, as a part of Karmada's agent does, and carries out the Works of that one.
//! Otherwise, with `--collect-endpoints`, `endpoints` brings those of exported Services the other way.
//!
//! - Which change wakes which Work? `watch`, and `index`, which keeps Works (`stored` as text) and clusters.
//! - How long does an edit take? `arrivals`, and `metrics` of all Works and members.
//! - Which slices of other clusters are withheld, with `--block-multicluster-services`? `imports` has the facts that decide that.
//! - How is a member reached, and with which credentials? `fleet`, one engine for each member.
//! - Whose is an object in a member? `ownership`, by the decisions of `propagation_rules::execution`.
//! - How do users interpret an object's status and health, and the fields that it keeps? `customization`, of scripts and
//!   webhooks.
//! - Which steps does one Work go through? `reconcile`.
//! - When is a report written? `pending` puts it off, `report` writes it, with the `events` and their `reason`s, and `index`
//!   has it before the watch shows it.

mod args;
mod arrivals;
mod customization;
mod endpoints;
mod events;
mod finalizer;
mod fleet;
mod identity;
mod imports;
mod index;
mod metrics;
mod ownership;
mod pending;
mod reason;
mod reconcile;
mod report;
mod stored;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::events::{EventForm, EventRecorder};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::lease;
use karmada_runtime::members::{self, Background, Connect, MemberQueues, Way};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::WriteMode;
use kube::{Client, Resource};

pub use crate::args::Args;
use crate::arrivals::Arrivals;
use crate::customization::SharedCustomizations;
use crate::endpoints::SharedEndpoints;
use crate::fleet::Fleet;
pub use crate::identity::{IDENTITY, NAME};
use crate::imports::Imports;
use crate::index::Works;
use crate::metrics::FleetMetrics;
pub use crate::reason::Reason;
use crate::reconcile::Reconciler;
use crate::report::Reporter;

/// Connects to the Karmada API, and to that of the member in which the program runs, and adds the tasks of the
/// controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    if args.pull.pull {
        let karmada = program.connect("karmada", &args.pull.karmada()).await?;
        let member = program.connect("member", &args.client.source()).await?;
        assemble_in_member(&args, karmada, member, program);
        return Ok(());
    }
    let client = program.connect("karmada", &args.client.source()).await?;
    let connect = members::over_network(program.addresses.clone(), NAME);
    assemble(&args, client, connect, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the Karmada API, and `connect`
/// connects to members.
pub fn assemble(args: &Args, client: Client, connect: Connect, program: &mut Program) {
    let way = Way::Secrets(client.clone(), connect);
    assemble_by(args, client, way, program);
}

/// Adds the tasks of the controller, in the member that the flags name, to `program`; `karmada` is connected to the
/// Karmada API, and `member` to that of the member.
pub fn assemble_in_member(args: &Args, karmada: Client, member: Client, program: &mut Program) {
    assemble_by(args, karmada, Way::Own(member), program);
}

fn assemble_by(args: &Args, client: Client, way: Way, program: &mut Program) {
    let (near, form) = match &way {
        Way::Secrets(..) => (&client, EventForm::Current),
        Way::Own(member) => (member, EventForm::Core),
    };
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let leadership = lease::leadership(program, near.clone(), &args.leader_election);
        WriteMode::perform(program, leadership)
    };
    let budget = args.events;
    let events = (!args.observe_only)
        .then(|| EventRecorder::spawn_in_form(program, client.clone(), budget, form));

    let queues = MemberQueues::default();
    let arrivals = Arrivals::register(&mut program.registry);
    let works = Arc::new(Works::new(queues.clone(), arrivals));
    if args.block_multicluster_services {
        works.index.lock().imports = Some(Imports::default());
    }
    let (recorder, index) = (events.clone(), Arc::clone(&works.index));
    let background = Background::spawn(program, "members", move |cluster, panicked| {
        let cluster = index.lock().cluster(cluster);
        if let (Some(recorder), Some(cluster)) = (&recorder, cluster) {
            recorder.record(cluster.object_ref(&()), events::panicked(panicked));
        }
    });
    let customizations = SharedCustomizations::watch(program, &client, &works);
    let endpoints = args.collect_endpoints;
    let endpoints = endpoints.then(|| Arc::new(SharedEndpoints::new(&works.index)));
    let fleet = Arc::new(Fleet::new(
        way,
        &customizations,
        endpoints.clone(),
        background,
    ));
    let own = args.pull.cluster();
    watch::watch(program, &client, own, &works, &fleet, endpoints.as_ref());
    let gauges = FleetMetrics {
        works: Arc::clone(&works),
        fleet: Arc::clone(&fleet),
        endpoints: endpoints.clone(),
        clock: program.clock,
    };
    gauges.register(program);
    // The next report is decided on the last one as it was written: none waits for its echo.
    let committer = Committer::new(
        client.clone(),
        NAME,
        writes.clone(),
        Expectations::default(),
        events.clone().map(events::notices),
    );
    if let Some(endpoints) = endpoints {
        let (committer, events) = (committer.clone(), events.clone());
        endpoints::spawn(
            program,
            client.clone(),
            endpoints,
            committer,
            events,
            leadership.clone(),
        );
    }
    let (reports, beside) = (committer.clone(), Arc::clone(&works));
    let reporter = Reporter::new(client.clone(), reports, beside, events, program.clock);
    let reconciler = Reconciler {
        works,
        fleet,
        customizations,
        client,
        committer,
        writes,
        queues: queues.clone(),
        reporter,
    };
    let is_read = program.elsewhere.clone();
    members::spawn_after(program, is_read, "work", reconciler, queues, leadership);
}
