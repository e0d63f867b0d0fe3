//! The leader's rounds of requests: fetches the votes of every agent once a period and counts them.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use health::quorum::Tally;
use health::signal::PerTarget;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Peers;
use super::client::{PeerClient, PeerError};
use super::list::PeerList;
use super::roster::{Claim, PeerRequest, Roster};
use super::vote_document::VoteDocument;
use crate::vote::Votes;

/// The most requests under way at once. For each time that many silent agents, a round takes a second
/// longer.
const AT_ONCE: usize = 256;
/// The interval between two rounds while votes are changing.
const HURRY: Duration = Duration::from_secs(1);
/// The number of periods after a change of the minority in which rounds are that frequent. Nodes that
/// see the same outage vote within one period of each other.
const HURRIED_PERIODS: u32 = 2;
/// The number of silent nodes that a log line names.
const NAMED: usize = 3;

/// One leader's rounds.
struct Poll<'a> {
    peers: &'a Peers,
    votes: watch::Receiver<Votes>,
    client: PeerClient,
    roster: Roster,
    tallies: watch::Sender<Option<PerTarget<Tally>>>,
    /// Set once every agent has been requested.
    complete: bool,
    /// The number of nodes in the minority on each signal.
    minorities: PerTarget<usize>,
    /// The moment at which any of these last changed.
    changed: Instant,
    /// Set while an agent of another cluster is listed and a warning has been logged.
    warned_other_cluster: bool,
    /// Set while several agents have one name and a warning has been logged.
    warned_namesakes: bool,
}

impl Peers {
    /// Keeps `tallies` at the votes of all agents, from the end of the first round on. Never returns.
    pub(crate) async fn poll(&self, tallies: watch::Sender<Option<PerTarget<Tally>>>) {
        let mut poll = Poll {
            peers: self,
            votes: self.votes.clone(),
            client: PeerClient::new(&self.own, self.addresses.clone(), self.largest),
            roster: Roster::new(Arc::clone(&self.own)),
            tallies,
            complete: false,
            minorities: self.votes.borrow().map(|_, _| 0),
            changed: Instant::now(),
            warned_other_cluster: false,
            warned_namesakes: false,
        };
        let mut lists = self.directory.list();
        loop {
            let list = current(&mut lists).await;
            let started = Instant::now();
            poll.roster.update(&list);
            poll.round().await;
            poll.rest(started).await;
        }
    }
}

/// Returns the list, and waits until there is one.
async fn current(lists: &mut watch::Receiver<Option<Arc<PeerList>>>) -> Arc<PeerList> {
    if let Ok(list) = lists.wait_for(Option::is_some).await
        && let Some(list) = list.as_ref()
    {
        return Arc::clone(list);
    }
    std::future::pending().await
}

impl Poll<'_> {
    /// Sends one request to every agent.
    async fn round(&mut self) {
        let client = &self.client.clone();
        let metrics = &self.peers.metrics;
        let mut responses = stream::iter(self.roster.requests())
            .map(|request| async move {
                let started = Instant::now();
                let result = client.fetch(&request).await;
                metrics.record_request(
                    started.elapsed(),
                    result.as_ref().err().map(PeerError::as_str),
                );
                (request, result)
            })
            // Unordered: one slow agent must not hold up the results of the others.
            .buffer_unordered(AT_ONCE);
        let mut other_cluster = false;
        loop {
            tokio::select! {
                // Responses first: they are the reason for the round. This node's own vote is counted at
                // its end in any case.
                biased;
                response = responses.next() => match response {
                    Some((request, result)) => {
                        other_cluster |= matches!(result, Err(PeerError::OtherCluster(_)));
                        self.record(&request, result);
                    }
                    None => break,
                },
                Ok(()) = self.votes.changed() => self.publish(),
            }
        }
        // Warn again should such an agent come back after a round without one.
        self.warned_other_cluster &= other_cluster;
        self.check_names();
        self.complete = true;
        self.publish();
    }

    /// Waits until the next round. This node's own vote counts at once meanwhile.
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

    /// Returns the time from the start of a round to the start of the next.
    fn interval(&self) -> Duration {
        let period = self.peers.period;
        let split = self.minorities.values().any(|minority| *minority > 0);
        if split && self.changed.elapsed() < HURRIED_PERIODS * period {
            HURRY.min(period)
        } else {
            period
        }
    }

    fn record(&mut self, request: &PeerRequest, result: Result<VoteDocument, PeerError>) {
        let PeerRequest { peer, address, .. } = request;
        let result = result.and_then(|document| {
            let ballots = document.ballots(&*self.votes.borrow());
            let VoteDocument { node, agent, .. } = document;
            let ballots = ballots.map(|ballots| (Claim { node, agent }, ballots));
            ballots.ok_or_else(|| PeerError::Unusable("it has no known vote".to_owned()))
        });
        match result {
            Ok((claim, ballots)) => self.roster.record(peer, claim, ballots),
            Err(error) => {
                tracing::debug!(peer, address, ?error, "An agent returned no vote");
                if let PeerError::OtherCluster(cluster) = error
                    && !std::mem::replace(&mut self.warned_other_cluster, true)
                {
                    let own = &self.peers.own.cluster;
                    tracing::warn!(
                        peer,
                        address,
                        cluster,
                        "An agent listed as ours, {own}, belongs to another cluster and counts as silent: correct its --cluster-name, or our --peer or --peer-service"
                    );
                }
                self.roster.record_silence(peer);
            }
        }
    }

    /// Warns of agents that have the same name. Their failures could not be told apart.
    fn check_names(&mut self) {
        let namesakes = self.roster.namesakes();
        let agents = namesakes.values().map(Vec::len).sum();
        self.peers.metrics.set_namesakes(agents);
        let Some((node, agents)) = namesakes.first_key_value() else {
            self.warned_namesakes = false;
            return;
        };
        if !std::mem::replace(&mut self.warned_namesakes, true) {
            let own = *node == self.peers.own.node;
            let agents: Vec<_> = agents.iter().take(NAMED).collect();
            tracing::warn!(
                node,
                ?agents,
                own,
                "Several agents have the same name, all of them count: give each its own --host-name"
            );
        }
    }

    /// Publishes the tallies. Before the end of the first round they would miss votes.
    fn publish(&mut self) {
        // Marks the votes as seen even if nothing is published, or `changed` would return at once again.
        let own = self.votes.borrow_and_update().clone();
        if !self.complete {
            return;
        }
        let tallies = self.roster.tallies(&own);
        let minorities = tallies.map(|_, tally| tally.minority());
        if minorities != self.minorities {
            (self.minorities, self.changed) = (minorities, Instant::now());
        }
        if self.tallies.borrow().as_ref() == Some(&tallies) {
            return;
        }
        self.peers.metrics.set_tallies(Some(&tallies));
        let before = self.tallies.send_replace(Some(tallies));
        self.log(before.as_ref());
    }

    /// Logs the tallies that differ from those before.
    fn log(&self, before: Option<&PerTarget<Tally>>) {
        let tallies = self.tallies.borrow();
        for (target, tally) in tallies.iter().flat_map(PerTarget::iter) {
            if before.and_then(|before| before.of(target)) == Some(tally) {
                continue;
            }
            let unhealthy = tally.failing.len();
            let names: Vec<_> = tally.named().collect();
            let silent_names: Vec<_> = self.roster.silent_nodes().take(NAMED).collect();
            tracing::info!(
                signal = target.signal.subject,
                cluster = target.cluster.as_deref(),
                healthy = tally.healthy + tally.first_success,
                unhealthy,
                no_vote = tally.no_vote + tally.absent,
                silent = tally.silent,
                ?names,
                ?silent_names,
                "The nodes' votes"
            );
        }
    }
}

impl Drop for Poll<'_> {
    /// Runs at the end of a term of leadership, when its future is dropped.
    fn drop(&mut self) {
        self.peers.metrics.set_tallies(None);
        self.peers.metrics.set_namesakes(0);
    }
}

#[cfg(test)]
mod tests;
