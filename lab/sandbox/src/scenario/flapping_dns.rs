use anyhow::Result;

use super::script::Script;
use crate::fault::DnsFault;
use crate::picture::{Stage, Step};

/// The number of times that DNS fails and returns.
const FLAPS: usize = 3;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.newest();
    let while_failing = script.thresholds.threshold / 3;
    for _ in 0..FLAPS {
        let broken = script.dns(DnsFault::Refuse).await?;
        script.until_after(&broken, while_failing).await;
        script.dns(DnsFault::None).await?;
    }
    let blocking = [Step(Stage::Condition, false), Step(Stage::Blocked, false)];
    script.nothing_since(
        before,
        &blocking,
        "DNS that fails for a moment blocks nothing",
    )?;

    let broken = script.dns(DnsFault::Refuse).await?;
    script.traffic_leaves(&broken).await?;
    let before = script.newest();
    for _ in 0..FLAPS {
        let mended = script.dns(DnsFault::None).await?;
        script
            .until_after(&mended, script.thresholds.threshold / 2)
            .await;
        let broken = script.dns(DnsFault::Refuse).await?;
        // A node notices within one round; two leave room for the other nodes' phases.
        script
            .until_after(&broken, 2 * script.thresholds.period)
            .await;
    }
    let unblocking = [Step(Stage::Condition, true), Step(Stage::Unblocked, true)];
    script.nothing_since(
        before,
        &unblocking,
        "DNS that works for a moment unblocks nothing",
    )?;

    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await
}
