use std::time::Duration;

use anyhow::Result;

use super::script::Script;
use crate::picture::{Stage, Step};
use crate::sample_remedy::SampleRemedy;
use crate::sandbox::Action;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.state().errors();
    let remedy = SampleRemedy::Maintenance.name().to_owned();
    let line = format!("creating Remedy {remedy}");
    let create = Action::CreateSample {
        remedy: remedy.clone(),
    };
    let created = Step(Stage::RemedyCreated, true);
    let created = script.acts(&line, create, created).await?;
    script.block_follows(&created, Duration::ZERO).await?;
    let delete = Action::DeleteRemedy { remedy };
    let deleted = Step(Stage::RemedyDeleted, false);
    let deleted = script.acts("deleting it", delete, deleted).await?;
    script.block_ends(&deleted).await?;
    script.none_failed_since(before)
}
