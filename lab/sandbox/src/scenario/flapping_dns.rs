use anyhow::Result;

use super::script::Script;
use crate::facts::DnsFault;
use crate::picture::{Stage, Step};

/// So often DNS comes and goes.
const FLAPS: usize = 3;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.newest();
    let while_failing = script.thresholds.failure() / 3;
    for _ in 0..FLAPS {
        let broken = script.dns(DnsFault::Refuse).await?;
        script.last(&broken, while_failing).await;
        script.dns(DnsFault::None).await?;
    }
    let taken = [Step(Stage::Condition, false), Step(Stage::Blocked, false)];
    script.nothing_since(before, &taken, "DNS that fails for a moment blocks nothing")?;

    let broken = script.dns(DnsFault::Refuse).await?;
    script.traffic_leaves(&broken).await?;
    let before = script.newest();
    for _ in 0..FLAPS {
        let mended = script.dns(DnsFault::None).await?;
        script.last(&mended, script.thresholds.success() / 2).await;
        let broken = script.dns(DnsFault::Refuse).await?;
        // Long enough for every node to notice.
        script.last(&broken, 2 * script.thresholds.period()).await;
    }
    let lifted = [Step(Stage::Condition, true), Step(Stage::Unblocked, true)];
    script.nothing_since(before, &lifted, "DNS that works for a moment lifts nothing")?;

    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await
}
