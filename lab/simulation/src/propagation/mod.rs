//! Propagation as a property: after any history of users, members, programs and APIs, the members hold what
//! the policies ask for, and then no program writes.
//!
//! The real programs run in one thread, over embedded API servers for the fleet and for each member, in
//! virtual time. A seed determines a sequence of [`Step`]s and the whole run. `model` says what a settled
//! fleet must look like, `schedule` where its workloads run, `held` what a pause may never take away, and
//! `moves` what may move a workload at all.
//!
//! Of propagation this leaves out: objects of others in the way of ours, what members report of workloads, so
//! that no Deployment gets healthy and its evictions last as long as they may, and the cluster-controller, so
//! that nothing empties the namespace of a cluster that has left. Each program has one process without a lease;
//! leader election is a part of [`convergence`](crate::convergence).

mod apis;
mod connection;
mod fleet;
mod held;
mod history;
mod injection;
mod model;
mod moves;
mod objects;
mod play;
mod programs;
mod scenes;
mod schedule;
mod sequences;
mod settled;
mod specs;
mod step;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use proptest::strategy::{BoxedStrategy, Strategy};

use self::connection::Traffic;
use self::play::Play;
use crate::clock;
use crate::search::{Property, Tried};

pub use self::objects::Template;
pub use self::programs::Role;
pub use self::sequences::{lazy_sequences, sequences};
pub use self::step::{
    About, Affinity, ApiFault, By, Division, Part, Pause, PolicyShape, Purge, Spread, Step,
    TaintEffect, Toleration,
};

/// The time at the end of a run in which no program may write: twice what the longest wait of a program takes,
/// that of an eviction.
const QUIET: Duration = Duration::from_mins(20);

/// The same at the end of a short run.
const SHORT_QUIET: Duration = Duration::from_mins(6);

/// The time at the start of every run, 2026-01-01T00:00:00Z.
const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// The error is the property that does not hold.
    pub outcome: Result<(), String>,
    /// The number of times that each fault was applied, by its name.
    pub faults: BTreeMap<&'static str, u64>,
    /// The number of the programs' writes, by program.
    pub writes: BTreeMap<&'static str, u64>,
    traffic: Traffic,
}

impl Run {
    /// Returns every step and request, with the response to each but watches.
    pub fn log(&self) -> String {
        self.traffic.log()
    }
}

/// The property, for a [search](crate::search::search).
#[derive(Clone, Copy, Debug)]
pub struct Propagation;

impl Property for Propagation {
    type Step = Step;
    const NAME: &'static str = "propagation";
    const FAILED_ONCE: &'static str = include_str!("../../propagation-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/propagation-seeds.txt";

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }

    fn run(steps: &[Step], seed: u64) -> Tried {
        run(steps, seed).into()
    }
}

/// The same property for many short histories of Lazy policies.
#[derive(Clone, Copy, Debug)]
pub struct Lazy;

impl Property for Lazy {
    type Step = Step;
    const NAME: &'static str = "lazy";
    const FAILED_ONCE: &'static str = include_str!("../../lazy-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/lazy-seeds.txt";

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        lazy_sequences().boxed()
    }

    fn run(steps: &[Step], seed: u64) -> Tried {
        run_quietly(steps, seed, SHORT_QUIET).into()
    }
}

impl From<Run> for Tried {
    fn from(run: Run) -> Self {
        Self {
            requests: run.traffic.requests(),
            outcome: run.outcome,
            judged: run.writes,
            faults: run.faults,
        }
    }
}

/// Runs a sequence on a fleet of three members. The seed is that of the jitter in the programs' backoff.
pub fn run(steps: &[Step], seed: u64) -> Run {
    run_quietly(steps, seed, QUIET)
}

fn run_quietly(steps: &[Step], seed: u64, quiet: Duration) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    // The jitter draws from this thread's generator, and the runtime stays on this thread.
    fastrand::seed(seed);
    let failed = |error: anyhow::Error| Run {
        outcome: Err(format!("{error:#}")),
        faults: BTreeMap::new(),
        writes: BTreeMap::new(),
        traffic: Traffic::new(),
    };
    let played = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            clock::begin(BEGINNING);
            let traffic = Traffic::new();
            let mut play = Play::new(traffic.clone()).await?;
            let outcome = play.run(steps, quiet).await;
            let mut writes = BTreeMap::new();
            for write in traffic.writes_since(0) {
                let wrote = |program: &Role| write.starts_with(program.name());
                let program = Role::ALL.into_iter().find(wrote);
                *writes.entry(program.map_or("", Role::name)).or_default() += 1;
            }
            Ok(Run {
                outcome: outcome.map_err(|error| format!("{error:#}")),
                faults: play.faults(),
                writes,
                traffic,
            })
        })
    });
    played.unwrap_or_else(failed)
}
