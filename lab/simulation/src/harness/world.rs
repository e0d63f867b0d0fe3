//! The traits that a simulation implements.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use proptest::strategy::BoxedStrategy;

/// Programs on embedded APIs, the steps that may happen to them, and an oracle.
#[expect(
    async_fn_in_trait,
    reason = "a world stays on one thread, which its runtime never leaves"
)]
pub trait World: Sized {
    /// A step: something that users, members, APIs or programs do, or that time passes.
    type Step: Clone + fmt::Debug + Send + Sync + 'static;
    /// The time at the start of every run.
    const BEGINNING: Timestamp;
    /// When the world counts as settled.
    const TIMING: Timing;

    /// Creates the APIs and the objects at the start. No program runs yet.
    async fn new() -> Result<Self>;

    /// Starts every program.
    async fn start(&mut self) -> Result<()>;

    /// Applies a step, and checks what must hold at every moment.
    async fn apply(&mut self, step: &Self::Step) -> Result<()>;

    /// Checks what must hold at every moment.
    async fn check(&mut self) -> Result<()>;

    /// Ends every fault, and starts what does not run.
    async fn recover(&mut self) -> Result<()>;

    /// Returns the place in the record of requests that has been reached.
    fn position(&self) -> usize;

    /// Returns the first write from a place in the record on.
    fn write_since(&self, position: usize) -> Option<String>;

    /// Returns why the world cannot have settled yet, if it is known.
    fn unrest(&self) -> Option<String>;

    /// Returns every difference between what is stored and what the oracle demands of a settled world.
    async fn differences(&mut self) -> Result<Vec<String>>;

    /// Notes that the world has settled.
    fn settled(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends a run after its steps: recovers, settles, and then lets nothing write for as long as `quiet`.
    async fn finish(&mut self, steps: &[Self::Step], quiet: Duration) -> Result<()>;

    /// Returns the figures of the run so far.
    fn figures(&self) -> Figures;

    /// Returns the record of the run so far.
    fn log(&self) -> Box<dyn Log>;
}

/// The times by which a world counts as settled.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The interval between two looks at the objects.
    pub look: Duration,
    /// The number of successive looks that must find no write.
    pub calm_looks: u32,
    /// The timeout until the world has settled.
    pub settles_within: Duration,
}

/// A property of random sequences of steps: the world settles as its oracle demands, and then nothing writes.
pub trait Property {
    /// The world.
    type World: World;
    /// The name of the property among those of `cargo xtask simulate`.
    const NAME: &'static str;
    /// The committed list of the seeds whose sequences failed once.
    const FAILED_ONCE: &'static str;
    /// The path of that list.
    const SEEDS: &'static str;
    /// The time at the end of a run in which no program may write.
    const QUIET: Duration;

    /// Returns the strategy that generates sequences.
    fn sequences() -> BoxedStrategy<Vec<StepOf<Self>>>;
}

/// The steps of a property's world.
pub type StepOf<P> = <<P as Property>::World as World>::Step;

/// The result of one run.
#[derive(Debug)]
pub struct Run {
    /// The error is the property that does not hold.
    pub outcome: Result<(), String>,
    /// What was done.
    pub figures: Figures,
    pub(super) log: Option<Box<dyn Log>>,
}

impl Run {
    /// Returns every request of the programs and every response, one a line.
    pub fn log(&self) -> String {
        self.log.as_ref().map_or_else(String::new, |log| log.text())
    }
}

/// A record of requests, which is made readable only if somebody reads it.
pub trait Log: fmt::Debug + Send {
    /// Returns the record as lines.
    fn text(&self) -> String;
}

/// The number of things that were done in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number of requests that the programs made.
    pub requests: u64,
    /// The number of writes that were judged, by what they write or who writes.
    pub judged: BTreeMap<&'static str, u64>,
    /// The number of times that each fault was applied, by its name.
    pub faults: BTreeMap<&'static str, u64>,
}
