//! Decides from the leader's requests when this agent campaigns for the lease.

use karmada_rules::health::campaign::{Candidacy, ElectionView, LeaderContact, spread};
use karmada_runtime::error::BoxError;
use karmada_runtime::lease::{CampaignMode, DURATION};
use karmada_runtime::program::Program;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Spawns the decision as a task of `program`. `contacts` has the leader's last request, `known` the
/// number of agents.
pub(crate) fn start(
    program: &mut Program,
    contacts: watch::Receiver<Option<LeaderContact>>,
    known: watch::Receiver<Option<usize>>,
) -> watch::Receiver<CampaignMode> {
    let (decided, seeking) = watch::channel(CampaignMode::Off);
    let task = run(contacts, known, decided, program.stopping.clone());
    program.tasks.spawn("campaign", task);
    seeking
}

/// Keeps `seeking` up to date until the program stops.
async fn run(
    mut contacts: watch::Receiver<Option<LeaderContact>>,
    mut known: watch::Receiver<Option<usize>>,
    seeking: watch::Sender<CampaignMode>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let started = Instant::now().into_std();
    // Drawn once, so that each agent keeps its turn while the number of agents changes.
    let share = fastrand::f64();
    loop {
        let view = ElectionView {
            started,
            contact: *contacts.borrow_and_update(),
            known: *known.borrow_and_update(),
        };
        let turn = CampaignMode::Spread(spread(view.known.unwrap_or_default()));
        let (now, later) = match view.candidacy(DURATION, share) {
            Candidacy::Never => (CampaignMode::Off, None),
            Candidacy::StandBy => (CampaignMode::Eager, None),
            Candidacy::From(at) if at <= Instant::now().into_std() => (turn, None),
            Candidacy::From(at) => (CampaignMode::Off, Some(Instant::from_std(at))),
        };
        seeking.send_if_modified(|before| std::mem::replace(before, now) != now);
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            Ok(()) = contacts.changed() => {}
            Ok(()) = known.changed() => {}
            () = sleep_until(later.unwrap_or_else(Instant::now)), if later.is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests;
