//! The world of propagation.

use std::time::Duration;

use anyhow::Result;
use embedded_apiserver::ApiServer;
use karmada_runtime::program::Program;
use proptest::strategy::{BoxedStrategy, Strategy};

use super::fleet::Members;
use super::programs::{self, Role};
use super::sequences::{lazy_sequences, sequences};
use super::settled;
use super::snapshot::Snapshot;
use super::step::{Change, Step};
use crate::harness::{Api, Connections, Property, Record, Timing, World};

/// The property that members hold the copies that the policies ask for.
#[derive(Clone, Copy, Debug)]
pub struct Propagation;

impl Property for Propagation {
    type World = Members;
    const NAME: &'static str = "propagation";
    const FAILED_ONCE: &'static str = include_str!("../../propagation-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/propagation-seeds.txt";
    // Twice the longest wait of a program, that of an eviction.
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

impl World for Members {
    type Change = Change;
    type Role = Role;
    const TIMING: Timing = Timing {
        look: Duration::from_secs(10),
        // An Event may wait for 30 s.
        calm_looks: 4,
        // A failed reconcile is tried again within 30 s, and a scheduling that did not fit within 5 minutes; an
        // eviction ends after 10 minutes.
        settles_within: Duration::from_mins(25),
        after_restart: Some(10),
    };

    async fn new(_: &Record<Role>) -> Result<Self> {
        Self::begin().await
    }

    async fn assemble(&self, connections: Connections<Role>) -> Result<Program> {
        programs::assemble(&self.apis, connections, self.history.fails_back)
    }

    async fn apply(&mut self, change: &Change) -> Result<()> {
        self.change(change).await
    }

    fn restarted(change: &Change) -> Option<Role> {
        matches!(change, Change::FailBack { .. }).then_some(Role::Scheduler)
    }

    /// The default of a template that nobody writes shows at a start only, and Works get it then.
    fn is_noticed_at_start(change: &Change) -> bool {
        *change == Change::Upgrade
    }

    fn servers(&self) -> Vec<ApiServer> {
        self.apis.all()
    }

    async fn server(&self, api: Api) -> Result<Option<ApiServer>> {
        match api {
            Api::Hub => Ok(Some(self.apis.fleet.clone())),
            Api::Member(member) => self.member(member).await,
        }
    }

    async fn observe(&mut self, step: Option<&Step>, is_changed: bool) -> Result<Vec<String>> {
        if step.is_none() && !is_changed {
            return Ok(self.held.observe(None, self.moves.snapshot()));
        }
        let snapshot = Snapshot::read(&self.apis).await?;
        let mut found = self.held.observe(step, &snapshot);
        found.extend(self.moves.observe(step, snapshot));
        Ok(found)
    }

    async fn differences(&self) -> Result<Vec<String>> {
        Ok(settled::differences(self.moves.snapshot(), &self.history))
    }

    fn settled(&mut self) -> Vec<String> {
        self.moves.settle()
    }
}
