use anyhow::Result;

use super::script::Script;
use crate::fault::DnsFault;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let broken = script.dns(DnsFault::Refuse).await?;
    script.traffic_leaves(&broken).await?;
    let mended = script.dns(DnsFault::None).await?;
    script.traffic_returns(&mended).await
}
