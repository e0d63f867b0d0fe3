//! One run: the steps, the wait until the fleet has settled, and what must hold meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;

use super::connection::Traffic;
use super::fleet::Fleet;
use super::held::Held;
use super::moves::Moves;
use super::programs::Role;
use super::settled;
use super::step::Step;
use super::world::World;

/// The timeout until the fleet has settled: a failed reconcile is tried again within 30 s, and a scheduling
/// that did not fit within 5 minutes; an eviction ends after 10 minutes.
const SETTLES_WITHIN: Duration = Duration::from_mins(25);

/// The interval between two looks at the objects.
const LOOK: Duration = Duration::from_secs(10);

/// The number of successive looks without a write after which the fleet is compared with the model: an Event
/// may wait for 30 s.
const CALM_LOOKS: u32 = 4;

/// A fleet in a run, and what is known about its past.
#[derive(Debug)]
pub(crate) struct Play {
    fleet: Fleet,
    traffic: Traffic,
    held: Held,
    moves: Moves,
    /// The versions of the objects that were observed last.
    versions: Vec<u64>,
}

impl Play {
    pub(crate) async fn new(traffic: Traffic) -> Result<Self> {
        Ok(Self {
            fleet: Fleet::new(traffic.clone()).await?,
            traffic,
            held: Held::default(),
            moves: Moves::default(),
            versions: Vec::new(),
        })
    }

    /// Returns the number of times that each fault was applied.
    pub(crate) fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.fleet.faults()
    }

    /// Applies the steps, ends every fault, and waits until the fleet has settled. Then nothing may write for
    /// as long as `quiet`, not even a program that starts anew.
    pub(crate) async fn run(&mut self, steps: &[Step], quiet: Duration) -> Result<()> {
        self.observe(None).await?;
        self.fleet.programs.revive(&self.fleet.apis).await?;
        for (nth, step) in steps.iter().enumerate() {
            let applied = self.apply(step).await;
            applied.with_context(|| format!("in step {nth}, {step:?}"))?;
        }
        if steps.contains(&Step::Upgrade) {
            self.apply(&Step::Settle).await?;
            // Only a start shows the default of a template that nobody writes, and Works get it then.
            self.restart().await?;
        }
        self.apply(&Step::Settle).await?;
        self.stay_quiet(quiet).await?;
        self.restart().await?;
        let restarted = self.stay_quiet(quiet / 10).await;
        restarted.context("after a restart")
    }

    async fn restart(&mut self) -> Result<()> {
        self.traffic.note("every program starts again");
        for program in Role::ALL {
            self.fleet.programs.kill(program).await;
        }
        self.fleet.programs.revive(&self.fleet.apis).await
    }

    async fn apply(&mut self, step: &Step) -> Result<()> {
        self.traffic.note(&format!("{step:?}"));
        self.fleet.apply(step).await?;
        self.observe(Some(step)).await?;
        if *step == Step::Settle {
            self.settle().await?;
        }
        Ok(())
    }

    /// Checks the properties that hold at every moment.
    async fn observe(&mut self, step: Option<&Step>) -> Result<()> {
        if let Some(ended) = self.fleet.programs.ended() {
            bail!("{} ended by itself", ended.name());
        }
        if let Some(request) = self.traffic.without_pause() {
            bail!("a program repeats a request without a pause: {request}");
        }
        let versions = self.fleet.apis.versions();
        if step.is_none() && versions == self.versions {
            return none(&self.held.observe(None, self.moves.world()));
        }
        let world = World::read(&self.fleet.apis).await?;
        self.versions = versions;
        none(&self.held.observe(step, &world))?;
        none(&self.moves.observe(step, world))
    }

    /// Waits until no program writes and the objects match the model.
    async fn settle(&mut self) -> Result<()> {
        let begun = Instant::now();
        let (mut seen, mut calm) = (self.traffic.writes(), 0);
        loop {
            tokio::time::sleep(LOOK).await;
            self.observe(None).await?;
            let is_restless = self.traffic.writes() > seen || self.traffic.is_waiting();
            seen = self.traffic.writes();
            calm = if is_restless { 0 } else { calm + 1 };
            let differences = if calm < CALM_LOOKS {
                vec!["programs still write, or did a moment ago".to_owned()]
            } else {
                self.differences()
            };
            if differences.is_empty() {
                return none(&self.moves.settle());
            }
            ensure!(
                begun.elapsed() < SETTLES_WITHIN,
                "not settled after {SETTLES_WITHIN:?}: {}",
                differences.join("; ")
            );
        }
    }

    fn differences(&self) -> Vec<String> {
        settled::differences(self.moves.world(), &self.fleet.history)
    }

    /// Checks that no program writes for `quiet`, and that the objects still match the model then.
    async fn stay_quiet(&mut self, quiet: Duration) -> Result<()> {
        let seen = self.traffic.writes();
        tokio::time::sleep(quiet).await;
        self.observe(None).await?;
        if let Some(write) = self.traffic.writes_since(seen).first() {
            bail!("a write in a settled fleet: {write}");
        }
        none(&self.differences()).context("the fleet did not stay settled")
    }
}

/// Fails with what was found, if anything was.
fn none(found: &[String]) -> Result<()> {
    ensure!(found.is_empty(), "{}", found.join("; "));
    Ok(())
}
