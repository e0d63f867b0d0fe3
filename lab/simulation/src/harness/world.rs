//! The traits that a simulation implements.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use embedded_apiserver::ApiServer;
use jiff::Timestamp;
use karmada_runtime::program::Program;
use proptest::strategy::BoxedStrategy;

use super::connection::Connections;
use super::fault::Api;
use super::log::Log;
use super::message::Role;
use super::oracle::Explain;
use super::record::Record;
use super::step::Step;

/// Programs on embedded APIs, the changes that may happen to them, and a model of a settled world.
#[expect(
    async_fn_in_trait,
    reason = "a world stays on one thread, which its runtime never leaves"
)]
pub trait World: Sized {
    /// A change by users, members and others.
    type Change: Clone + fmt::Debug + Send + Sync + 'static;
    /// The programs.
    type Role: Explain;
    /// The time at the start of every run, by default 2026-01-01T00:00:00Z.
    const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);
    /// When the world counts as settled.
    const TIMING: Timing;
    /// The most [heartbeats](Self::is_heartbeat) in a minute.
    const HEARTBEATS: usize = 0;

    /// Creates the APIs and the objects at the start. No program runs yet.
    async fn new(record: &Record<Self::Role>) -> Result<Self>;

    /// Assembles a process of a program.
    async fn assemble(&self, connections: Connections<Self::Role>) -> Result<Program>;

    /// Applies a change. One that concerns absent objects does nothing.
    async fn apply(&mut self, change: &Self::Change) -> Result<()>;

    /// Returns the program that starts again with a change.
    fn restarted(_: &Self::Change) -> Option<Self::Role> {
        None
    }

    /// Returns `true` if programs notice a part of a change only when they start.
    fn is_noticed_at_start(_: &Self::Change) -> bool {
        false
    }

    /// Returns every embedded server.
    fn servers(&self) -> Vec<ApiServer>;

    /// Returns the embedded server of an API.
    async fn server(&self, api: Api) -> Result<Option<ApiServer>>;

    /// Delays the next write of a program, or of each.
    fn delay(&self, _: Api, _: Option<Self::Role>, _: Duration) -> Result<()> {
        bail!("no connection of this world delays writes")
    }

    /// Ends the faults that are not those of servers.
    async fn repair(&mut self) -> Result<()> {
        Ok(())
    }

    /// Notes a step, if there was one, and its outcome. Returns the faults that no moment may have. The objects are
    /// as at the last call unless something `is_changed`.
    async fn observe(
        &mut self,
        step: Option<&StepOf<Self>>,
        is_changed: bool,
    ) -> Result<Vec<String>>;

    /// Returns why the world cannot have settled yet, if it is known.
    fn unrest(&self) -> Option<String> {
        None
    }

    /// Returns `true` if a write to a path is a part of a settled world.
    fn is_heartbeat(_path: &str) -> bool {
        false
    }

    /// Returns every difference between the stored objects and those that the model demands of a settled world.
    async fn differences(&self) -> Result<Vec<String>>;

    /// Notes that the world has settled. Returns the faults of such a world that no difference shows.
    fn settled(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of times that each fault was applied that is not one of servers.
    fn faults(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }
}

/// The steps of a world.
pub type StepOf<W> = Step<<W as World>::Change, <W as World>::Role>;

/// The times by which a world counts as settled.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The interval between two looks at the objects.
    pub look: Duration,
    /// The number of successive looks that must find no write.
    pub calm_looks: u32,
    /// The timeout until the world has settled.
    pub settles_within: Duration,
    /// The part of the quiet at the end that is waited again once every program has started anew, if they do.
    pub after_restart: Option<u32>,
}

/// A property of random sequences of steps: the world settles as its model demands, and then nothing writes.
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
    fn sequences() -> BoxedStrategy<Vec<StepOf<Self::World>>>;
}

/// The result of one run of the programs `R`.
#[derive(Debug)]
pub struct Run<R> {
    /// The error is the property that does not hold.
    pub outcome: Result<(), String>,
    /// The numbers of its requests, writes and faults.
    pub figures: Figures,
    pub(super) log: Option<Log<R>>,
}

/// The result of one run of a property.
pub type RunOf<P> = Run<<<P as Property>::World as World>::Role>;

impl<R: Role> Run<R> {
    /// Returns every request of the programs and every response, one a line.
    pub fn log(&self) -> String {
        self.log
            .as_ref()
            .map_or_else(String::new, ToString::to_string)
    }
}

/// The number of things that were done in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number of requests that the programs made.
    pub requests: u64,
    /// The number of writes that were judged, by their kind or their program.
    pub judged: BTreeMap<&'static str, u64>,
    /// The number of times that each fault was applied, by its name.
    pub faults: BTreeMap<&'static str, u64>,
}
