//! The reconciles in progress in a program, for the work that must not compete with them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A count of reconciles in progress, shared by its clones.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    reconciles: Arc<watch::Sender<Reconciles>>,
}

#[derive(Debug)]
struct Reconciles {
    in_progress: usize,
    /// The end of the last one.
    ended: Instant,
}

/// A reconcile in progress. It ends when dropped.
#[derive(Debug)]
pub(crate) struct InProgress(Activity);

impl Activity {
    pub(crate) fn new() -> Self {
        let none = Reconciles {
            in_progress: 0,
            ended: Instant::now(),
        };
        Self {
            reconciles: Arc::new(watch::Sender::new(none)),
        }
    }

    /// Counts a reconcile until the returned value is dropped.
    pub(crate) fn begin(&self) -> InProgress {
        self.reconciles
            .send_modify(|reconciles| reconciles.in_progress += 1);
        InProgress(self.clone())
    }

    /// Waits until no reconcile has been in progress for this time.
    pub(crate) async fn quiet(&self, time: Duration) {
        let mut reconciles = self.reconciles.subscribe();
        loop {
            let due = {
                let now = reconciles.borrow_and_update();
                (now.in_progress == 0).then(|| now.ended + time)
            };
            // The sender lives in `self`, so the watch does not end.
            match due {
                None => drop(reconciles.changed().await),
                Some(due) => tokio::select! {
                    biased;
                    _ = reconciles.changed() => {}
                    () = sleep_until(due) => return,
                },
            }
        }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.reconciles.send_modify(|reconciles| {
            reconciles.in_progress -= 1;
            reconciles.ended = Instant::now();
        });
    }
}
