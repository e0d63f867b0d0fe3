//! `placement-controller`: the hub half of KubeFleet's placements. It selects and snapshots the objects of a placement,
//! picks the clusters, rolls each change out to them as Works, and says where that stands; agents in the clusters do
//! the rest.
//!
//! ```text
//! watch → index, inventory → queues → membership   keeps the objects of each cluster on the hub, and its status
//!                                     profiles     keeps the profile by which programs of others find a cluster
//!                                     eligibility  looks at clusters that may fall silent
//!                                     snapshots    snapshots a placement's policy and selection; ends it
//!                                     overrides    snapshots overrides; ends them
//!                                     schedule     picks the clusters of a placement: its bindings
//!                                     rollout      gives the latest snapshot to some of the bindings
//!                                     updates      gives snapshots to bindings stage by stage, as runs say
//!                                     works        makes the Works of a binding, and reports their status
//!                                     evictions    takes a placement from a cluster because somebody asks for it
//!                                     status       says where a placement stands
//! ```
//!
//! `watch` says which change wakes which key, and `shared` has their common parts. A loop reads the `index`, asks
//! one function of `placement_rules`, and has the committer of `requests` send its writes. Nothing is passed from
//! loop to loop: each sees the writes of another once the watch shows them.
//!
//! - The differences between clusters: `overrides`, of which `override_snapshots` takes up the changes.
//! - The objects that may be placed: `inventory`, of the `kinds` that the hub has. The pause after a change: `debounce`. The
//!   clusters that may be given them: `fleet`. The runs that give them stage by stage: `runs`.
//! - Which writes a loop waits for until the watch shows them: `topics`.
//! - The end of a placement: `deletion`, of which `snapshots` takes the steps and `status` tells.
//! - Everything that users read: `events` with `reason`, `metrics`.

mod args;
mod debounce;
mod deletion;
mod eligibility;
mod events;
mod evictions;
mod fleet;
mod identity;
mod index;
mod inventory;
mod kinds;
mod membership;
mod metrics;
mod override_snapshots;
mod overrides;
mod profiles;
mod reason;
mod requests;
mod rollout;
mod runs;
mod schedule;
mod scoped;
mod shared;
mod snapshots;
mod status;
#[cfg(test)]
mod tests;
mod topics;
mod updates;
mod watch;
mod works;

use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::lease::Leadership;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::WriteMode;
use karmada_runtime::{controller, lease};
use kube::Client;
use parking_lot::Mutex;

pub use crate::args::Args;
use crate::args::Loop;
use crate::eligibility::Judge;
use crate::evictions::Evictor;
pub use crate::identity::{IDENTITY, NAME};
use crate::membership::MembershipReconciler;
use crate::metrics::{FleetMetrics, LABELS};
use crate::override_snapshots::OverrideReconciler;
use crate::profiles::ProfileReconciler;
pub use crate::reason::Reason;
use crate::requests::HubApi;
use crate::rollout::RolloutReconciler;
use crate::schedule::Scheduler;
use crate::shared::SharedIndex;
use crate::snapshots::SnapshotReconciler;
use crate::status::StatusReconciler;
use crate::updates::Updater;
use crate::works::WorksReconciler;

/// Connects to the hub and adds the tasks of the controller to `program`.
///
/// # Errors
/// Fails if a file named by the flags cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let client = program.connect("hub", &args.client.source()).await?;
    assemble(&args, client, program);
    Ok(())
}

/// Adds the tasks of the controller to `program`; `client` is connected to the hub.
pub fn assemble(args: &Args, client: Client, program: &mut Program) {
    let (leadership, writes) = if args.observe_only {
        WriteMode::dry_run(program)
    } else {
        let leadership = lease::leadership(program, client.clone(), &args.leader_election);
        WriteMode::perform(program, leadership)
    };
    let events =
        (!args.observe_only).then(|| EventRecorder::spawn(program, client.clone(), args.events));

    let index = watch::watch(program, &client, args);
    let collector = FleetMetrics {
        index: Arc::clone(&index),
        clock: program.clock,
    };
    program.registry.register_collector(collector, &LABELS);
    let committer = Committer::new(client.clone(), NAME, writes, index.expectations(), None);
    let loops = Loops {
        args,
        hub: HubApi::new(client, committer),
        index,
        leadership,
    };
    loops.spawn(program, events);
}

/// The parts that every loop has.
struct Loops<'a> {
    args: &'a Args,
    hub: HubApi,
    index: Arc<SharedIndex>,
    leadership: Leadership,
}

impl Loops<'_> {
    fn spawn(self, program: &mut Program, events: Option<EventRecorder>) {
        self.spawn_fleet(program);
        let clock = program.clock;
        let (hub, index, queues) = (&self.hub, &self.index, &self.index.queues);
        if self.runs(Loop::Schedule) {
            let scheduler = Scheduler {
                index: Arc::clone(index),
                hub: hub.clone(),
                clock,
            };
            self.spawn_one(program, "schedule", scheduler, &queues.schedule);
        }
        if self.runs(Loop::Rollout) {
            let rollout = RolloutReconciler {
                index: Arc::clone(index),
                hub: hub.clone(),
                opening: self.args.opening(),
                contents: Mutex::default(),
                progress_deadline: self.args.waits.progress_deadline,
                clock,
            };
            self.spawn_one(program, "rollout", rollout, &queues.rollout);
        }
        if self.runs(Loop::Updates) {
            self.spawn_updates(program, events.clone());
        }
        if self.runs(Loop::Works) {
            let works = WorksReconciler {
                index: Arc::clone(index),
                hub: hub.clone(),
                opening: self.args.opening(),
                clock,
            };
            self.spawn_one(program, "works", works, &queues.works);
        }
        if self.runs(Loop::Snapshots) {
            self.spawn_snapshots(program, events.clone());
        }
        if self.runs(Loop::Evictions) {
            let evictor = Evictor {
                index: Arc::clone(index),
                hub: hub.clone(),
                clock,
            };
            self.spawn_one(program, "evictions", evictor, &queues.evictions);
        }
        if self.runs(Loop::Status) {
            let status = StatusReconciler {
                index: Arc::clone(index),
                hub: hub.clone(),
                events,
                progress_deadline: self.args.waits.progress_deadline,
                clock,
            };
            self.spawn_one(program, "status", status, &queues.status);
        }
    }

    fn spawn_updates(&self, program: &mut Program, events: Option<EventRecorder>) {
        let updater = Updater {
            index: Arc::clone(&self.index),
            hub: self.hub.clone(),
            events,
            opening: self.args.opening(),
            clock: program.clock,
        };
        self.spawn_one(program, "updates", updater, &self.index.queues.updates);
    }

    fn spawn_snapshots(&self, program: &mut Program, events: Option<EventRecorder>) {
        let (hub, index, queues) = (&self.hub, &self.index, &self.index.queues);
        let snapshots = SnapshotReconciler {
            index: Arc::clone(index),
            hub: hub.clone(),
            of: self.args.hub(),
        };
        self.spawn_one(program, "snapshots", snapshots, &queues.snapshots);
        let overrides = OverrideReconciler {
            index: Arc::clone(index),
            hub: hub.clone(),
            events,
            notices: Mutex::default(),
        };
        self.spawn_one(program, "overrides", overrides, &queues.overrides);
    }

    fn spawn_fleet(&self, program: &mut Program) {
        let (clock, queues) = (program.clock, &self.index.queues);
        let judge = Judge {
            index: Arc::clone(&self.index),
            clock,
        };
        // Whoever schedules or rolls out must know which clusters are silent.
        self.spawn_one(program, "eligibility", judge, &queues.fleet);
        if self.runs(Loop::Membership) {
            let membership = MembershipReconciler {
                index: Arc::clone(&self.index),
                hub: self.hub.clone(),
                condition_taints: self.args.condition_taints.clone(),
                force_leave_after: self.args.waits.force_leave_after,
                clock,
            };
            self.spawn_one(program, "membership", membership, &queues.membership);
        }
        if self.runs(Loop::Profiles) {
            let profiles = ProfileReconciler {
                index: Arc::clone(&self.index),
                hub: self.hub.clone(),
                clock,
            };
            self.spawn_one(program, "profiles", profiles, &queues.profiles);
        }
    }

    fn runs(&self, one: Loop) -> bool {
        self.args.loops.contains(&one)
    }

    fn spawn_one<C: controller::Controller<Key = objects::Key>>(
        &self,
        program: &mut Program,
        name: &'static str,
        one: C,
        queue: &karmada_runtime::queue::Queue<objects::Key>,
    ) {
        let leadership = self.leadership.clone();
        controller::spawn(program, name, one, queue.clone(), leadership);
    }
}
