//! The checks that scenarios share: of an outage, of a block, and of the members that must not be
//! touched.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use karmada_api::TRAFFIC_CONTROL;
use karmada_api::condition::{
    DNS_READY, GATEWAY_REPORTER_READY, REACHABLE, REPORTER_READY, SERVICE_NETWORK_READY, TRUE,
};

use super::script::{MEMBER, Script};
use crate::node_vote::Vote;
use crate::picture::{ClusterState, Stage, Step, TimelineEntry};

/// The time beyond its threshold and its period that an agent has to write the condition.
const AGENT: Duration = Duration::from_secs(1);
/// The time beyond the thresholds until all is well.
const SETTLING: Duration = Duration::from_mins(1);
/// The requests that must all go elsewhere, and succeed, while a cluster is blocked.
const WHILE_BLOCKED: u64 = 100;

impl Script<'_> {
    /// Waits until the member's traffic is gone, stage by stage, after its DNS broke.
    pub(super) async fn traffic_leaves(&self, broken: &TimelineEntry) -> Result<()> {
        let condition = self
            .after(broken, Step(Stage::Condition, false), self.until_failed())
            .await?;
        let Self { thresholds, .. } = self;
        let least = thresholds.threshold.saturating_sub(thresholds.period);
        let took = condition.at.saturating_duration_since(broken.at);
        ensure!(
            took >= least,
            "expected: no verdict before {least:?} of failures; observed: after {took:?}"
        );
        self.block_follows(&condition, Duration::ZERO).await
    }

    /// Waits until the member is blocked and its traffic gone, stage by stage, within a limit after the
    /// `cause`.
    pub(super) async fn block_follows(&self, cause: &TimelineEntry, limit: Duration) -> Result<()> {
        for stage in [Stage::Actions, Stage::Blocked, Stage::TrafficGone] {
            let good = stage == Stage::TrafficGone;
            self.after(cause, Step(stage, good), limit).await?;
        }
        self.served_elsewhere().await
    }

    /// Waits until the member's traffic is back, stage by stage, after its DNS was mended.
    pub(super) async fn traffic_returns(&self, mended: &TimelineEntry) -> Result<()> {
        let limit = self.thresholds.threshold + self.thresholds.period + AGENT;
        let condition = self
            .after(mended, Step(Stage::Condition, true), limit)
            .await?;
        self.block_ends(&condition).await
    }

    /// Waits until the member is unblocked and its traffic back, stage by stage.
    pub(super) async fn block_ends(&self, cause: &TimelineEntry) -> Result<()> {
        for stage in [Stage::Actions, Stage::Unblocked, Stage::TrafficBack] {
            self.after(cause, Step(stage, true), Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Returns the longest time from broken DNS to the verdict.
    pub(super) fn until_failed(&self) -> Duration {
        self.thresholds.threshold + self.thresholds.period + AGENT
    }

    /// Waits for many requests, of which none may go to the member and none may fail.
    async fn served_elsewhere(&self) -> Result<()> {
        let before = self.state();
        let enough = before.requests() + WHILE_BLOCKED;
        let after = self
            .reach("requests that continue", Duration::ZERO, |state| {
                state.requests() >= enough
            })
            .await?;
        let to_member = after.requests_to(MEMBER) - before.requests_to(MEMBER);
        let failed = after.errors() - before.errors();
        ensure!(
            to_member == 0 && failed == 0,
            "expected: while {MEMBER} is blocked it gets no request and none fails; observed: it got {to_member}, and {failed} failed"
        );
        Ok(())
    }

    /// Waits until all is well: every node votes healthy, every condition is True, every member gets
    /// requests, each runs the newest version, and all that is placed is available.
    pub(super) async fn settled(&self) -> Result<()> {
        let limit = SETTLING + self.thresholds.threshold;
        self.reach("all is well", limit, |state| {
            state.clusters.iter().all(is_well)
                && state.rollout.is_complete()
                && state.placements.is_complete()
        })
        .await?;
        Ok(())
    }

    /// Checks that none of these steps happened to the member after the entry of that id.
    pub(super) fn nothing_since(&self, id: u64, steps: &[Step], expected: &str) -> Result<()> {
        self.none(expected, |entry, cluster| {
            entry.id > id && cluster == MEMBER && steps.contains(&entry.step())
        })
    }

    /// Checks that no request failed since there were so many errors.
    pub(super) fn none_failed_since(&self, errors: u64) -> Result<()> {
        let failed = self.state().errors() - errors;
        ensure!(
            failed == 0,
            "expected: no request fails; observed: {failed} failed"
        );
        Ok(())
    }

    /// Checks that no other member was blocked, or even got a new verdict, after the entry of that id.
    pub(super) fn others_untouched(&self, id: u64) -> Result<()> {
        let touched = [Stage::Condition, Stage::Actions, Stage::Blocked];
        self.none(&format!("only {MEMBER} is touched"), |entry, cluster| {
            entry.id > id && cluster != MEMBER && touched.contains(&entry.stage)
        })
    }

    fn none(&self, expected: &str, unwanted: impl Fn(&TimelineEntry, &str) -> bool) -> Result<()> {
        let timeline = self.record.timeline.borrow();
        let found = timeline.iter().find(|entry| {
            let cluster = entry.cluster.as_deref();
            cluster.is_some_and(|cluster| unwanted(entry, cluster))
        });
        match found {
            None => Ok(()),
            Some(entry) => bail!("expected: {expected}; observed: {}", entry.text),
        }
    }
}

fn is_well(cluster: &ClusterState) -> bool {
    let nodes_agree = cluster.nodes.iter().all(|node| node.vote == Vote::Healthy);
    let mut conditions = cluster.conditions.iter();
    let are_all_true = conditions.all(|condition| condition.status == TRUE);
    // An unsettled condition would look like an effect of the scenario.
    let told = [
        DNS_READY,
        SERVICE_NETWORK_READY,
        REPORTER_READY,
        REACHABLE,
        GATEWAY_REPORTER_READY,
    ];
    let is_ready = are_all_true
        && told.into_iter().all(|kind| {
            let mut conditions = cluster.conditions.iter();
            conditions.any(|condition| condition.kind == kind)
        });
    let mut actions = cluster.actions.iter();
    let is_free = !cluster.blocked && actions.all(|action| action.action != TRAFFIC_CONTROL);
    let is_led = cluster.nodes.iter().any(|node| node.leader);
    let is_used = cluster.requests_per_second > 0 && cluster.errors_per_second == 0;
    nodes_agree && is_ready && is_free && is_led && is_used
}
