//! The cluster's verdict, from what each of its nodes says.
//!
//! A node without a vote neither votes nor vetoes. As long as enough of the known nodes vote, a large
//! majority makes the verdict unhealthy, half of the votes make it healthy again, and in between the
//! standing verdict stays, so that a cluster on the edge does not flap. All thresholds of time have been
//! served by the nodes, so there is no further wait here.
//!
//! Karmada's detector is `min_answering` 100 and `failure` 100: every node must answer, and one that is
//! silent silences all.

use std::collections::BTreeMap;

use super::observation::Failure;
use super::threshold::Vote;

/// How many nodes, and how many kinds of failure, a message names.
const NAMED: usize = 3;

/// What is known of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ballot {
    /// It has a vote.
    Vote(Vote),
    /// It answers, but has no vote.
    NoVote,
    /// It does not answer.
    Silent,
}

/// What the known nodes say, each counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nodes that vote healthy.
    pub healthy: usize,
    /// Nodes whose first answers are good: healthy only for a cluster that has no verdict yet.
    pub first_success: usize,
    /// Nodes that vote unhealthy, with their failures.
    pub failing: BTreeMap<String, Failure>,
    /// Nodes that answer without a vote.
    pub no_vote: usize,
    /// Nodes that do not answer.
    pub silent: usize,
}

impl Tally {
    /// Counts one more node, of a name that was not counted before.
    pub fn count(&mut self, node: &str, answer: Ballot) {
        match answer {
            Ballot::Vote(Vote::Healthy) => self.healthy += 1,
            Ballot::Vote(Vote::FirstSuccess) => self.first_success += 1,
            Ballot::Vote(Vote::Unhealthy(failure)) => {
                self.failing.insert(node.to_owned(), failure);
            }
            Ballot::NoVote => self.no_vote += 1,
            Ballot::Silent => self.silent += 1,
        }
    }

    /// How many nodes there are.
    pub fn known(&self) -> usize {
        self.healthy + self.first_success + self.failing.len() + self.no_vote + self.silent
    }

    /// How many of the votes the fewer are: 0 while all agree.
    pub fn minority(&self) -> usize {
        (self.healthy + self.first_success).min(self.failing.len())
    }

    /// The failing nodes that a message names: the first few.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.failing.keys().take(NAMED).map(String::as_str)
    }

    /// `8 of 10 nodes fail: timeout from 10.96.0.10 (6), servfail from 10.96.0.10 (2); n1, n4, n7, …`
    fn message(&self) -> String {
        let count = format!("{} of {} nodes fail", self.failing.len(), self.known());
        if self.failing.is_empty() {
            return count;
        }
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for failure in self.failing.values() {
            *kinds.entry(failure.to_string()).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kinds = kinds
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"));
        let names = self.failing.keys().cloned();
        format!("{count}: {}; {}", first_few(kinds), first_few(names))
    }
}

/// How many nodes it takes, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// Of the known nodes, so many must vote for a verdict; 1 to 100.
    pub min_answering: u8,
    /// Of the votes, so many must be unhealthy for an unhealthy verdict; 51 to 100.
    pub failure: u8,
}

/// What the nodes say of their cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether DNS works in the cluster.
    pub healthy: bool,
    /// How many nodes fail, how, and which.
    pub message: String,
}

/// What a tally comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict. None: too few nodes vote, or neither side has enough votes and no verdict stands.
    pub verdict: Option<Verdict>,
    /// Whether enough nodes vote.
    pub sufficient: bool,
    /// How many nodes vote, of how many.
    pub message: String,
}

impl Quorum {
    /// Judges, with `standing` the cluster's verdict so far: whether DNS works in it.
    pub fn judge(&self, tally: &Tally, standing: Option<bool>) -> Judgement {
        let first_success = standing.map_or(tally.first_success, |_| 0);
        let unhealthy = tally.failing.len();
        let votes = tally.healthy + first_success + unhealthy;
        let known = tally.known();
        let sufficient = votes > 0 && reaches(votes, self.min_answering, known);
        let healthy = if !sufficient {
            None
        } else if reaches(unhealthy, self.failure, votes) {
            Some(false)
        } else if reaches(votes - unhealthy, 50, votes) {
            Some(true)
        } else {
            standing
        };
        Judgement {
            verdict: healthy.map(|healthy| Verdict {
                healthy,
                message: tally.message(),
            }),
            sufficient,
            message: format!("{votes} of {known} nodes vote"),
        }
    }
}

/// Whether `part` is at least so many percent of `whole`.
fn reaches(part: usize, percent: u8, whole: usize) -> bool {
    part.saturating_mul(100) >= whole.saturating_mul(percent.into())
}

fn first_few(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len() > NAMED;
    let mut listed: Vec<_> = items.take(NAMED).collect();
    if more {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests;
