//! One run of a world, in virtual time: its steps, and its end.

use std::panic;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Builder;

use super::record::Record;
use super::session::Session;
use super::world::{Figures, Property, Run, RunOf, StepOf, World};
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
pub fn run<P: Property>(steps: &[StepOf<P::World>], seed: u64) -> RunOf<P> {
    run_with::<P>(steps, seed, P::QUIET)
}

/// Runs a sequence, after which no program may write for as long as `quiet`.
pub fn run_with<P: Property>(steps: &[StepOf<P::World>], seed: u64, quiet: Duration) -> RunOf<P> {
    let run = on_large_stack(|| on_this_thread::<P::World>(steps, seed, quiet));
    run.unwrap_or_else(|error| Run {
        outcome: Err(format!("{error:#}")),
        figures: Figures::default(),
        log: None,
    })
}

fn on_this_thread<W: World>(
    steps: &[StepOf<W>],
    seed: u64,
    quiet: Duration,
) -> Result<Run<W::Role>> {
    // The jitter draws from this thread's generator, and the runtime stays on this thread.
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(in_virtual_time::<W>(steps, quiet))
}

async fn in_virtual_time<W: World>(steps: &[StepOf<W>], quiet: Duration) -> Result<Run<W::Role>> {
    clock::begin(W::BEGINNING);
    let record = Record::default();
    let mut session = Session::new(W::new(&record).await?, record.clone());
    let outcome = play(&mut session, steps, quiet).await;
    Ok(Run {
        outcome: outcome.map_err(|error| format!("{error:#}")),
        figures: session.figures(),
        // Requests that follow come from the runtime as it drops the programs.
        log: Some(record.log()),
    })
}

async fn play<W: World>(
    session: &mut Session<W>,
    steps: &[StepOf<W>],
    quiet: Duration,
) -> Result<()> {
    session.check(None).await?;
    session.start_all().await?;
    for (nth, step) in steps.iter().enumerate() {
        let played = session.play(step).await;
        played.with_context(|| format!("in step {nth}, {step:?}"))?;
    }
    session.finish(steps, quiet).await
}
