//! Propagation as a property: after any history of users, members, programs and APIs, the members hold what
//! the policies ask for, and then no program writes.
//!
//! The real programs run in one thread, over embedded API servers for the fleet and for each member, in
//! virtual time. A seed determines a sequence of [`Step`]s and the whole run. `model` says what a settled
//! fleet must look like, and `held` what a pause may never take away.
//!
//! Of propagation this leaves out: Lazy policies, dependencies, groups of clusters, spread constraints,
//! dynamic weights, evictions, objects of others in the way of ours, what members report of workloads, and the
//! cluster-controller, so that nothing empties the namespace of a cluster that has left. Each program has one
//! process without a lease; leader election is a part of [`convergence`](crate::convergence).

mod apis;
mod connection;
mod fleet;
mod held;
mod model;
mod objects;
mod programs;
mod settled;
mod specs;
mod step;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use proptest::strategy::{BoxedStrategy, Strategy};
use tokio::time::Instant;

use self::connection::Traffic;
use self::fleet::Fleet;
use self::held::Held;

use self::world::World;
use crate::search::{Property, Tried};

pub use self::objects::Template;
pub use self::programs::Role;
pub use self::step::{About, Affinity, ApiFault, By, Pause, PolicyShape, Step, sequences};

/// The timeout until the fleet has settled: a failed reconcile is tried again within 30 s, and a scheduling
/// that did not fit within 5 minutes.
const SETTLES_WITHIN: Duration = Duration::from_mins(15);

/// The interval between two looks at the objects.
const LOOK: Duration = Duration::from_secs(10);

/// The number of successive looks without a write after which the fleet is compared with the model: an Event
/// may wait for 30 s.
const CALM_LOOKS: u32 = 4;

/// The time at the end of a run in which no program may write.
const QUIET: Duration = Duration::from_hours(1);

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
        let run = run(steps, seed);
        Tried {
            requests: run.traffic.requests(),
            outcome: run.outcome,
            judged: run.writes,
            faults: run.faults,
        }
    }
}

/// Runs a sequence on a fleet of three members. The seed is that of the jitter in the programs' backoff.
pub fn run(steps: &[Step], seed: u64) -> Run {
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
            let traffic = Traffic::new();
            let mut fleet = Fleet::new(traffic.clone()).await?;
            let outcome = play(&mut fleet, &traffic, steps).await;
            let mut writes = BTreeMap::new();
            for write in traffic.writes_since(0) {
                let wrote = |program: &Role| write.starts_with(program.name());
                let program = Role::ALL.into_iter().find(wrote);
                *writes.entry(program.map_or("", Role::name)).or_default() += 1;
            }
            Ok(Run {
                outcome: outcome.map_err(|error| format!("{error:#}")),
                faults: fleet.faults(),
                writes,
                traffic,
            })
        })
    });
    played.unwrap_or_else(failed)
}

/// Applies the steps, ends every fault, and waits until the fleet has settled. Then nothing may write, not
/// even a program that starts anew.
async fn play(fleet: &mut Fleet, traffic: &Traffic, steps: &[Step]) -> Result<()> {
    fleet.programs.revive(&fleet.apis).await?;
    let mut held = Held::default();
    for (nth, step) in steps.iter().enumerate() {
        traffic.note(&format!("{step:?}"));
        let holds = async {
            fleet.apply(step).await?;
            check(fleet, traffic)?;
            keeps(&mut held, Some(step), &World::read(&fleet.apis).await?)
        };
        holds
            .await
            .with_context(|| format!("in step {nth}, {step:?}"))?;
    }
    traffic.note("the end of all faults");
    fleet.mend();
    fleet.programs.revive(&fleet.apis).await?;
    settle(fleet, traffic, &mut held).await?;
    stay_quiet(fleet, traffic, QUIET).await?;
    traffic.note("every program starts again");
    for program in Role::ALL {
        fleet.programs.kill(program).await;
    }
    fleet.programs.revive(&fleet.apis).await?;
    let restarted = stay_quiet(fleet, traffic, QUIET / 10).await;
    restarted.context("after a restart")
}

/// Checks the properties that hold at every moment.
fn check(fleet: &Fleet, traffic: &Traffic) -> Result<()> {
    if let Some(ended) = fleet.programs.ended() {
        bail!("{} ended by itself", ended.name());
    }
    if let Some(request) = traffic.without_pause() {
        bail!("a program repeats a request without a pause: {request}");
    }
    Ok(())
}

/// Checks that no copy has gone that a pause holds.
fn keeps(held: &mut Held, step: Option<&Step>, world: &World) -> Result<()> {
    let gone = held.observe(step, world);
    ensure!(gone.is_empty(), "{}", gone.join("; "));
    Ok(())
}

/// Waits until no program writes and the objects match the model.
async fn settle(fleet: &Fleet, traffic: &Traffic, held: &mut Held) -> Result<()> {
    let begun = Instant::now();
    let (mut seen, mut calm) = (traffic.writes(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        check(fleet, traffic)?;
        let is_restless = traffic.writes() > seen || traffic.is_waiting();
        seen = traffic.writes();
        calm = if is_restless { 0 } else { calm + 1 };
        let differences = if calm < CALM_LOOKS {
            vec!["programs still write, or did a moment ago".to_owned()]
        } else {
            let world = World::read(&fleet.apis).await?;
            keeps(held, None, &world)?;
            settled::differences(&world, &fleet.history)
        };
        if differences.is_empty() {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < SETTLES_WITHIN,
            "not settled after {SETTLES_WITHIN:?}: {}",
            differences.join("; ")
        );
    }
}

/// Checks that no program writes for `quiet`, and that the objects still match the model then.
async fn stay_quiet(fleet: &Fleet, traffic: &Traffic, quiet: Duration) -> Result<()> {
    let seen = traffic.writes();
    tokio::time::sleep(quiet).await;
    check(fleet, traffic)?;
    if let Some(write) = traffic.writes_since(seen).first() {
        bail!("a write in a settled fleet: {write}");
    }
    let world = World::read(&fleet.apis).await?;
    let differences = settled::differences(&world, &fleet.history);
    ensure!(
        differences.is_empty(),
        "the fleet did not stay settled: {}",
        differences.join("; ")
    );
    Ok(())
}
