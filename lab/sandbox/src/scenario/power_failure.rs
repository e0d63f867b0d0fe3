use std::time::Duration;

use anyhow::Result;

use super::script::Script;
use crate::fault::Outage;
use crate::picture::{Stage, Step};

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let lost = script.outage(Outage::PowerOff, Stage::ReachLost).await?;
    let condition = script
        .after(&lost, Step(Stage::Condition, false), script.until_failed())
        .await?;
    script.block_follows(&condition, Duration::ZERO).await?;
    let back = script.outage(Outage::None, Stage::ReachBack).await?;
    script.traffic_returns(&back).await
}
