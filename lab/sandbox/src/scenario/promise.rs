//! What is promised of every outage, of every block, and of the members that nothing happens to.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use karmada_api::TRAFFIC_CONTROL;
use karmada_api::condition::{DNS_READY, REPORTER_READY, TRUE};

use super::script::{MEMBER, Script};
use crate::facts::Vote;
use crate::picture::{ClusterState, Happened, Stage, State, Step};

/// What an agent adds to its threshold and its period until it writes the condition.
const AGENT: Duration = Duration::from_secs(1);
/// Until all is well, besides the thresholds.
const SETTLING: Duration = Duration::from_mins(1);
/// Requests that must all go elsewhere, and well, while a cluster is blocked.
const WHILE_BLOCKED: u64 = 100;

impl Script<'_> {
    /// Waits for the member's traffic to go away, stage by stage, after its DNS broke.
    pub(super) async fn traffic_leaves(&self, broken: &Happened) -> Result<()> {
        let condition = self
            .after(broken, Step(Stage::Condition, false), self.until_failed())
            .await?;
        let Self { thresholds, .. } = self;
        let least = thresholds.failure().saturating_sub(thresholds.period());
        let took = condition.at.saturating_duration_since(broken.at);
        ensure!(
            took >= least,
            "promised: no verdict before {least:?} of failures; seen: after {took:?}"
        );
        self.block_follows(&condition, Duration::ZERO).await
    }

    /// Waits for a block to be carried out, stage by stage, within so long after its `cause`.
    pub(super) async fn block_follows(&self, cause: &Happened, limit: Duration) -> Result<()> {
        for stage in [Stage::Actions, Stage::Blocked, Stage::TrafficGone] {
            let good = stage == Stage::TrafficGone;
            self.after(cause, Step(stage, good), limit).await?;
        }
        self.served_elsewhere().await
    }

    /// Waits for the member's traffic to come back, stage by stage, after its DNS was mended.
    pub(super) async fn traffic_returns(&self, mended: &Happened) -> Result<()> {
        let limit = self.thresholds.success() + self.thresholds.period() + AGENT;
        let condition = self
            .after(mended, Step(Stage::Condition, true), limit)
            .await?;
        self.block_ends(&condition).await
    }

    /// Waits for the end of a block to be carried out, stage by stage.
    pub(super) async fn block_ends(&self, cause: &Happened) -> Result<()> {
        for stage in [Stage::Actions, Stage::Unblocked, Stage::TrafficBack] {
            self.after(cause, Step(stage, true), Duration::ZERO).await?;
        }
        Ok(())
    }

    /// The longest from broken DNS to the verdict.
    pub(super) fn until_failed(&self) -> Duration {
        self.thresholds.failure() + self.thresholds.period() + AGENT
    }

    /// Waits until many requests were served, none of them by the member and none badly.
    async fn served_elsewhere(&self) -> Result<()> {
        let before = self.state();
        let enough = |state: &State| state.requests() >= before.requests() + WHILE_BLOCKED;
        let after = self.reach("requests go on", Duration::ZERO, enough).await?;
        let of_member = |state: &State| state.cluster(MEMBER).map_or(0, |member| member.requests);
        let to_member = of_member(&after) - of_member(&before);
        let failed = after.errors() - before.errors();
        ensure!(
            to_member == 0 && failed == 0,
            "promised: while {MEMBER} is blocked it gets no request and none fails; seen: it got {to_member}, and {failed} failed"
        );
        Ok(())
    }

    /// Waits until all is well: every node votes healthy, every condition says so, and every
    /// member gets requests.
    pub(super) async fn settled(&self) -> Result<()> {
        let limit = SETTLING + self.thresholds.success();
        let all_is_well = |state: &State| state.clusters.iter().all(is_well);
        self.reach("all is well", limit, all_is_well).await?;
        Ok(())
    }

    /// Says that none of these steps has happened to the member after that id.
    pub(super) fn nothing_since(&self, id: u64, steps: &[Step], promised: &str) -> Result<()> {
        self.none(promised, |happened, cluster| {
            happened.id > id && cluster == MEMBER && steps.contains(&happened.step())
        })
    }

    /// Says that nothing was taken away from any other member after that id.
    pub(super) fn others_untouched(&self, id: u64) -> Result<()> {
        let taken = [Stage::Condition, Stage::Actions, Stage::Blocked];
        self.none(&format!("only {MEMBER} is touched"), |happened, cluster| {
            happened.id > id && cluster != MEMBER && taken.contains(&happened.stage)
        })
    }

    fn none(&self, promised: &str, unwanted: impl Fn(&Happened, &str) -> bool) -> Result<()> {
        let story = self.record.story.borrow();
        let found = story.iter().find(|happened| {
            let cluster = happened.cluster.as_deref();
            cluster.is_some_and(|cluster| unwanted(happened, cluster))
        });
        match found {
            None => Ok(()),
            Some(happened) => bail!("promised: {promised}; seen: {}", happened.text),
        }
    }
}

fn is_well(cluster: &ClusterState) -> bool {
    let nodes_agree = cluster.nodes.iter().all(|node| node.vote == Vote::Healthy);
    let is_true = |kind| {
        let mut conditions = cluster.conditions.iter();
        conditions.any(|condition| condition.kind == kind && condition.status == TRUE)
    };
    let is_ready = is_true(DNS_READY) && is_true(REPORTER_READY);
    let mut actions = cluster.actions.iter();
    let is_free = !cluster.blocked && actions.all(|action| action.action != TRAFFIC_CONTROL);
    let is_led = cluster.nodes.iter().any(|node| node.leader);
    let is_used = cluster.requests_per_second > 0 && cluster.errors_per_second == 0;
    nodes_agree && is_ready && is_free && is_led && is_used
}
