use std::time::Duration;

use anyhow::Result;

use super::script::{MEMBER, Script};
use crate::facts::DnsFault;
use crate::picture::{Stage, Step};
use crate::world::Action;

/// A lease that is not given back runs out after this long, and is then taken within a second.
const LEASE: Duration = Duration::from_secs(16);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let broken = script.dns(DnsFault::Servfail).await?;
    script.traffic_leaves(&broken).await?;
    let newest = script.newest();
    let cluster = || MEMBER.to_owned();
    let node = script.leader()?;
    let kill = Action::KillAgent {
        cluster: cluster(),
        node: node.clone(),
    };
    script
        .act(&format!("killing the agent of {node}, which leads"), kill)
        .await?;
    let killed = script
        .since(newest, Step(Stage::AgentGone, false), Duration::ZERO)
        .await?;
    script
        .after(&killed, Step(Stage::Leader, true), LEASE)
        .await?;
    let lifted = [Step(Stage::Actions, true), Step(Stage::Unblocked, true)];
    script.nothing_since(broken.id, &lifted, "the block stands while no agent leads")?;

    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await?;
    let start = Action::StartAgent {
        cluster: cluster(),
        node,
    };
    script.act("starting that agent again", start).await
}
