//! The reconciles in progress in a program, for what must not compete with them.

use std::sync::Arc;

use tokio::sync::watch;

/// A count of reconciles in progress, shared by its clones.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    reconciles: Arc<watch::Sender<usize>>,
}

/// A reconcile in progress. It ends when dropped.
#[derive(Debug)]
pub(crate) struct InProgress(Activity);

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            reconciles: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Counts a reconcile until the returned value is dropped.
    pub(crate) fn begin(&self) -> InProgress {
        self.reconciles.send_modify(|count| *count += 1);
        InProgress(self.clone())
    }

    /// Waits until no reconcile is in progress.
    pub(crate) async fn idle(&self) {
        // The sender lives in `self`, so the wait cannot end early.
        drop(
            self.reconciles
                .subscribe()
                .wait_for(|count| *count == 0)
                .await,
        );
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.reconciles.send_modify(|count| *count -= 1);
    }
}
