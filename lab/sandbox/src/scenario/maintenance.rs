use std::time::Duration;

use anyhow::{Result, ensure};

use super::script::Script;
use crate::picture::{Stage, Step, TimelineEntry};
use crate::sandbox::Action;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.state().errors();
    let remedy = "maintenance".to_owned();
    let created = act(
        script,
        "creating Remedy maintenance-member1",
        Action::CreateRemedy {
            remedy: remedy.clone(),
        },
        Step(Stage::RemedyCreated, true),
    );
    script
        .block_follows(&created.await?, Duration::ZERO)
        .await?;
    let deleted = act(
        script,
        "deleting it",
        Action::DeleteRemedy { remedy },
        Step(Stage::RemedyDeleted, false),
    );
    script.block_ends(&deleted.await?).await?;
    let failed = script.state().errors() - before;
    ensure!(
        failed == 0,
        "expected: no request fails; observed: {failed} failed"
    );
    Ok(())
}

async fn act(script: &Script<'_>, line: &str, action: Action, step: Step) -> Result<TimelineEntry> {
    let newest = script.newest();
    script.act(line, action).await?;
    script.since(newest, step, Duration::ZERO).await
}
