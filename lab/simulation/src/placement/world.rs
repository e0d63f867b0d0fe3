//! The world of placements.

use std::time::Duration;

use anyhow::Result;
use embedded_apiserver::ApiServer;
use karmada_runtime::program::Program;
use proptest::strategy::{BoxedStrategy, Strategy};

use super::fleet::Members;
use super::programs::{self, Role};
use super::sequences::sequences;
use super::snapshot::Snapshot;
use super::step::{Change, Step};
use super::{namespaced, settled};
use crate::harness::clusters::CLUSTERS;
use crate::harness::{Api, Connections, Property, Record, Timing, World};

/// The property that members hold the objects that the placements ask for.
#[derive(Clone, Copy, Debug)]
pub struct Placement;

impl Property for Placement {
    type World = Members;
    const NAME: &'static str = "placement";
    const FAILED_ONCE: &'static str = include_str!("../../placement-seeds.txt");
    const SEEDS: &'static str = "lab/simulation/placement-seeds.txt";
    // Twice the longest wait of a program, that for an agent that is silent.
    const QUIET: Duration = Duration::from_mins(10);

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }
}

impl World for Members {
    type Change = Change;
    type Role = Role;
    const TIMING: Timing = Timing {
        look: Duration::from_secs(10),
        // An Event may wait for 30 s.
        calm_looks: 4,
        // A failed reconcile is tried again within 30 s, and an agent that was silent is heard of within a minute.
        settles_within: Duration::from_mins(20),
        after_restart: Some(5),
    };
    // For each cluster, one of its agent, and its copy.
    const HEARTBEATS: usize = 2 * CLUSTERS as usize;

    async fn new(_: &Record<Role>) -> Result<Self> {
        Self::begin().await
    }

    async fn assemble(&self, connections: Connections<Role>) -> Result<Program> {
        programs::assemble(&self.apis, &connections)
    }

    async fn apply(&mut self, change: &Change) -> Result<()> {
        self.change(change).await
    }

    fn servers(&self) -> Vec<ApiServer> {
        self.apis.all()
    }

    async fn server(&self, api: Api) -> Result<Option<ApiServer>> {
        Ok(Some(match api {
            Api::Hub => self.apis.hub.clone(),
            Api::Member(cluster) => self.apis.member(cluster).clone(),
        }))
    }

    async fn observe(&mut self, step: Option<&Step>, is_changed: bool) -> Result<Vec<String>> {
        if is_changed {
            self.snapshot = Snapshot::read(&self.apis).await?;
        } else if step.is_none() {
            return Ok(Vec::new());
        }
        Ok(self.history.observe(step, &self.snapshot))
    }

    fn is_heartbeat(path: &str) -> bool {
        path.contains("memberclusters/") && path.contains("/status")
    }

    async fn differences(&self) -> Result<Vec<String>> {
        let mut found = settled::differences(&self.snapshot, &self.history);
        found.extend(namespaced::differences(&self.snapshot, &self.history));
        Ok(found)
    }

    fn settled(&mut self) -> Vec<String> {
        self.history.settle(&self.snapshot);
        Vec::new()
    }
}
