//! Convergence as a property: whatever happens to the objects, the programs and the APIs, once it
//! stops, everything comes to be as it must be, and then nothing more is written.
//!
//! The real controllers run in one thread, over two embedded API servers, in virtual time. A seed
//! makes a sequence of [`Step`]s; the same seed makes the same run, request by request.

mod apis;
mod explain;
mod kinds;
mod model;
mod objects;
mod program;
mod real;
mod record;
mod replicas;
mod search;
mod settled;
mod step;
mod told;
mod world;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;

use self::apis::Apis;
use self::explain::{Explainer, is_write};
use self::record::{Entry, Record, What};
use self::world::World;

pub use self::apis::Remote;
pub use self::program::Program;
pub use self::real::OnRealApis;
pub use self::search::{Found, Summary, random_seed, search, sequence_of, todays_seed};
pub use self::step::{
    About, Backends, Class, Match, RemedySpec, Step, Trouble, Verdict, sequences,
};

/// How long it may take until all is as it must be. What takes longest is one after the other: a
/// thief's lease runs out in 15 s, a failed reconcile comes back after 30 s, a watch after 5 s, and
/// a slow answer under way after 20 s; and then it must be calm for a while.
const SETTLES_WITHIN: Duration = Duration::from_mins(2);

/// Between two looks whether all is as it must be.
const LOOK: Duration = Duration::from_secs(6);
/// How many looks in a row must find nobody writing or waiting for an answer: an event may be under
/// way for 8 s, and a watch that failed is begun again after 5 s.
const CALM_LOOKS: u32 = 3;

/// A leader renews its lease at least this often.
const RENEWAL: Duration = Duration::from_secs(5);

/// No write for so long: every retry there may be comes back earlier, at latest 30 s after a
/// failure.
const QUIET: Duration = Duration::from_secs(40);

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seeds what the programs leave to chance: how long they wait before they try again.
    pub seed: u64,
    /// How long no write may follow at the end.
    pub quiet: Duration,
}

impl Options {
    /// As a search makes it.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, quiet: QUIET }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    /// Or else the property that does not hold.
    pub outcome: Result<(), String>,
    entries: Vec<Entry>,
}

impl Run {
    /// Every request of the programs and every answer, without what only a clock or a dice says.
    pub fn log(&self) -> String {
        record::log(&self.entries)
    }

    /// How many requests the programs made.
    pub fn requests(&self) -> usize {
        let asked = |entry: &&Entry| matches!(entry.what, What::Asked { .. });
        self.entries.iter().filter(asked).count()
    }
}

/// Runs a sequence with two replicas of each program, from a small fleet on.
pub fn run(steps: &[Step], options: &Options) -> Run {
    let record = Record::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    fastrand::seed(options.seed);
    let played = runtime.map_err(anyhow::Error::from).map(|runtime| {
        // How the programs end with the runtime is no part of the run.
        runtime.block_on(async { (play(steps, options, record.clone()).await, record.since(0)) })
    });
    let (outcome, entries) = played.unwrap_or_else(|error| (Err(error), Vec::new()));
    Run {
        outcome: outcome.map_err(|error| format!("{error:#}")),
        entries,
    }
}

async fn play(steps: &[Step], options: &Options, record: Record) -> Result<()> {
    let mut world = World::new(Apis::embedded()?, record).await?;
    world.start_all().await?;
    let mut explainer = Explainer::default();
    for (nth, step) in steps.iter().enumerate() {
        let holds = async {
            world.take(step).await?;
            check(&world, &mut explainer)
        };
        holds
            .await
            .with_context(|| format!("in step {nth}, {step:?}"))?;
    }
    world.apis.mend();
    world.replicas.start_missing(&world.apis).await?;
    settle(&world, &mut explainer).await?;
    stay_quiet(&world, &mut explainer, options.quiet).await
}

/// What must hold all the while.
fn check(world: &World, explainer: &mut Explainer) -> Result<()> {
    if let Some(ended) = world.replicas.ended() {
        bail!(ended);
    }
    if let Some(request) = world.replicas.record.without_pause() {
        bail!("a program asks again and again, without a pause: {request}");
    }
    let entries = world.replicas.record.since(explainer.position());
    if let Some(unexplained) = explainer.read(&entries) {
        bail!(unexplained);
    }
    Ok(())
}

/// Until everything is as it must be, each program has a leader, and nobody has anything to write.
async fn settle(world: &World, explainer: &mut Explainer) -> Result<()> {
    let begun = Instant::now();
    let (mut seen, mut calm) = (world.replicas.record.len(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        check(world, explainer)?;
        let wrote = world.replicas.record.since(seen).iter().any(is_write);
        seen = world.replicas.record.len();
        let restless = if let Some(program) = leaderless(world, explainer) {
            Some(format!("nobody leads the {}", program.name()))
        } else if wrote || world.replicas.record.is_waiting() {
            Some("requests go on".to_owned())
        } else {
            None
        };
        calm = if restless.is_none() { calm + 1 } else { 0 };
        let missing = match restless {
            Some(restless) => vec![restless],
            None if calm < CALM_LOOKS => vec!["it has just become calm".to_owned()],
            None => settled::differences(&world.apis.objects().await?),
        };
        if missing.is_empty() {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < SETTLES_WITHIN,
            "not settled after {SETTLES_WITHIN:?}: {}",
            missing.join("; ")
        );
    }
}

/// A program of which no replica has renewed the lease lately.
fn leaderless(world: &World, explainer: &Explainer) -> Option<Program> {
    let leads = |program: &Program| {
        let leader = explainer.leader(*program);
        leader.is_some_and(|(process, since)| {
            since.elapsed() <= RENEWAL && world.replicas.runs(process)
        })
    };
    Program::ALL.into_iter().find(|program| !leads(program))
}

/// No write for so long, and everything stays as it must be.
async fn stay_quiet(world: &World, explainer: &mut Explainer, quiet: Duration) -> Result<()> {
    let seen = world.replicas.record.len();
    tokio::time::sleep(quiet).await;
    check(world, explainer)?;
    let after = world.replicas.record.since(seen);
    if let Some(write) = after.iter().find(|entry| is_write(entry)) {
        bail!("all was as it must be, and then: {}", record::shown(write));
    }
    let differences = settled::differences(&world.apis.objects().await?);
    ensure!(
        differences.is_empty(),
        "it did not stay so: {}",
        differences.join("; ")
    );
    Ok(())
}
