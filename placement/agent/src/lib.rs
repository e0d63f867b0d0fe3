//! `placement-agent`: the member's half of KubeFleet's placements. It applies the Works of its cluster, keeps their
//! objects as they are, and tells the hub of them and of the cluster.
//!
//! ```text
//! hub: Work, channel ──────→ watch → index → queues → works       applies the manifests of a Work (crates/apply), and
//! member: AppliedWork, objects ↗                                   reports on the Work and its AppliedWork
//!                                                     membership  joins or leaves the fleet, and sends heartbeats
//! ```
//!
//! - Which change wakes which key? `watch`, and `index`, which keeps Works (as text), `AppliedWork`s and the
//!   channel.
//! - Whose is an object in the member? `ownership`, by the decisions of `placement_rules::ownership`.
//! - The steps for one Work, in their order: `works`; the input of the engine, `manifest_set`; its results,
//!   `outcome`; the status of the Work, `report`. Its Events: `events` with `reason`.
//! - Where does an ingress-controller on the hub learn the addresses of placed Services? `endpoints`.
//! - The report to the hub on the cluster: `membership`, with `usage`, which keeps the nodes and pods known, `namespaces`, and
//!   `properties`.
//!
//! The lease is in the member, and so is all that is repaired there: without its hub, the agent keeps its objects as they are.

mod args;
mod endpoints;
mod events;
mod identity;
mod index;
mod manifest_set;
mod membership;
mod namespaces;
mod outcome;
mod ownership;
mod properties;
mod reason;
mod report;
#[cfg(test)]
mod tests;
mod usage;
mod watch;
mod works;

use std::sync::Arc;

use apply::Applier;
use fleet_api::names::member_namespace;
use karmada_runtime::commit::Committer;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::WriteMode;
use karmada_runtime::{controller, lease};
use kube::Client;

pub use crate::args::Args;
use crate::endpoints::{EndpointReconciler, Endpoints};
pub use crate::identity::{IDENTITY, NAME};
use crate::index::{Agent, Queues};
use crate::membership::MembershipReconciler;
use crate::namespaces::MemberNamespaces;
use crate::ownership::{Owners, PlacedObjects, selected};
use crate::properties::Properties;
pub use crate::reason::Reason;
use crate::report::Reporter;
use crate::usage::Usage;
use crate::works::WorkReconciler;

/// Connects to the hub and the member, and adds the tasks of the agent to `program`.
///
/// # Errors
/// Fails if the flags contradict each other, or if a file that they name cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let hub = program.connect("hub", &args.hub()?).await?;
    let member = program.connect("member", &args.member()).await?;
    assemble(&args, hub, member, program);
    Ok(())
}

/// Adds the tasks of the agent to `program`; `hub` and `member` are connected.
pub fn assemble(args: &Args, hub: Client, member: Client, program: &mut Program) {
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let leadership = lease::leadership(program, member.clone(), &args.leader_election);
        WriteMode::perform(program, leadership)
    };
    let namespace = member_namespace(&args.cluster_name);
    let agent = Arc::new(Agent::new(namespace, args.collect_endpoints));
    let owners = Owners::default();
    let applier = applier(program, &member, &agent, &owners);
    watch::watch(program, &hub, &member, &agent, &applier, &owners);

    let events =
        (!args.observe_only).then(|| EventRecorder::spawn(program, member.clone(), args.events));
    let clock = program.clock;
    let [of_hub, of_member] = [&hub, &member].map(|client| {
        let expectations = agent.expectations.clone();
        Committer::new(client.clone(), NAME, writes.clone(), expectations, None)
    });
    if args.collect_endpoints {
        let cluster = &args.cluster_name;
        let endpoints = EndpointReconciler {
            endpoints: Endpoints::watch(program, &hub, member.clone(), cluster, &agent),
            committer: of_hub.clone(),
        };
        let (queue, leads) = (agent.queues.services.clone(), leadership.clone());
        let hub_is_read = program.elsewhere.clone();
        let name = "endpointslice";
        controller::spawn_after(program, hub_is_read, name, endpoints, queue, leads);
    }
    let works = WorkReconciler {
        agent: Arc::clone(&agent),
        applier,
        owners,
        writes,
        reporter: Reporter {
            hub,
            member: member.clone(),
            of_hub: of_hub.clone(),
            of_member,
            events,
            clock,
        },
    };
    let membership = MembershipReconciler {
        usage: Usage::watch(program, &member, Arc::clone(&agent)),
        namespaces: args
            .collect_namespaces
            .then(|| MemberNamespaces::watch(program, &member, Arc::clone(&agent))),
        properties: Properties::new(args.properties.clone(), member.clone()),
        agent: Arc::clone(&agent),
        member,
        committer: of_hub,
        clock,
    };
    let Queues {
        works: of_works,
        membership: of_membership,
        services: _,
    } = agent.queues.clone();
    let (leads, hub_is_read) = (leadership.clone(), program.elsewhere.clone());
    controller::spawn_after(program, hub_is_read, "work", works, of_works, leads);
    let hub_is_read = program.elsewhere.clone();
    controller::spawn_after(
        program,
        hub_is_read,
        "membership",
        membership,
        of_membership,
        leadership,
    );
}

/// Returns the engine that applies Works to the member, and runs its watches.
fn applier(
    program: &mut Program,
    member: &Client,
    agent: &Arc<Agent>,
    owners: &Owners,
) -> Arc<Applier<PlacedObjects>> {
    let ownership = PlacedObjects {
        namespace: agent.namespace.clone(),
        owners: owners.clone(),
    };
    let waking = Arc::clone(agent);
    let (applier, watching) = Applier::new(member.clone(), ownership, selected(), move |wake| {
        waking.wake_work(wake);
    });
    program.run_until_stopped("objects", watching);
    Arc::new(applier)
}
