//! One run of a world, in virtual time: its steps, the wait until it has settled, and the quiet after it.

use std::panic;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::world::{Figures, Property, Run, StepOf, World};
use crate::clock;

/// The stack of a thread, in bytes. Unoptimised, the futures of a fleet and the drawing of its steps need more than the two
/// megabytes that threads have.
const STACK: usize = 16 << 20;

/// Does some work on a thread with a large stack.
pub(super) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        #[expect(clippy::expect_used, reason = "`thread::spawn` panics, too")]
        let working = thread
            .spawn_scoped(scope, work)
            .expect("a thread can be started");
        working
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// Runs a sequence. The seed is that of all that the programs and the world draw.
pub fn run<P: Property>(steps: &[StepOf<P>], seed: u64) -> Run {
    run_with::<P>(steps, seed, P::QUIET)
}

/// Runs a sequence, after which no program may write for as long as `quiet`.
pub fn run_with<P: Property>(steps: &[StepOf<P>], seed: u64, quiet: Duration) -> Run {
    let run = on_large_stack(|| on_this_thread::<P::World>(steps, seed, quiet));
    run.unwrap_or_else(|error| Run {
        outcome: Err(format!("{error:#}")),
        figures: Figures::default(),
        log: None,
    })
}

fn on_this_thread<W: World>(steps: &[W::Step], seed: u64, quiet: Duration) -> Result<Run> {
    // The jitter draws from this thread's generator, and the runtime stays on this thread.
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(in_virtual_time::<W>(steps, quiet))
}

async fn in_virtual_time<W: World>(steps: &[W::Step], quiet: Duration) -> Result<Run> {
    clock::begin(W::BEGINNING);
    let mut world = W::new().await?;
    let outcome = play(&mut world, steps, quiet).await;
    Ok(Run {
        outcome: outcome.map_err(|error| format!("{error:#}")),
        figures: world.figures(),
        // Requests that follow come from the runtime as it drops the programs.
        log: Some(world.log()),
    })
}

async fn play<W: World>(world: &mut W, steps: &[W::Step], quiet: Duration) -> Result<()> {
    world.start().await?;
    for (nth, step) in steps.iter().enumerate() {
        let applied = world.apply(step).await;
        applied.with_context(|| format!("in step {nth}, {step:?}"))?;
    }
    world.finish(steps, quiet).await
}

/// Waits until no program writes and the oracle finds no difference.
pub(crate) async fn settle<W: World>(world: &mut W) -> Result<()> {
    let (begun, timing) = (Instant::now(), W::TIMING);
    let (mut seen, mut calm) = (world.position(), 0);
    loop {
        sleep(timing.look).await;
        world.check().await?;
        let writes = || "programs still write, or wait for a response".to_owned();
        let unrest = world
            .unrest()
            .or_else(|| world.write_since(seen).map(|_| writes()));
        seen = world.position();
        calm = if unrest.is_none() { calm + 1 } else { 0 };
        let missing = match unrest {
            Some(unrest) => vec![unrest],
            None if calm < timing.calm_looks => {
                vec!["the programs became calm only now".to_owned()]
            }
            None => world.differences().await?,
        };
        if missing.is_empty() {
            return world.settled();
        }
        ensure!(
            begun.elapsed() < timing.settles_within,
            "not settled after {:?}: {}",
            timing.settles_within,
            missing.join("; ")
        );
    }
}

/// Checks that no program writes for `quiet`, and that the oracle finds no difference then.
pub(crate) async fn stay_quiet<W: World>(world: &mut W, quiet: Duration) -> Result<()> {
    let seen = world.position();
    sleep(quiet).await;
    world.check().await?;
    if let Some(write) = world.write_since(seen) {
        bail!("a write in a settled world: {write}");
    }
    let differences = world.differences().await?;
    ensure!(
        differences.is_empty(),
        "the world did not stay settled: {}",
        differences.join("; ")
    );
    Ok(())
}
