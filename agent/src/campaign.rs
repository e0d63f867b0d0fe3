//! Tells the lease's driver when to seek the lease, as the leader's questions have it.

use rules::campaign::{Asked, Campaign, Situation, spread};
use runtime::error::BoxError;
use runtime::lease::{DURATION, Seeking};
use runtime::program::Program;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::peers;

/// Decides, in a task of `program`, when the lease is to be sought.
pub(crate) fn start(
    program: &mut Program,
    asked: watch::Receiver<Option<peers::Asked>>,
    known: watch::Receiver<Option<usize>>,
) -> watch::Receiver<Seeking> {
    let (sought, seeking) = watch::channel(Seeking::No);
    let task = run(asked, known, sought, program.stopping.clone());
    program.tasks.spawn("campaign", task);
    seeking
}

/// Keeps `seeking` at what follows from when a leader `asked` and how many agents are `known`, until
/// the program stops.
async fn run(
    mut asked: watch::Receiver<Option<peers::Asked>>,
    mut known: watch::Receiver<Option<usize>>,
    seeking: watch::Sender<Seeking>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let started = Instant::now().into_std();
    let share = fastrand::f64();
    loop {
        let situation = Situation {
            started,
            asked: asked.borrow_and_update().map(|asked| Asked {
                at: asked.at.into_std(),
                standby: asked.standby,
            }),
            known: *known.borrow_and_update(),
        };
        let campaign = situation.campaign(DURATION, share);
        let turn = Seeking::Spread(spread(situation.known.unwrap_or_default()));
        let (now, later) = match campaign {
            Campaign::Never => (Seeking::No, None),
            Campaign::StandBy => (Seeking::Eagerly, None),
            Campaign::From(at) if at <= Instant::now().into_std() => (turn, None),
            Campaign::From(at) => (Seeking::No, Some(Instant::from_std(at))),
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
mod tests {
    use std::time::Duration;

    use super::*;

    const ALMOST: Duration = Duration::from_millis(14_999);

    /// A campaign that is being run.
    struct Running {
        asking: watch::Sender<Option<peers::Asked>>,
        knowing: watch::Sender<Option<usize>>,
        seeking: watch::Receiver<Seeking>,
    }

    impl Running {
        fn start(known: Option<usize>) -> Self {
            let (asking, asked) = watch::channel(None);
            let (knowing, known) = watch::channel(known);
            let (sought, seeking) = watch::channel(Seeking::No);
            tokio::spawn(run(asked, known, sought, CancellationToken::new()));
            Self {
                asking,
                knowing,
                seeking,
            }
        }

        fn ask(&self, standby: bool) {
            let at = Instant::now();
            self.asking.send_replace(Some(peers::Asked { at, standby }));
        }

        async fn after(&self, time: Duration) -> Seeking {
            tokio::time::sleep(time).await;
            *self.seeking.borrow()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_is_sought_once_the_list_is_known_and_the_turn_has_come() {
        let running = Running::start(None);
        let hour = Duration::from_hours(1);
        assert_eq!(running.after(hour).await, Seeking::No);
        running.knowing.send_replace(Some(30));
        let spread = Duration::from_secs(20);
        assert_eq!(running.after(spread).await, Seeking::Spread(spread));
    }

    #[tokio::test(start_paused = true)]
    async fn a_leaders_question_ends_the_campaign_and_its_silence_brings_it_back() {
        let running = Running::start(Some(1));
        let turn = Duration::from_secs(1);
        assert!(matches!(running.after(turn).await, Seeking::Spread(_)));
        running.ask(false);
        assert_eq!(running.after(ALMOST).await, Seeking::No);
        running.ask(false);
        assert_eq!(running.after(ALMOST).await, Seeking::No);
        assert!(matches!(running.after(turn).await, Seeking::Spread(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn one_told_to_stand_by_seeks_the_lease_until_it_is_told_otherwise() {
        let running = Running::start(Some(1_000));
        running.ask(true);
        assert_eq!(running.after(ALMOST).await, Seeking::Eagerly);
        assert_eq!(running.after(ALMOST).await, Seeking::Eagerly);
        running.ask(false);
        assert_eq!(running.after(ALMOST).await, Seeking::No);
    }
}
