use std::time::Duration;

use anyhow::Result;

use super::script::{MEMBER, Script};
use crate::fault::DnsFault;
use crate::picture::{Stage, Step};
use crate::sandbox::Action;

/// A lease that is not released expires after 15 s, and is then taken within a second.
const LEASE: Duration = Duration::from_secs(16);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let broken = script.dns(DnsFault::Servfail).await?;
    script.traffic_leaves(&broken).await?;
    let newest = script.newest();
    let node = script.leader()?;
    let kill = Action::KillAgent {
        cluster: MEMBER.to_owned(),
        node: node.clone(),
    };
    script
        .act(&format!("killing the agent of {node}, the leader"), kill)
        .await?;
    let killed = script
        .since(newest, Step(Stage::AgentGone, false), Duration::ZERO)
        .await?;
    script
        .after(&killed, Step(Stage::Leader, true), LEASE)
        .await?;
    let unblocking = [Step(Stage::Actions, true), Step(Stage::Unblocked, true)];
    script.nothing_since(
        broken.id,
        &unblocking,
        "the cluster stays blocked while no agent is the leader",
    )?;

    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await?;
    let start = Action::StartAgent {
        cluster: MEMBER.to_owned(),
        node,
    };
    script.act("starting that agent again", start).await
}
