//! The leader's roster of the other agents: who they are, their last ballots, and who stands by.

use std::collections::{BTreeMap, BTreeSet};

use karmada_rules::health::quorum::{Ballot, Tally};
use karmada_rules::health::threshold::Vote;

use super::list::{Peer, PeerList};

/// The number of agents that a leader has stand by for it. With two, the lease passes on within its
/// duration even if one of them dies with the leader.
const STANDBYS: usize = 2;

/// The other agents of the leader on `own_node`.
#[derive(Debug)]
pub(super) struct Roster {
    own_node: String,
    peers: BTreeMap<String, PeerState>,
    standbys: BTreeSet<String>,
}

#[derive(Debug)]
struct PeerState {
    peer: Peer,
    /// The node in its last vote document.
    claimed: Option<String>,
    /// `None` before the first request.
    ballot: Option<Ballot>,
    /// The index of the address for the next request, modulo their number.
    address: usize,
}

/// A request to one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerRequest {
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

    /// Replaces the list. An agent that is still in it keeps its last ballot.
    pub(super) fn update(&mut self, list: &PeerList) {
        self.peers.retain(|key, _| list.contains_key(key));
        for (key, peer) in list {
            // New addresses, for example of a restarted pod, start again with the first one.
            if self.peers.get(key).is_none_or(|known| known.peer != *peer) {
                let before = self.peers.remove(key);
                let known = PeerState {
                    peer: peer.clone(),
                    claimed: before.as_ref().and_then(|known| known.claimed.clone()),
                    ballot: before.and_then(|known| known.ballot),
                    address: 0,
                };
                self.peers.insert(key.clone(), known);
            }
        }
    }

    /// Returns a request to every agent. Two that responded last time, or are new, are to stand by;
    /// a standby remains one while it responds.
    pub(super) fn requests(&mut self) -> Vec<PeerRequest> {
        let own_node = &self.own_node;
        // An agent that claims our node is ourselves: standing by for itself would be no help.
        let fit = |known: &PeerState| {
            known.ballot != Some(Ballot::Silent) && known.claimed.as_ref() != Some(own_node)
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
        let requests = self.peers.iter().filter_map(|(key, known)| {
            let addresses = &known.peer.addresses;
            Some(PeerRequest {
                peer: key.clone(),
                address: addresses
                    .get(known.address % addresses.len().max(1))?
                    .clone(),
                standby: self.standbys.contains(key),
            })
        });
        requests.collect()
    }

    /// Records an agent's ballot and the node in its vote document.
    pub(super) fn record(&mut self, peer: &str, node: String, ballot: Ballot) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.claimed = Some(node);
            known.ballot = Some(ballot);
        }
    }

    /// Records that an agent returned no vote. The next request goes to another address of it.
    pub(super) fn record_silence(&mut self, peer: &str) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.ballot = Some(Ballot::Silent);
            // Taken modulo the number of addresses, which may change meanwhile.
            known.address = known.address.wrapping_add(1);
        }
    }

    /// Counts the ballots of all agents, `own` included. A node counts once, however many addresses
    /// claim it; an agent that claims this node is this agent itself, reached by another address. The
    /// node in the member's API takes precedence over the one that an agent claims.
    pub(super) fn tally(&self, own: Option<Vote>) -> Tally {
        let mut nodes: BTreeMap<&str, Ballot> = BTreeMap::new();
        for (key, known) in &self.peers {
            if known.claimed.as_ref() == Some(&self.own_node) {
                continue;
            }
            let node = known.peer.node.as_ref().or(known.claimed.as_ref());
            let ballot = known.ballot.unwrap_or(Ballot::Silent);
            let counted = nodes.entry(node.unwrap_or(key)).or_insert(ballot);
            // Of several addresses of a node, one that responds is enough.
            if matches!(counted, Ballot::Silent) {
                *counted = ballot;
            }
        }
        // Last, so that nothing a peer claims replaces this node's own vote.
        nodes.insert(&self.own_node, own.map_or(Ballot::NoVote, Ballot::Vote));
        let mut tally = Tally::default();
        for (node, ballot) in nodes {
            tally.count(node, ballot);
        }
        tally
    }

    /// Returns the agents that returned no vote to the last request.
    pub(super) fn silent_nodes(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().filter_map(|(key, known)| {
            let node = known.peer.node.as_ref().or(known.claimed.as_ref());
            (known.ballot == Some(Ballot::Silent)).then(|| node.unwrap_or(key).as_str())
        })
    }
}

#[cfg(test)]
mod tests;
