//! The leader's report: writes the verdict on each signal to a condition of the object of the cluster, or of each member.
//!
//! - `parts`: the parts of a report, and which clusters it is about.
//! - `leader`: the events that wake it, in one term of leadership.
//! - `cluster_report`: the due writes for one cluster; `cluster` reads its object.
//! - `told`: the Events about a report that cannot be written.

mod cluster;
mod cluster_report;
mod leader;
mod parts;
mod told;

use health::campaign::{Tenure, abstention};
use karmada_runtime::error::BoxError;
use karmada_runtime::lease;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::leader::Leader;
pub(crate) use self::parts::{Report, Subject};
pub(crate) use self::told::lease_in;

impl Report {
    /// Writes conditions while this agent leads, until the program stops.
    pub(crate) async fn run(self, stopping: CancellationToken) -> Result<(), BoxError> {
        let terms = async {
            let mut tenure = Tenure::new(self.pace.patience);
            loop {
                self.leadership.acquired().await;
                tokio::select! {
                    // The end of a term before its next write: another agent may lead already.
                    biased;
                    () = self.leadership.lost() => {}
                    () = self.term(&mut tenure) => {
                        tenure.resigned();
                        self.resign().await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => Ok(()),
            () = terms => Ok(()),
        }
    }

    /// Polls the agents and writes their verdicts, until too few of them have voted for too long.
    async fn term(&self, tenure: &mut Tenure) {
        let (counted, tallies) = watch::channel(None);
        let leader = Leader::new(self, tallies, tenure);
        tokio::select! {
            () = self.peers.poll(counted) => {}
            () = leader.lead() => {}
        }
    }

    /// Gives the lease back and returns once this agent no longer leads.
    async fn resign(&self) {
        let pause = abstention(lease::DURATION);
        tracing::warn!(
            ?pause,
            "Too few nodes vote for too long, giving the lease back for an agent that hears more of them"
        );
        self.metrics.count_resignation();
        self.abstentions.send_replace(Some(Instant::now() + pause));
        self.leadership.lost().await;
    }
}

#[cfg(test)]
mod tests;
