use std::time::Duration;

use anyhow::{Result, ensure};

use super::script::Script;
use crate::fault::DnsFault;
use crate::picture::{RolloutState, Stage, Step};
use crate::sandbox::Action;

/// The time that a change takes to reach a member, and its pods to become ready.
const ROLLED_OUT: Duration = Duration::from_secs(3);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let newest = script.newest();
    let pause = Action::Pause { cluster: None };
    script
        .act("pausing the rollout in every cluster", pause)
        .await?;
    script
        .reach("every cluster is paused", Duration::ZERO, |state| {
            state.rollout.clusters.iter().all(|cluster| cluster.paused)
        })
        .await?;
    let line = "giving the Deployment a new version";
    script.act(line, Action::NewVersion {}).await?;
    let wanted = Step(Stage::VersionWanted, true);
    script.since(newest, wanted, Duration::ZERO).await?;
    let before = script.state().rollout;

    let broken = script.dns(DnsFault::Refuse).await?;
    script.traffic_leaves(&broken).await?;
    let held = script.state().rollout;
    ensure!(
        held == before,
        "expected: only traffic moves while the rollout is paused; observed: {held:?}"
    );

    let resume = Action::Resume { cluster: None };
    script.act("resuming the rollout", resume).await?;
    let complete = script
        .reach("every cluster runs the new version", ROLLED_OUT, |state| {
            state.rollout.is_complete()
        })
        .await?;
    let [first, last] = [&before, &complete.rollout].map(changes);
    let once: Vec<_> = first.iter().map(|count| count + 1).collect();
    ensure!(
        last == once,
        "expected: each cluster gets one change; observed: {last:?} after {first:?}"
    );
    let returning = [Step(Stage::Unblocked, true), Step(Stage::TrafficBack, true)];
    let expected = "a new version brings no traffic back while DNS is broken";
    script.nothing_since(broken.id, &returning, expected)?;

    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await
}

/// Returns the number of changes that each cluster has got.
fn changes(rollout: &RolloutState) -> Vec<i64> {
    let clusters = rollout.clusters.iter();
    clusters.map(|cluster| cluster.generation).collect()
}
