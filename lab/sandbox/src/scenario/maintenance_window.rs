use std::time::Duration;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};

use super::script::{MEMBER, Script};
use crate::new_remedy::{Acts, NewRemedy};
use crate::picture::{RemedyPhase, Stage, State, Step};
use crate::sandbox::Action;

/// The Remedy that opens the window.
const NAME: &str = "window";
/// The length of the window: longer than the limits of the steps within it.
const LENGTH: Duration = Duration::from_secs(15);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.state().errors();
    let end = Timestamp::now().checked_add(SignedDuration::try_from(LENGTH)?)?;
    let window = NewRemedy {
        name: NAME.to_owned(),
        clusters: Some(vec![MEMBER.to_owned()]),
        acts: Acts::AtOnce,
        expires_at: Some(end.to_string()),
        reason: None,
        observe_only: false,
    };
    let line = format!("creating Remedy {NAME}, which expires in {LENGTH:?}");
    let created = Step(Stage::RemedyCreated, true);
    let created = script.acts(&line, Action::CreateRemedy(window), created);
    let created = created.await?;
    script.block_follows(&created, Duration::ZERO).await?;
    let expired = Step(Stage::RemedyExpired, false);
    let expired = script.after(&created, expired, LENGTH).await?;
    script.block_ends(&expired).await?;
    let stays = "the Remedy stays, and says that it has expired";
    script
        .reach(stays, Duration::ZERO, |state| {
            phase(state) == Some(RemedyPhase::Expired)
        })
        .await?;
    let delete = Action::DeleteRemedy {
        remedy: NAME.to_owned(),
    };
    let deleted = Step(Stage::RemedyDeleted, false);
    script.acts("deleting it", delete, deleted).await?;
    script.none_failed_since(before)
}

fn phase(state: &State) -> Option<RemedyPhase> {
    let mut remedies = state.remedies.iter();
    let window = remedies.find(|remedy| remedy.name == NAME);
    window.map(|remedy| remedy.phase)
}
