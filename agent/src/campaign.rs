//! Tells the lease's driver when to seek the lease, as the leader's questions have it.

use karmada_rules::health::campaign::{Candidacy, LeaderContact, Situation, spread};
use karmada_runtime::error::BoxError;
use karmada_runtime::lease::{CampaignMode, DURATION};
use karmada_runtime::program::Program;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::peers;

/// Decides, in a task of `program`, when the lease is to be sought.
pub(crate) fn start(
    program: &mut Program,
    asked: watch::Receiver<Option<peers::Asked>>,
    known: watch::Receiver<Option<usize>>,
) -> watch::Receiver<CampaignMode> {
    let (sought, seeking) = watch::channel(CampaignMode::Off);
    let task = run(asked, known, sought, program.stopping.clone());
    program.tasks.spawn("campaign", task);
    seeking
}

/// Keeps `seeking` at what follows from when a leader `asked` and how many agents are `known`, until
/// the program stops.
async fn run(
    mut asked: watch::Receiver<Option<peers::Asked>>,
    mut known: watch::Receiver<Option<usize>>,
    seeking: watch::Sender<CampaignMode>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let started = Instant::now().into_std();
    let share = fastrand::f64();
    loop {
        let situation = Situation {
            started,
            contact: asked.borrow_and_update().map(|asked| LeaderContact {
                at: asked.at.into_std(),
                standby: asked.standby,
            }),
            known: *known.borrow_and_update(),
        };
        let campaign = situation.candidacy(DURATION, share);
        let turn = CampaignMode::Spread(spread(situation.known.unwrap_or_default()));
        let (now, later) = match campaign {
            Candidacy::Never => (CampaignMode::Off, None),
            Candidacy::StandBy => (CampaignMode::Eager, None),
            Candidacy::From(at) if at <= Instant::now().into_std() => (turn, None),
            Candidacy::From(at) => (CampaignMode::Off, Some(Instant::from_std(at))),
        };
        seeking.send_if_modified(|before| std::mem::replace(before, now) != now);
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            Ok(()) = asked.changed() => {}
            Ok(()) = known.changed() => {}
            () = sleep_until(later.unwrap_or_else(Instant::now)), if later.is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests;
