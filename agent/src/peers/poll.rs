//! The leader's rounds: asks every agent, once a period, and counts what they say.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use karmada_rules::health::quorum::Tally;
use karmada_rules::health::threshold::Vote;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Peers;
use super::ask::{Asker, Unanswered};
use super::list::List;
use super::observation::Observation;
use super::roster::{Ask, Roster};

/// So many agents are asked at once. A round in which that many more are silent takes a second longer.
const AT_ONCE: usize = 256;
/// Between two rounds while the nodes are turning.
const HURRY: Duration = Duration::from_secs(1);
/// For so many periods after the nodes' opinions have changed it is looked again so soon: nodes that see
/// the same turn within one period.
const HURRIED_PERIODS: u32 = 2;
/// How many silent nodes a log line names.
const NAMED: usize = 3;

/// One leader's rounds.
struct Poll<'a> {
    peers: &'a Peers,
    votes: watch::Receiver<Option<Vote>>,
    asker: Asker,
    roster: Roster,
    tallies: watch::Sender<Option<Tally>>,
    /// Whether every agent has been asked.
    complete: bool,
    /// How many nodes are in the minority, and since when.
    split: (usize, Instant),
    /// Whether we have said that an agent belongs to another cluster.
    told_other_cluster: bool,
}

impl Peers {
    /// Keeps `tallies` at what all agents say, from the end of the first round on; never ends.
    pub(crate) async fn poll(&self, tallies: watch::Sender<Option<Tally>>) {
        let mut poll = Poll {
            peers: self,
            votes: self.votes.clone(),
            asker: Asker::new(&self.own),
            roster: Roster::new(self.own.node.clone()),
            tallies,
            complete: false,
            split: (0, Instant::now()),
            told_other_cluster: false,
        };
        let mut lists = self.listing.list();
        loop {
            let list = current(&mut lists).await;
            let started = Instant::now();
            poll.roster.update(&list);
            poll.round().await;
            poll.rest(started).await;
        }
    }
}

/// The list; waits until there is one.
async fn current(lists: &mut watch::Receiver<Option<Arc<List>>>) -> Arc<List> {
    if let Ok(list) = lists.wait_for(Option::is_some).await
        && let Some(list) = list.as_ref()
    {
        return Arc::clone(list);
    }
    std::future::pending().await
}

impl Poll<'_> {
    /// Asks every agent once.
    async fn round(&mut self) {
        let asker = &self.asker.clone();
        let metrics = &self.peers.metrics;
        let mut answers = stream::iter(self.roster.asks())
            .map(|ask| async move {
                let started = Instant::now();
                let result = asker.ask(&ask).await;
                metrics.asked(
                    started.elapsed(),
                    result.as_ref().err().map(Unanswered::as_str),
                );
                (ask, result)
            })
            .buffer_unordered(AT_ONCE);
        let mut other_cluster = false;
        loop {
            tokio::select! {
                biased;
                answer = answers.next() => match answer {
                    Some((ask, result)) => {
                        other_cluster |= matches!(result, Err(Unanswered::OtherCluster(_)));
                        self.take(&ask, result);
                    }
                    None => break,
                },
                Ok(()) = self.votes.changed() => self.publish(),
            }
        }
        self.told_other_cluster &= other_cluster;
        self.complete = true;
        self.publish();
    }

    /// Lets time pass until the next round; what this node says counts at once.
    async fn rest(&mut self, started: Instant) {
        loop {
            let next = started + self.interval();
            tokio::select! {
                biased;
                Ok(()) = self.votes.changed() => self.publish(),
                () = sleep_until(next) => return,
            }
        }
    }

    /// From the start of a round to the start of the next.
    fn interval(&self) -> Duration {
        let period = self.peers.period;
        let (minority, since) = self.split;
        if minority > 0 && since.elapsed() < HURRIED_PERIODS * period {
            HURRY.min(period)
        } else {
            period
        }
    }

    fn take(&mut self, ask: &Ask, result: Result<Observation, Unanswered>) {
        let Ask { peer, address, .. } = ask;
        let result = result.and_then(|said| match said.answer() {
            Some(answer) => Ok((said.node, answer)),
            None => Err(Unanswered::Unusable(
                "it says what no agent says".to_owned(),
            )),
        });
        match result {
            Ok((node, answer)) => self.roster.answered(peer, node, answer),
            Err(why) => {
                tracing::debug!(peer, address, ?why, "An agent gave no answer");
                if let Unanswered::OtherCluster(cluster) = why
                    && !std::mem::replace(&mut self.told_other_cluster, true)
                {
                    let own = &self.peers.own.cluster;
                    tracing::warn!(
                        peer,
                        address,
                        cluster,
                        "An agent listed as ours, {own}, belongs to another cluster and counts as silent: correct its --cluster-name, or our --peer or --peer-service"
                    );
                }
                self.roster.silent(peer);
            }
        }
    }

    /// Tells what all say now; nothing before the first round has ended.
    fn publish(&mut self) {
        let own = *self.votes.borrow_and_update();
        if !self.complete {
            return;
        }
        let tally = self.roster.tally(own);
        let minority = tally.minority();
        if minority != self.split.0 {
            self.split = (minority, Instant::now());
        }
        let changed = self.tallies.send_if_modified(|before| {
            let changed = before.as_ref() != Some(&tally);
            if changed {
                self.peers.metrics.counted(Some(&tally));
                *before = Some(tally);
            }
            changed
        });
        if changed {
            self.tell();
        }
    }

    fn tell(&self) {
        let tally = self.tallies.borrow();
        let Some(tally) = tally.as_ref() else {
            return;
        };
        let unhealthy = tally.failing.len();
        let names: Vec<_> = tally.named().collect();
        let silent_names: Vec<_> = self.roster.silent_nodes().take(NAMED).collect();
        tracing::info!(
            healthy = tally.healthy + tally.first_success,
            unhealthy,
            no_vote = tally.no_vote,
            silent = tally.silent,
            ?names,
            ?silent_names,
            "The nodes' votes"
        );
    }
}

impl Drop for Poll<'_> {
    fn drop(&mut self) {
        self.peers.metrics.counted(None);
    }
}

#[cfg(test)]
mod tests;
