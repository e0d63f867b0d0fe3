//! What a leader knows of the other agents: who they are, what each said last, who stands by.

use std::collections::{BTreeMap, BTreeSet};

use karmada_rules::health::quorum::{Ballot, Tally};
use karmada_rules::health::threshold::Vote;

use super::list::{List, Peer};

/// How many agents a leader names to take over when it is gone.
const STANDBYS: usize = 2;

/// The other agents as their leader, on `own_node`, knows them.
#[derive(Debug)]
pub(super) struct Roster {
    own_node: String,
    peers: BTreeMap<String, Known>,
    standbys: BTreeSet<String>,
}

#[derive(Debug)]
struct Known {
    peer: Peer,
    /// The node it said it is on, the last time it answered.
    claimed: Option<String>,
    /// None before it was asked for the first time.
    answer: Option<Ballot>,
    /// Which of its addresses is asked next.
    address: usize,
}

/// A question to one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) peer: String,
    pub(super) address: String,
    pub(super) standby: bool,
}

impl Roster {
    pub(super) fn new(own_node: String) -> Self {
        Self {
            own_node,
            peers: BTreeMap::new(),
            standbys: BTreeSet::new(),
        }
    }

    /// Takes a new list in. Who is still in it keeps the last answer.
    pub(super) fn update(&mut self, list: &List) {
        self.peers.retain(|key, _| list.contains_key(key));
        for (key, peer) in list {
            if self.peers.get(key).is_none_or(|known| known.peer != *peer) {
                let before = self.peers.remove(key);
                let known = Known {
                    peer: peer.clone(),
                    claimed: before.as_ref().and_then(|known| known.claimed.clone()),
                    answer: before.and_then(|known| known.answer),
                    address: 0,
                };
                self.peers.insert(key.clone(), known);
            }
        }
    }

    /// A question to every agent. Two that answer, or have not been asked yet, are told to stand by;
    /// who stands by already goes on while it answers.
    pub(super) fn asks(&mut self) -> Vec<Ask> {
        let own_node = &self.own_node;
        let fit = |known: &Known| {
            known.answer != Some(Ballot::Silent) && known.claimed.as_ref() != Some(own_node)
        };
        let peers = &self.peers;
        self.standbys.retain(|key| peers.get(key).is_some_and(fit));
        let fit = peers.iter().filter(|(_, known)| fit(known));
        for (key, _) in fit {
            if self.standbys.len() >= STANDBYS {
                break;
            }
            self.standbys.insert(key.clone());
        }
        let asks = self.peers.iter().filter_map(|(key, known)| {
            let addresses = &known.peer.addresses;
            Some(Ask {
                peer: key.clone(),
                address: addresses
                    .get(known.address % addresses.len().max(1))?
                    .clone(),
                standby: self.standbys.contains(key),
            })
        });
        asks.collect()
    }

    /// Takes in what an agent answered, with the node it says it is on.
    pub(super) fn answered(&mut self, peer: &str, node: String, answer: Ballot) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.claimed = Some(node);
            known.answer = Some(answer);
        }
    }

    /// Takes note that an agent gave no answer; another address of it is asked next time.
    pub(super) fn silent(&mut self, peer: &str) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.answer = Some(Ballot::Silent);
            known.address = known.address.wrapping_add(1);
        }
    }

    /// What all agents say, this one included. A node counts once, however many addresses claim to be
    /// on it, and what claims to be on our own node is ourselves. What the member's API says of an
    /// agent's node counts more than what the agent itself says.
    pub(super) fn tally(&self, own: Option<Vote>) -> Tally {
        let mut nodes: BTreeMap<&str, Ballot> = BTreeMap::new();
        for (key, known) in &self.peers {
            if known.claimed.as_ref() == Some(&self.own_node) {
                continue;
            }
            let node = known.peer.node.as_ref().or(known.claimed.as_ref());
            let answer = known.answer.unwrap_or(Ballot::Silent);
            let counted = nodes.entry(node.unwrap_or(key)).or_insert(answer);
            if matches!(counted, Ballot::Silent) {
                *counted = answer;
            }
        }
        nodes.insert(&self.own_node, own.map_or(Ballot::NoVote, Ballot::Vote));
        let mut tally = Tally::default();
        for (node, answer) in nodes {
            tally.count(node, answer);
        }
        tally
    }

    /// The agents that gave no answer when they were last asked.
    pub(super) fn silent_nodes(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().filter_map(|(key, known)| {
            let node = known.peer.node.as_ref().or(known.claimed.as_ref());
            (known.answer == Some(Ballot::Silent)).then(|| node.unwrap_or(key).as_str())
        })
    }
}

#[cfg(test)]
mod tests;
