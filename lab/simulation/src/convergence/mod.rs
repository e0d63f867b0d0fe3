//! Convergence as a property: after any sequence of changes to objects, programs and APIs, the fleet
//! reaches the state that its objects demand, and then no program writes.
//!
//! The real controllers run in one thread, over two embedded API servers, in virtual time. A seed
//! determines a sequence of [`Step`]s and the whole run, request by request.

mod agent;
mod apis;
mod explain;
mod fleet;
mod kinds;
mod known;
mod model;
mod objects;
mod program;
mod real;
mod record;
mod replicas;
mod settled;
mod step;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use proptest::strategy::{BoxedStrategy, Strategy};
use tokio::time::Instant;

use self::apis::Apis;
use self::explain::{Explainer, is_write};
use self::fleet::Fleet;
use self::record::{Entry, Message, Record};
use crate::clock;
use crate::search::{Property, Tried};

pub use self::apis::Remote;
pub use self::program::Role;
pub use self::real::OnRealApis;
pub use self::step::{
    About, ApiFault, Backends, Class, ConditionState, Expires, Match, RemedyShape, Spoilt, Step,
    sequences,
};

/// The timeout until the fleet has settled. The longest chain is: a stolen lease expires after 15 s, a
/// failed reconcile is requeued after 30 s, a watch starts again after 5 s, a slow response arrives
/// after 20 s, and then no request may be made for some looks.
const SETTLES_WITHIN: Duration = Duration::from_mins(2);

/// The interval between two looks at the objects.
const LOOK: Duration = Duration::from_secs(6);
/// The number of successive looks that must find no write and no request in flight: an event may be delayed by 8 s,
/// a failed watch starts again after 5 s, and the Event of a Service without endpoints waits for 15 s.
const CALM_LOOKS: u32 = 5;

/// The longest interval between two renewals of a leader's lease.
const RENEWAL: Duration = Duration::from_secs(5);

/// The time at the end of a run in which no program may write. It exceeds the longest backoff, 30 s.
const QUIET: Duration = Duration::from_secs(40);

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// The seed of the jitter in the programs' backoff.
    pub seed: u64,
    /// The time at the end of the run in which no program may write.
    pub quiet: Duration,
}

impl RunOptions {
    /// Returns the options that a search uses.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, quiet: QUIET }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// The error is the property that does not hold.
    pub outcome: Result<(), String>,
    /// The number of writes that were judged, by what they write.
    pub judged: BTreeMap<&'static str, u64>,
    /// The number of times that each fault was applied, by its name.
    pub faults: BTreeMap<&'static str, u64>,
    entries: Vec<Entry>,
}

impl Run {
    /// Returns every request of the programs and every response, without values that depend on a
    /// clock or on chance.
    pub fn log(&self) -> String {
        record::log(&self.entries)
    }

    /// Counts the requests of the programs.
    pub fn requests(&self) -> usize {
        let is_request = |entry: &&Entry| matches!(entry.message, Message::Request { .. });
        self.entries.iter().filter(is_request).count()
    }
}

/// The property, for a [search](crate::search::search).
#[derive(Clone, Copy, Debug)]
pub struct Convergence;

impl Property for Convergence {
    type Step = Step;
    const NAME: &'static str = "convergence";
    const FAILED_ONCE: &'static str = include_str!("../../seeds.txt");
    const SEEDS: &'static str = "lab/simulation/seeds.txt";

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }

    fn run(steps: &[Step], seed: u64) -> Tried {
        let run = run(steps, &RunOptions::seeded(seed));
        Tried {
            requests: run.requests() as u64,
            outcome: run.outcome,
            judged: run.judged,
            faults: run.faults,
        }
    }
}

/// Runs a sequence on a small fleet with two replicas of each program.
pub fn run(steps: &[Step], options: &RunOptions) -> Run {
    let record = Record::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    // The jitter draws from this thread's generator, and the runtime stays on this thread.
    fastrand::seed(options.seed);
    let played = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            clock::begin(Timestamp::UNIX_EPOCH);
            let mut fleet = Fleet::new(Apis::embedded()?, record.clone()).await?;
            let mut explainer = Explainer::default();
            let outcome = play(&mut fleet, &mut explainer, steps, options).await;
            Ok(Run {
                outcome: outcome.map_err(|error| format!("{error:#}")),
                judged: explainer.judged().clone(),
                faults: fleet.faults(),
                // Entries that follow come from the runtime as it drops the programs.
                entries: record.since(0),
            })
        })
    });
    played.unwrap_or_else(|error| Run {
        outcome: Err(format!("{error:#}")),
        judged: BTreeMap::new(),
        faults: BTreeMap::new(),
        entries: Vec::new(),
    })
}

/// Applies the steps, ends every fault, and waits for convergence and then for `options.quiet`.
async fn play(
    fleet: &mut Fleet,
    explainer: &mut Explainer,
    steps: &[Step],
    options: &RunOptions,
) -> Result<()> {
    fleet.start_all().await?;
    for (nth, step) in steps.iter().enumerate() {
        let holds = async {
            fleet.apply(step).await?;
            check(fleet, explainer)
        };
        holds
            .await
            .with_context(|| format!("in step {nth}, {step:?}"))?;
    }
    fleet.mend().await?;
    fleet.replicas.start_missing(&fleet.apis).await?;
    settle(fleet, explainer).await?;
    stay_quiet(fleet, explainer, options.quiet).await
}

/// Checks the properties that hold at every moment.
fn check(fleet: &Fleet, explainer: &mut Explainer) -> Result<()> {
    if let Some(ended) = fleet.replicas.ended() {
        bail!(ended);
    }
    ensure!(!fleet.has_lost_an_agent(), "an agent ended by itself");
    if let Some(request) = fleet.replicas.record.without_pause() {
        bail!("a program repeats a request without a pause: {request}");
    }
    let entries = fleet.replicas.record.since(explainer.position());
    if let Some(unexplained) = explainer.read(&entries) {
        bail!(unexplained);
    }
    Ok(())
}

/// Waits until the objects match the model, each program has a leader, and none writes.
async fn settle(fleet: &Fleet, explainer: &mut Explainer) -> Result<()> {
    let begun = Instant::now();
    let (mut seen, mut calm) = (fleet.replicas.record.len(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        check(fleet, explainer)?;
        let wrote = fleet.replicas.record.since(seen).iter().any(is_write);
        seen = fleet.replicas.record.len();
        let restless = if let Some(program) = leaderless(fleet, explainer) {
            Some(format!("no replica leads the {}", program.name()))
        } else if wrote || fleet.replicas.record.is_waiting() {
            Some("programs still write or wait for a response".to_owned())
        } else {
            None
        };
        calm = if restless.is_none() { calm + 1 } else { 0 };
        let missing = match restless {
            Some(restless) => vec![restless],
            None if calm < CALM_LOOKS => vec!["the programs became calm only now".to_owned()],
            None => settled::differences(&fleet.apis.objects().await?),
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

/// Returns a program that has no leader, or whose leader has not renewed the lease in time.
fn leaderless(fleet: &Fleet, explainer: &Explainer) -> Option<Role> {
    let leads = |program: &Role| {
        let leader = explainer.leader(*program);
        leader.is_some_and(|(process, since)| {
            since.elapsed() <= RENEWAL && fleet.replicas.runs(process)
        })
    };
    Role::ALL.into_iter().find(|program| !leads(program))
}

/// Checks that no program writes for `quiet` and that the objects still match the model after it.
async fn stay_quiet(fleet: &Fleet, explainer: &mut Explainer, quiet: Duration) -> Result<()> {
    let seen = fleet.replicas.record.len();
    tokio::time::sleep(quiet).await;
    check(fleet, explainer)?;
    let after = fleet.replicas.record.since(seen);
    if let Some(write) = after.iter().find(|entry| is_write(entry)) {
        bail!("a write in a settled fleet: {}", record::shown(write));
    }
    let differences = settled::differences(&fleet.apis.objects().await?);
    ensure!(
        differences.is_empty(),
        "the fleet did not stay settled: {}",
        differences.join("; ")
    );
    Ok(())
}
