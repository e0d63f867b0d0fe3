//! Decides from the leader's requests when this agent campaigns for the lease.

use health::campaign::{Candidacy, ElectionView, LeaderContact, spread};
use karmada_runtime::error::BoxError;
use karmada_runtime::lease::{CampaignMode, DURATION};
use karmada_runtime::program::Program;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The facts that change while the program runs.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The leader's last request.
    pub(crate) contacts: watch::Receiver<Option<LeaderContact>>,
    /// The number of agents.
    pub(crate) known: watch::Receiver<Option<usize>>,
    /// The end of the last abstention.
    pub(crate) abstentions: watch::Receiver<Option<Instant>>,
}

/// Spawns the decision as a task of `program`, which keeps `seeking` up to date.
pub(crate) fn start(program: &mut Program, facts: Facts, seeking: watch::Sender<CampaignMode>) {
    let task = run(facts, seeking, program.stopping.clone());
    program.tasks.spawn("campaign", task);
}

/// Keeps `seeking` up to date until the program stops.
async fn run(
    mut facts: Facts,
    seeking: watch::Sender<CampaignMode>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let started = Instant::now().into_std();
    // Drawn once, so that each agent keeps its turn while the number of agents changes.
    let share = fastrand::f64();
    loop {
        let abstains_until = *facts.abstentions.borrow_and_update();
        let view = ElectionView {
            started,
            contact: *facts.contacts.borrow_and_update(),
            known: *facts.known.borrow_and_update(),
            abstains_until: abstains_until.map(Instant::into_std),
        };
        let turn = CampaignMode::Spread(spread(view.known.unwrap_or_default()));
        let now = Instant::now().into_std();
        let (mode, later) = match view.candidacy(now, DURATION, share) {
            Candidacy::Never => (CampaignMode::Off, None),
            Candidacy::StandBy(until) => (CampaignMode::Eager, Some(until)),
            Candidacy::Abstain(until) => (CampaignMode::Withdrawn, Some(until)),
            Candidacy::From(at) if at <= now => (turn, None),
            Candidacy::From(at) => (CampaignMode::Off, Some(at)),
        };
        let later = later.map(Instant::from_std);
        seeking.send_if_modified(|before| std::mem::replace(before, mode) != mode);
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            Ok(()) = facts.contacts.changed() => {}
            Ok(()) = facts.known.changed() => {}
            Ok(()) = facts.abstentions.changed() => {}
            () = sleep_until(later.unwrap_or_else(Instant::now)), if later.is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests;
