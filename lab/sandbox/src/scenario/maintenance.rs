use std::time::Duration;

use anyhow::{Result, ensure};

use super::script::Script;
use crate::picture::{Happened, Stage, Step};
use crate::world::Action;

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
        "promised: no request fails; seen: {failed} did"
    );
    Ok(())
}

async fn act(script: &Script<'_>, saying: &str, action: Action, step: Step) -> Result<Happened> {
    let newest = script.newest();
    script.act(saying, action).await?;
    script.since(newest, step, Duration::ZERO).await
}
