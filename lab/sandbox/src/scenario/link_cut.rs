use std::time::Duration;

use anyhow::{Result, ensure};

use super::script::{MEMBER, Script};
use crate::fault::Outage;
use crate::picture::{Stage, Step};

/// The lease of the agents lasts 15 s, and the remedy controller waits for 60 s more until it calls them silent. Then the
/// cluster controller has long found the API away.
const SILENT: Duration = Duration::from_secs(75);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.state();
    let cut = script.outage(Outage::LinkCut, Stage::LinkLost).await?;
    script
        .after(&cut, Step(Stage::Reporter, false), SILENT)
        .await?;
    let after = script.state();
    let served = after.requests_to(MEMBER) - before.requests_to(MEMBER);
    ensure!(
        served > 0,
        "expected: {MEMBER} goes on to serve; observed: it got no request"
    );
    let blocking = [
        Step(Stage::Condition, false),
        Step(Stage::Actions, false),
        Step(Stage::Blocked, false),
    ];
    script.nothing_since(cut.id, &blocking, "silence of agents blocks nothing")?;
    script.none_failed_since(before.errors())?;
    let back = script.outage(Outage::None, Stage::LinkBack).await?;
    script
        .after(&back, Step(Stage::Reporter, true), SILENT)
        .await?;
    Ok(())
}
