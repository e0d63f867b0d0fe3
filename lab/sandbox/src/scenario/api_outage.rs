use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::script::Script;
use crate::fault::DnsFault;
use crate::picture::{Stage, Step};
use crate::sandbox::Action;

/// The programs retry a lost API after 5 s at the latest, and an agent that lost its lease takes it
/// again within 15 s.
const RETURN: Duration = Duration::from_secs(20);
/// The outage lasts for this many seconds after every node must vote unhealthy.
const LONGER: u64 = 2;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let newest = script.newest();
    let seconds = script.until_failed().as_secs() + LONGER;
    let outage = Duration::from_secs(seconds);
    let line = format!("cutting the Karmada API off for {seconds} s");
    let cut = Instant::now();
    script.act(&line, Action::CutApi { seconds }).await?;
    let gone = script
        .since(newest, Step(Stage::ApiGone, false), Duration::ZERO)
        .await?;
    let broken = script.dns(DnsFault::Drop).await?;
    script
        .after(&broken, Step(Stage::Vote, false), script.until_failed())
        .await?;
    script
        .after(&gone, Step(Stage::ApiBack, true), outage)
        .await?;
    let condition = script
        .after(
            &broken,
            Step(Stage::Condition, false),
            script.until_failed() + outage + RETURN,
        )
        .await?;
    anyhow::ensure!(
        condition.at >= cut + outage,
        "expected: nothing is written while the API is cut off; observed: {}",
        condition.text
    );
    script.block_follows(&condition, RETURN).await?;
    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await
}
