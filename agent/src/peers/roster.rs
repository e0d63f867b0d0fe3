//! The leader's roster of the other agents: who they are, their last ballots, and who stands by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use health::quorum::{Ballot, Tally};
use health::signal::{PerTarget, Voters};
use uuid::Uuid;

use super::Identity;
use super::list::{Peer, PeerList};
use crate::vote::Votes;

/// The number of agents that a leader has stand by for it. With two, the lease passes on within its
/// duration even if one of them dies with the leader.
const STANDBYS: usize = 2;

/// The other agents of the leader `own`.
#[derive(Debug)]
pub(super) struct Roster {
    own: Arc<Identity>,
    peers: BTreeMap<String, PeerState>,
    standbys: BTreeSet<String>,
}

#[derive(Debug)]
struct PeerState {
    peer: Peer,
    /// The identity in its last vote document.
    claimed: Option<Claim>,
    /// `None` before the first request.
    response: Option<Response>,
    /// The index of the address for the next request, modulo their number.
    address: usize,
}

/// The response to the last request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Response {
    Silence,
    Ballots(PerTarget<Ballot>),
}

/// The identity that an agent claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) node: String,
    /// The identifier of its process.
    pub(super) agent: Uuid,
}

/// The criterion by which two addresses belong to the same agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who<'a> {
    /// The node in the member's API.
    Node(&'a str),
    /// The process.
    Process(Uuid),
    /// The key, without a response so far.
    Key(&'a str),
}

impl PeerState {
    fn responds(&self) -> bool {
        self.ballots().is_some()
    }

    fn is_silent(&self) -> bool {
        self.response == Some(Response::Silence)
    }

    fn ballots(&self) -> Option<&PerTarget<Ballot>> {
        match &self.response {
            Some(Response::Ballots(ballots)) => Some(ballots),
            Some(Response::Silence) | None => None,
        }
    }

    /// Returns `true` if its address leads to the agent `own`. An agent with another identifier than ours is
    /// another one, even with our name. As long as it sends nothing, the node in the member's API
    /// decides.
    fn is(&self, own: &Identity) -> bool {
        match &self.claimed {
            Some(claim) => claim.agent == own.id,
            None => self.peer.node.as_ref() == Some(&own.node),
        }
    }

    /// Returns its node: the one in the member's API takes precedence over the one that it claims.
    fn node(&self) -> Option<&str> {
        let claimed = self.claimed.as_ref().map(|claim| &claim.node);
        self.peer.node.as_ref().or(claimed).map(String::as_str)
    }

    /// Returns `true` if it can stand by for the agent `own`. Standing by for itself would be no help.
    fn may_stand_by_for(&self, own: &Identity) -> bool {
        !self.is_silent() && !self.is(own)
    }

    fn who<'a>(&'a self, key: &'a str) -> Who<'a> {
        match (&self.peer.node, &self.claimed) {
            (Some(node), _) => Who::Node(node),
            (None, Some(claim)) => Who::Process(claim.agent),
            (None, None) => Who::Key(key),
        }
    }
}

/// A request to one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerRequest {
    pub(super) peer: String,
    pub(super) address: String,
    pub(super) standby: bool,
}

impl Roster {
    pub(super) fn new(own: Arc<Identity>) -> Self {
        Self {
            own,
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
                    response: before.and_then(|known| known.response),
                    address: 0,
                };
                self.peers.insert(key.clone(), known);
            }
        }
    }

    /// Returns a request to every agent. Two that responded last time, or are new, are to stand by;
    /// a standby remains one while it responds.
    pub(super) fn requests(&mut self) -> Vec<PeerRequest> {
        let (own, peers) = (&self.own, &self.peers);
        self.standbys.retain(|key| {
            let known = peers.get(key);
            known.is_some_and(|known| known.may_stand_by_for(own))
        });
        for (key, known) in peers {
            if self.standbys.len() >= STANDBYS {
                break;
            }
            if known.may_stand_by_for(own) {
                self.standbys.insert(key.clone());
            }
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

    /// Records an agent's ballots and the identity in its vote document.
    pub(super) fn record(&mut self, peer: &str, claim: Claim, ballots: PerTarget<Ballot>) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.claimed = Some(claim);
            known.response = Some(Response::Ballots(ballots));
        }
    }

    /// Records that an agent returned no vote. The next request goes to another address of it.
    pub(super) fn record_silence(&mut self, peer: &str) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.response = Some(Response::Silence);
            // Taken modulo the number of addresses, which may change meanwhile.
            known.address = known.address.wrapping_add(1);
        }
    }

    /// Counts the ballots of all agents on each target of `own`, our votes. An agent counts once, however
    /// many addresses it has, and two agents of one name count twice. On a signal that the leader alone probes, ours counts alone.
    pub(super) fn tallies(&self, own: &Votes) -> PerTarget<Tally> {
        let agents = self.agents();
        own.map(|target, vote| {
            let mut tally = Tally::default();
            tally.count(&self.own.node, vote.map_or(Ballot::NoVote, Ballot::Vote));
            if target.signal.voters == Voters::Leader {
                return tally;
            }
            for (name, ballots) in &agents {
                // One that this node has known since the last request only has no ballot of others yet.
                let ballot = ballots.map(|ballots| ballots.of(target).copied());
                let ballot = ballot.map(|ballot| ballot.unwrap_or(Ballot::NoVote));
                tally.count(name, ballot.unwrap_or(Ballot::Silent));
            }
            tally
        })
    }

    /// Returns the other agents, each with a name that only it has, and its ballots if it responds.
    fn agents(&self) -> Vec<(String, Option<&PerTarget<Ballot>>)> {
        let mut agents: BTreeMap<Who<'_>, (&str, &str, Option<&PerTarget<Ballot>>)> =
            BTreeMap::new();
        for (key, known) in &self.peers {
            if known.is(&self.own) {
                continue;
            }
            let node = known.node().unwrap_or(key);
            let counted = agents.entry(known.who(key)).or_insert((node, key, None));
            // Of several addresses of an agent, one that responds is enough.
            counted.2 = counted.2.or_else(|| known.ballots());
        }
        // With ours first, so that nothing a peer claims takes this node's name.
        let mut names = BTreeSet::from([self.own.node.as_str()]);
        let agents = agents.into_values().map(|(node, key, ballots)| {
            let name = if names.insert(node) {
                node.to_owned()
            } else {
                format!("{node} at {key}")
            };
            (name, ballots)
        });
        agents.collect()
    }

    /// Returns the names that several responding agents claim, with the keys of those agents.
    pub(super) fn namesakes(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut seen = BTreeSet::new();
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, known) in &self.peers {
            let Some(claim) = known.claimed.as_ref().filter(|_| known.responds()) else {
                continue;
            };
            if !known.is(&self.own) && seen.insert(known.who(key)) {
                names.entry(&claim.node).or_default().push(key);
            }
        }
        names.retain(|node, keys| keys.len() > 1 || *node == self.own.node);
        names
    }

    /// Returns the agents that returned no vote to the last request.
    pub(super) fn silent_nodes(&self) -> impl Iterator<Item = &str> {
        let peers = self.peers.iter();
        let silent = peers.filter(|(_, known)| known.is_silent());
        silent.map(|(key, known)| known.node().unwrap_or(key))
    }
}

#[cfg(test)]
mod tests;
