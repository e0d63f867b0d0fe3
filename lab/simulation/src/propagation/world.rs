//! The world of propagation.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use proptest::strategy::{BoxedStrategy, Strategy};

use super::fleet::Fleet;
use super::held::Held;
use super::moves::Moves;
use super::role::Role;
use super::sequences::{lazy_sequences, sequences};
use super::settled;
use super::snapshot::Snapshot;
use super::step::Step;
use crate::harness::traffic::Traffic;
use crate::harness::{Figures, Log, Property, Timing, World, settle, stay_quiet};

/// The property that members hold what the policies ask for.
#[derive(Clone, Copy, Debug)]
pub struct Propagation;

impl Property for Propagation {
    type World = Members;
    const NAME: &'static str = "propagation";
    const FAILED_ONCE: &'static str = include_str!("../../propagation-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/propagation-seeds.txt";
    // Twice what the longest wait of a program takes, that of an eviction.
    const QUIET: Duration = Duration::from_mins(20);

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }
}

/// The same property for many short histories of Lazy policies.
#[derive(Clone, Copy, Debug)]
pub struct Lazy;

impl Property for Lazy {
    type World = Members;
    const NAME: &'static str = "lazy";
    const FAILED_ONCE: &'static str = include_str!("../../lazy-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/lazy-seeds.txt";
    const QUIET: Duration = Duration::from_mins(6);

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        lazy_sequences().boxed()
    }
}

/// A fleet of three members in a run, and what is known about its past.
#[derive(Debug)]
pub struct Members {
    fleet: Fleet,
    traffic: Traffic,
    held: Held,
    moves: Moves,
    /// The versions of the objects that were observed last.
    versions: Vec<u64>,
}

impl Members {
    /// Starts every program anew.
    async fn restart(&mut self) -> Result<()> {
        self.traffic.note("every program starts again");
        for program in Role::ALL {
            self.fleet.programs.kill(program).await;
        }
        self.fleet.programs.revive(&self.fleet.apis).await
    }

    /// Notes a step, if there was one, and checks what must hold at every moment.
    async fn observe(&mut self, step: Option<&Step>) -> Result<()> {
        if let Some(ended) = self.fleet.programs.ended() {
            bail!("{} ended by itself", ended.name());
        }
        self.traffic.check_pace()?;
        let versions = self.fleet.apis.versions();
        if step.is_none() && versions == self.versions {
            return none(&self.held.observe(None, self.moves.snapshot()));
        }
        let snapshot = Snapshot::read(&self.fleet.apis).await?;
        self.versions = versions;
        none(&self.held.observe(step, &snapshot))?;
        none(&self.moves.observe(step, snapshot))
    }
}

impl World for Members {
    type Step = Step;
    // 2026-01-01T00:00:00Z
    const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);
    const TIMING: Timing = Timing {
        look: Duration::from_secs(10),
        // An Event may wait for 30 s.
        calm_looks: 4,
        // A failed reconcile is tried again within 30 s, and a scheduling that did not fit within 5 minutes; an
        // eviction ends after 10 minutes.
        settles_within: Duration::from_mins(25),
    };

    async fn new() -> Result<Self> {
        let traffic = Traffic::new();
        Ok(Self {
            fleet: Fleet::new(traffic.clone()).await?,
            traffic,
            held: Held::default(),
            moves: Moves::default(),
            versions: Vec::new(),
        })
    }

    async fn start(&mut self) -> Result<()> {
        self.observe(None).await?;
        self.fleet.programs.revive(&self.fleet.apis).await
    }

    async fn apply(&mut self, step: &Step) -> Result<()> {
        self.traffic.note(&format!("{step:?}"));
        self.fleet.apply(step).await?;
        self.observe(Some(step)).await?;
        if *step == Step::Settle {
            settle(self).await?;
        }
        Ok(())
    }

    async fn check(&mut self) -> Result<()> {
        self.observe(None).await
    }

    async fn recover(&mut self) -> Result<()> {
        self.fleet.end_faults();
        self.fleet.programs.revive(&self.fleet.apis).await
    }

    fn position(&self) -> usize {
        self.traffic.writes()
    }

    fn write_since(&self, position: usize) -> Option<String> {
        self.traffic.writes_since(position).into_iter().next()
    }

    fn unrest(&self) -> Option<String> {
        self.traffic.unrest()
    }

    async fn differences(&mut self) -> Result<Vec<String>> {
        let snapshot = self.moves.snapshot();
        Ok(settled::differences(snapshot, &self.fleet.history))
    }

    fn settled(&mut self) -> Result<()> {
        none(&self.moves.settle())
    }

    /// Checks in addition that programs that start anew find nothing to write.
    async fn finish(&mut self, steps: &[Step], quiet: Duration) -> Result<()> {
        if steps.contains(&Step::Upgrade) {
            self.apply(&Step::Settle).await?;
            // Only a start shows the default of a template that nobody writes, and Works get it then.
            self.restart().await?;
        }
        self.apply(&Step::Settle).await?;
        stay_quiet(self, quiet).await?;
        self.restart().await?;
        let restarted = stay_quiet(self, quiet / 10).await;
        restarted.context("after a restart")
    }

    fn figures(&self) -> Figures {
        Figures {
            requests: self.traffic.requests(),
            judged: self.traffic.judged(Role::ALL.map(Role::name)),
            faults: self.fleet.faults(),
        }
    }

    fn log(&self) -> Box<dyn Log> {
        Box::new(self.traffic.clone())
    }
}

/// Fails with what was found, if anything was.
fn none(found: &[String]) -> Result<()> {
    ensure!(found.is_empty(), "{}", found.join("; "));
    Ok(())
}
