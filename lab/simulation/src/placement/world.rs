//! The world of placements.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use proptest::strategy::{BoxedStrategy, Strategy};

use super::clusters::CLUSTERS;
use super::fleet::Fleet;
use super::history::History;
use super::namespaced;
use super::role::Role;
use super::sequences::sequences;
use super::settled;
use super::snapshot::Snapshot;
use super::step::Step;
use crate::harness::traffic::Traffic;
use crate::harness::{Figures, Log, Property, Timing, World, settle, stay_quiet};

/// The property that members hold what the placements ask for.
#[derive(Clone, Copy, Debug)]
pub struct Placement;

impl Property for Placement {
    type World = Members;
    const NAME: &'static str = "placement";
    const FAILED_ONCE: &'static str = include_str!("../../placement-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/placement-seeds.txt";
    // Twice what the longest wait of a program takes, that for an agent that is silent.
    const QUIET: Duration = Duration::from_mins(10);

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }
}

/// The most writes of the heartbeats of one cluster in a minute: one of its agent, and its copy.
const HEARTBEATS: usize = 2;

/// A hub and its members in a run, and what is known about their past.
#[derive(Debug)]
pub struct Members {
    fleet: Fleet,
    traffic: Traffic,
    history: History,
    snapshot: Snapshot,
    /// The versions of the objects that were observed last.
    versions: Vec<u64>,
}

impl Members {
    /// Starts every program anew.
    async fn restart(&mut self) -> Result<()> {
        self.traffic.note("every program starts again");
        for program in Role::all() {
            self.fleet.programs.kill(program).await;
        }
        self.fleet.programs.revive(&self.fleet.apis).await
    }

    /// Notes a step, if there was one, and checks what must hold at every moment.
    async fn observe(&mut self, step: Option<&Step>) -> Result<()> {
        if let Some(ended) = self.fleet.programs.ended() {
            bail!("{} ended by itself", ended.process());
        }
        self.traffic.check_pace()?;
        let servers = self.fleet.apis.all();
        let versions = servers.map(embedded_apiserver::ApiServer::version);
        let versions: Vec<_> = versions.collect();
        if versions != self.versions {
            self.snapshot = Snapshot::read(&self.fleet.apis).await?;
            self.versions = versions;
        } else if step.is_none() {
            return Ok(());
        }
        let found = self.history.observe(step, &self.snapshot);
        ensure!(found.is_empty(), "{}", found.join("; "));
        Ok(())
    }

    /// Lets nothing but heartbeats write for as long as `quiet`, and those no more often than they should.
    async fn rest(&mut self, quiet: Duration) -> Result<()> {
        let before = self.traffic.writes();
        stay_quiet(self, quiet).await?;
        let heartbeats = self.traffic.writes() - before;
        let minutes = usize::try_from(quiet.as_secs() / 60)? + 1;
        let most = usize::from(CLUSTERS) * HEARTBEATS * minutes;
        ensure!(
            heartbeats <= most,
            "{heartbeats} heartbeats in {quiet:?}, over {most}"
        );
        Ok(())
    }
}

/// Returns `true` for the write of a heartbeat, or its copy.
fn is_heartbeat(write: &str) -> bool {
    write.contains("memberclusters/") && write.contains("/status")
}

impl World for Members {
    type Step = Step;
    // 2026-01-01T00:00:00Z
    const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);
    const TIMING: Timing = Timing {
        look: Duration::from_secs(10),
        // An Event may wait for 30 s.
        calm_looks: 4,
        // A failed reconcile is tried again within 30 s, and an agent that was silent is heard of within a minute.
        settles_within: Duration::from_mins(20),
    };

    async fn new() -> Result<Self> {
        let traffic = Traffic::new();
        Ok(Self {
            fleet: Fleet::new(traffic.clone()).await?,
            traffic,
            history: History::default(),
            snapshot: Snapshot::default(),
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
        let writes = self.traffic.writes_since(position);
        writes.into_iter().find(|write| !is_heartbeat(write))
    }

    fn unrest(&self) -> Option<String> {
        self.traffic.unrest()
    }

    async fn differences(&mut self) -> Result<Vec<String>> {
        let mut found = settled::differences(&self.snapshot, &self.history);
        found.extend(namespaced::differences(&self.snapshot, &self.history));
        Ok(found)
    }

    fn settled(&mut self) -> Result<()> {
        self.history.settle(&self.snapshot);
        Ok(())
    }

    /// Checks in addition that programs that start anew find nothing to write.
    async fn finish(&mut self, _: &[Step], quiet: Duration) -> Result<()> {
        self.apply(&Step::Settle).await?;
        self.rest(quiet).await?;
        self.restart().await?;
        let restarted = self.rest(quiet / 5).await;
        restarted.context("after a restart")
    }

    fn figures(&self) -> Figures {
        Figures {
            requests: self.traffic.requests(),
            judged: self
                .traffic
                .judged([Role::Controller, Role::Agent(0)].map(Role::name)),
            faults: self.fleet.faults(),
        }
    }

    fn log(&self) -> Box<dyn Log> {
        Box::new(self.traffic.clone())
    }
}
