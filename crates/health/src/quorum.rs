//! The cluster's verdict on one signal, from the votes of its nodes.
//!
//! A node without a vote neither votes nor vetoes. While enough of the known nodes vote, a large majority
//! of unhealthy votes makes the verdict unhealthy, half of the votes make it healthy again, and anything
//! in between keeps the current verdict: a cluster on the edge does not flap. The nodes' thresholds have
//! already waited, so the verdict follows the votes at once.
//!
//! Silence is not agreement: the unhealthy votes must also be more than half of the known nodes. As long as
//! they are not, although nearly all votes are unhealthy, too few nodes vote for any verdict.
//!
//! Karmada's detector corresponds to `min_answering` 100 and `failure` 100: every node must respond, and
//! a single silent one blocks any change of the verdict.

use std::collections::BTreeMap;

use super::observation::{Failure, Partial};
use super::threshold::Vote;

/// The number of nodes, and of kinds of failure, that a message names.
const NAMED: usize = 3;

/// A node's part in a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ballot {
    /// It has a vote.
    Vote(Vote),
    /// It responds, but has no vote.
    NoVote,
    /// It responds, but its agent does not run the signal: its flags differ.
    Absent,
    /// It does not respond.
    Silent,
}

/// The ballots of the known nodes, each node counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nodes that vote healthy.
    pub healthy: usize,
    /// Those of them on which something is wrong all the same.
    pub partial: BTreeMap<String, Partial>,
    /// Nodes whose first rounds succeeded. They count as healthy only while the cluster has no verdict.
    pub first_success: usize,
    /// Nodes that vote unhealthy, with their failures.
    pub failing: BTreeMap<String, Failure>,
    /// Nodes that respond without a vote.
    pub no_vote: usize,
    /// Nodes whose agents do not run the signal.
    pub absent: usize,
    /// Nodes that do not respond.
    pub silent: usize,
}

impl Tally {
    /// Adds a node. The caller must not add the same name twice.
    pub fn count(&mut self, node: &str, ballot: Ballot) {
        match ballot {
            Ballot::Vote(Vote::Healthy) => self.healthy += 1,
            Ballot::Vote(Vote::Partial(partial)) => {
                self.healthy += 1;
                self.partial.insert(node.to_owned(), partial);
            }
            Ballot::Vote(Vote::FirstSuccess) => self.first_success += 1,
            Ballot::Vote(Vote::Unhealthy(failure)) => {
                self.failing.insert(node.to_owned(), failure);
            }
            Ballot::NoVote => self.no_vote += 1,
            Ballot::Absent => self.absent += 1,
            Ballot::Silent => self.silent += 1,
        }
    }

    /// Returns the number of nodes.
    pub fn known(&self) -> usize {
        let responding = self.healthy + self.first_success + self.failing.len() + self.no_vote;
        responding + self.absent + self.silent
    }

    /// Returns the number of votes in the minority: 0 while all agree.
    pub fn minority(&self) -> usize {
        (self.healthy + self.first_success).min(self.failing.len())
    }

    /// Returns the failing nodes that a message names, the first few by name.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.failing.keys().take(NAMED).map(String::as_str)
    }

    /// Returns a message such as
    /// `8 of 10 nodes fail: timeout from 10.96.0.10 (6), servfail from 10.96.0.10 (2); n1, n4, n7, …`
    fn message(&self) -> String {
        let mut parts = vec![self.failures()];
        parts.extend(self.impairments());
        parts.join("; ")
    }

    fn failures(&self) -> String {
        // No totals: whenever nodes come or go they would cost a write.
        if self.failing.is_empty() {
            return "no node fails".to_owned();
        }
        let count = format!("{} of {} nodes fail", self.failing.len(), self.known());
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for failure in self.failing.values() {
            *kinds.entry(failure.to_string()).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        // Stable: kinds with the same count stay sorted by name, so the message does not flicker.
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kinds = kinds
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"));
        let names = self.failing.keys().cloned();
        format!("{count}: {}; {}", first_few(kinds), first_few(names))
    }

    /// Returns the trouble where names resolve, such as `AAAA queries get no response on n1, n4, n7, …` or
    /// `pods with musl fail (timeout from 10.96.0.10) on any node`: that of most nodes, at most three.
    fn impairments(&self) -> impl Iterator<Item = String> {
        let mut by_sentence: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        for (node, partial) in &self.partial {
            for sentence in partial.sentences() {
                by_sentence.entry(sentence).or_default().push(node);
            }
        }
        let mut all: Vec<_> = by_sentence.into_iter().collect();
        // Stable, as above.
        all.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
        let healthy = self.healthy;
        all.into_iter().take(NAMED).map(move |(sentence, nodes)| {
            // No names where it is all of them, since names change with the nodes.
            if nodes.len() == healthy {
                format!("{sentence} on any node")
            } else {
                format!("{sentence} on {}", first_few(nodes.into_iter().cloned()))
            }
        })
    }
}

/// The shares of nodes that a verdict takes, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// The share of the known nodes that must vote for a verdict; 1 to 100.
    pub min_answering: u8,
    /// The share of the votes that must be unhealthy for an unhealthy verdict; 51 to 100.
    pub failure: u8,
}

/// The verdict of the nodes on their cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// True if the signal works in the cluster.
    pub healthy: bool,
    /// The number of failing nodes, their failures, and the first few names; no totals while nothing
    /// fails.
    pub message: String,
}

/// The result of judging a tally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict. `None` if too few nodes vote, or if neither side has enough votes and there is no
    /// current verdict.
    pub verdict: Option<Verdict>,
    /// True if enough nodes vote, or if so few run the signal that there is nothing to judge yet. Their
    /// number is also too small if their failures contradict the current
    /// verdict and the silent nodes could make up for them.
    pub sufficient: bool,
    /// The number of votes and of known nodes, if too few vote.
    pub message: String,
}

impl Quorum {
    /// Judges a tally. `current` is the verdict so far: `Some(true)` if the signal works.
    pub fn judge(&self, tally: &Tally, current: Option<bool>) -> Judgement {
        // A node that has just restarted must not outvote those that have served their threshold.
        let first_success = current.map_or(tally.first_success, |_| 0);
        let unhealthy = tally.failing.len();
        let votes = tally.healthy + first_success + unhealthy;
        let known = tally.known();
        let failing = reaches(unhealthy, self.failure, votes);
        let more_than_half = unhealthy.saturating_mul(2) > known;
        let undecided = failing && !more_than_half && current != Some(false);
        let enough = votes > 0 && reaches(votes, self.min_answering, known);
        // While a signal is rolled out, node by node, its few first voters judge nothing, and that they are
        // few is no reason to distrust the other signals.
        let judged = tally.absent == 0 || reaches(known - tally.absent, self.min_answering, known);
        let sufficient = enough && !undecided || !judged;
        // The two majorities exclude each other, since the failure quorum is above half of the votes.
        let healthy = if !(sufficient && judged) {
            None
        } else if failing && more_than_half {
            Some(false)
        } else if reaches(votes - unhealthy, 50, votes) {
            Some(true)
        } else {
            current
        };
        Judgement {
            verdict: healthy.map(|healthy| Verdict {
                healthy,
                message: tally.message(),
            }),
            sufficient,
            message: if sufficient {
                "enough nodes vote".to_owned()
            } else if enough {
                format!(
                    "{votes} of {known} nodes vote; {unhealthy} fail, not more than half of all"
                )
            } else if known == 0 {
                "no node has anything to vote on".to_owned()
            } else {
                format!("{votes} of {known} nodes vote")
            },
        }
    }
}

/// Returns `true` if `part` is at least `percent` of `whole`.
fn reaches(part: usize, percent: u8, whole: usize) -> bool {
    // In integers: a quotient would have to be rounded, and 80% of 5 nodes is exactly 4.
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
