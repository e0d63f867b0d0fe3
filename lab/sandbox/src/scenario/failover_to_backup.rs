use std::time::Duration;

use anyhow::{Result, ensure};

use super::script::{MEMBER, Script};
use crate::failover::{Placement, TOLERATION};
use crate::fault::DnsFault;
use crate::picture::{Stage, State, Step};
use crate::sandbox::Action;

/// The cluster that is in the backup group only.
const BACKUP: &str = "member3";
/// The time that a workload takes to move: its new pods become ready, their health is reported, and the old
/// copy goes.
const MOVED: Duration = Duration::from_secs(10);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let placement = Placement::WithBackup;
    let line = format!("placing the Deployment in member1 and member2, with {BACKUP} as a backup");
    script.act(&line, Action::Place { placement }).await?;
    script
        .reach("the backup is empty", MOVED, |state| {
            !runs(state, BACKUP) && !serves(state, BACKUP)
        })
        .await?;

    moves(script).await?;
    goes_back_when_asked(script).await?;
    let placement = Placement::Everywhere;
    let line = "placing the Deployment in every cluster again";
    script.act(line, Action::Place { placement }).await
}

/// Breaks DNS, and checks that first the traffic leaves and then the workload.
async fn moves(script: &Script<'_>) -> Result<()> {
    let broken = script.dns(DnsFault::Refuse).await?;
    script.traffic_leaves(&broken).await?;
    let left = script.state();
    ensure!(
        runs(&left, MEMBER) && !runs(&left, BACKUP),
        "expected: only traffic has moved; observed: {:?}",
        left.rollout
    );
    let tainted = script
        .after(&broken, Step(Stage::Taints, false), script.until_failed())
        .await?;
    script
        .after(
            &tainted,
            Step(Stage::VersionRuns, false),
            TOLERATION + MOVED,
        )
        .await?;
    let moved = script
        .reach("the backup serves", MOVED, |state| {
            runs(state, BACKUP) && serves(state, BACKUP)
        })
        .await?;
    let failed = moved.errors() - left.errors();
    ensure!(
        failed == 0,
        "expected: no request fails while the workload moves; observed: {failed} failed"
    );
    Ok(())
}

/// Mends DNS, and checks that the workload stays where it is until it is asked for, and that traffic comes after
/// it.
async fn goes_back_when_asked(script: &Script<'_>) -> Result<()> {
    let mended = script.dns(DnsFault::None).await?;
    for stage in [Stage::Condition, Stage::Taints, Stage::Unblocked] {
        script
            .after(&mended, Step(stage, true), script.until_failed())
            .await?;
    }
    let back = [
        Step(Stage::VersionRuns, true),
        Step(Stage::TrafficBack, true),
    ];
    let expected = "the workload goes back only when asked, and requests only with it";
    script.nothing_since(mended.id, &back, expected)?;

    let newest = script.newest();
    let line = "having the Deployment's clusters chosen anew";
    script.act(line, Action::Reschedule {}).await?;
    let running = script
        .since(newest, Step(Stage::VersionRuns, true), MOVED)
        .await?;
    script
        .after(&running, Step(Stage::TrafficBack, true), MOVED)
        .await?;
    Ok(())
}

/// Returns `true` if the cluster has pods of the Deployment that are ready.
fn runs(state: &State, cluster: &str) -> bool {
    let mut clusters = state.rollout.clusters.iter();
    clusters.any(|it| it.name == cluster && it.runs.is_some())
}

/// Returns `true` if the cluster got requests in the last second.
fn serves(state: &State, cluster: &str) -> bool {
    let cluster = state.cluster(cluster);
    cluster.is_some_and(|cluster| cluster.requests_per_second > 0)
}
