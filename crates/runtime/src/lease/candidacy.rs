//! The candidacy of a control-plane replica: it campaigns once every watch has listed, and gives the
//! lease back while one of them has not been able to read for a while, so that a replica that cannot read
//! never blocks one that can.
//!
//! If no replica can read, none leads, and the lease stays free: a leader that cannot read has nothing
//! to decide from. If the whole API is away, renewals fail as well, and nothing here adds a request.

use tokio::sync::watch;

use super::config::CampaignMode;
use crate::program::Program;

/// Spawns the task that decides, and returns its decision as it changes.
pub(super) fn start(program: &mut Program) -> watch::Receiver<CampaignMode> {
    let (mode, receiver) = watch::channel(CampaignMode::Off);
    let (readiness, stopping) = (program.readiness.clone(), program.stopping.clone());
    program.tasks.spawn("candidacy", async move {
        let deciding = async {
            readiness.opened().await;
            let mut unable = readiness.unable();
            loop {
                let wanted = if unable.borrow_and_update().is_empty() {
                    CampaignMode::Eager
                } else {
                    CampaignMode::Withdrawn
                };
                mode.send_if_modified(|mode| std::mem::replace(mode, wanted) != wanted);
                // The sender lives in `readiness`, so there is always a next change.
                if unable.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => {}
            () = deciding => {}
        }
        Ok(())
    });
    receiver
}

#[cfg(test)]
mod tests;
