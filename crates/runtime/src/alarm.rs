//! A task that acts at given times of the clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::program::Program;

/// The longest time between two looks at the clock while an alarm is set: the clock may be set, which no
/// timer notices.
const LOOK: Duration = Duration::from_mins(1);

/// Spawns the task `name`, which calls `look` with the time now, whenever `changed` is notified, and at the
/// time that `look` has returned.
pub fn spawn(
    program: &mut Program,
    name: &'static str,
    changed: Arc<Notify>,
    mut look: impl FnMut(Timestamp) -> Option<Timestamp> + Send + 'static,
) {
    let (clock, stopping) = (program.clock, program.stopping.clone());
    program.tasks.spawn(name, async move {
        loop {
            let now = clock();
            let left = look(now).map(|next| {
                let left = Duration::try_from(next.duration_since(now));
                left.unwrap_or_default().min(LOOK)
            });
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = changed.notified() => {}
                () = sleep(left.unwrap_or_default()), if left.is_some() => {}
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{Ipv4Addr, SocketAddr};

    use jiff::SignedDuration;
    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;
    use crate::program::Identity;

    thread_local! {
        static BEGIN: Cell<Option<Instant>> = const { Cell::new(None) };
        /// The seconds by which the clock was set.
        static SET: Cell<i64> = const { Cell::new(0) };
    }

    fn clock() -> Timestamp {
        let begin = BEGIN.get().unwrap();
        let elapsed = SignedDuration::try_from(begin.elapsed()).unwrap();
        Timestamp::UNIX_EPOCH + elapsed + SignedDuration::from_secs(SET.get())
    }

    /// It looks at the time it is set to and soon after the clock is set.
    #[tokio::test(start_paused = true)]
    async fn alarm_follows_the_clock() {
        BEGIN.set(Some(Instant::now()));
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        program.clock = clock;
        let (changed, next) = (Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
        let looks = Arc::new(Mutex::new(Vec::new()));
        let (set, seen) = (Arc::clone(&next), Arc::clone(&looks));
        spawn(&mut program, "alarm", Arc::clone(&changed), move |now| {
            seen.lock().push(now.as_second());
            let next: Option<i64> = *set.lock();
            next.map(|next| Timestamp::from_second(next).unwrap())
                .filter(|next| *next > now)
        });
        sleep(Duration::from_secs(100)).await;
        assert_eq!(*looks.lock(), [0], "nothing to wait for");
        *next.lock() = Some(130);
        changed.notify_one();
        sleep(Duration::from_secs(100)).await;
        assert_eq!(*looks.lock(), [0, 100, 130]);
        *next.lock() = Some(10_000);
        changed.notify_one();
        sleep(Duration::from_secs(10)).await;
        SET.set(20_000);
        sleep(Duration::from_secs(51)).await;
        assert_eq!(*looks.lock(), [0, 100, 130, 200, 20_260]);
    }
}
