//! The state of one member, and the effect of each update on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use health::observation::Failure;
use karmada_api::Cluster;
use karmada_api::condition::{
    DNS_READY, GATEWAY_REPORTER_READY, REACHABLE, REPORTER_READY, SERVICE_NETWORK_READY, TRUE,
};
use tokio::time::Instant;

use super::timeline::{Stage, Step, Timeline};
use super::traffic::Traffic;
use crate::fault::{DnsFault, Outage, ServiceNetworkFault};
use crate::node_vote::{NodeVote, Vote};
use crate::update::Side;

/// Names must resolve for this long until DNS counts as mended: one success between failures is a
/// coincidence.
const MENDED_AFTER: Duration = Duration::from_secs(1);
/// This many requests in a row must go elsewhere until traffic counts as gone from a blocked cluster.
const GONE_AFTER: u64 = 30;

#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) dns: DnsFault,
    pub(super) service_network: ServiceNetworkFault,
    pub(super) outage: Outage,
    /// Those to whom it does not respond.
    pub(super) lost_by: BTreeSet<Side>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) leader: Option<String>,
    pub(super) cluster: Option<Arc<Cluster>>,
    /// Set if its Cluster existed and was deleted.
    pub(super) deleted: bool,
    /// The time at which each condition got its status.
    pub(super) conditions_since: BTreeMap<String, Instant>,
    /// The time from which an ingress blocks it.
    pub(super) blocked_since: Option<Instant>,
    pub(super) traffic: Traffic,
    /// Set if the timeline's last entry on traffic is that it is gone.
    gone: bool,
    /// Set if the timeline's last entry on DNS is that it broke.
    broken: bool,
    /// The nodes from which pods cannot connect to Services.
    cut_nodes: usize,
    /// The first success since the last failed lookup.
    resolving_since: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) alive: bool,
    pub(super) vote: Option<NodeVote>,
    /// The time of its last change of vote.
    pub(super) since: Instant,
    /// Set if the timeline's last entry on its vote is that it is unhealthy.
    unhealthy: bool,
}

/// Returns a node's vote, which is none if its agent did not respond.
pub(super) fn vote(node: Option<&NodeVote>) -> Vote {
    node.map_or(Vote::None, |node| node.vote)
}

impl Member {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the status of a condition of its cluster.
    pub(super) fn verdict(&self, kind: &str) -> Option<&str> {
        let condition = self.cluster.as_ref()?.condition(kind)?;
        Some(&condition.status)
    }

    pub(super) fn lookup(
        &mut self,
        at: Instant,
        result: Result<(), Failure>,
        timeline: &mut Timeline,
    ) {
        if self.outage == Outage::PowerOff {
            // No pod is left that could notice.
            return;
        }
        if let Err(failure) = result {
            self.resolving_since = None;
            if !std::mem::replace(&mut self.broken, true) {
                let text = format!("names do not resolve in {}: {failure}", self.name);
                timeline.add(at, &self.name, Step(Stage::DnsBroken, false), text);
            }
            return;
        }
        let since = *self.resolving_since.get_or_insert(at);
        if self.broken && at.saturating_duration_since(since) >= MENDED_AFTER {
            self.broken = false;
            let text = format!("names resolve in {} again", self.name);
            timeline.add(since, &self.name, Step(Stage::DnsMended, true), text);
        }
    }

    /// Notes on how many nodes pods cannot connect to Services.
    pub(super) fn connections(&mut self, at: Instant, failing: usize, timeline: &mut Timeline) {
        if self.outage == Outage::PowerOff {
            return;
        }
        let before = std::mem::replace(&mut self.cut_nodes, failing);
        let name = &self.name;
        if failing > before {
            let text = format!("connections to Services fail on {failing} nodes of {name}");
            timeline.add(at, name, Step(Stage::NetworkBroken, false), text);
        } else if failing == 0 && before > 0 {
            let text = format!("connections to Services succeed in {name} again");
            timeline.add(at, name, Step(Stage::NetworkMended, true), text);
        }
    }

    /// Notes whether it responds to somebody.
    pub(super) fn reach(
        &mut self,
        at: Instant,
        from: Side,
        reached: bool,
        timeline: &mut Timeline,
    ) {
        let is_new = if reached {
            self.lost_by.remove(&from)
        } else {
            self.lost_by.insert(from)
        };
        if !is_new {
            return;
        }
        let (lost, back, who) = match from {
            Side::Gateway => (Stage::ReachLost, Stage::ReachBack, "the gateway"),
            Side::ControlPlane => (Stage::LinkLost, Stage::LinkBack, "the control plane"),
        };
        let name = &self.name;
        let (stage, text) = if reached {
            (back, format!("{name} responds to {who} again"))
        } else {
            (lost, format!("{name} does not respond to {who}"))
        };
        timeline.add(at, name, Step(stage, reached), text);
    }

    pub(super) fn agent(&mut self, at: Instant, node: &str, alive: bool, timeline: &mut Timeline) {
        let Some(known) = self.nodes.get_mut(node) else {
            let known = Node {
                alive,
                vote: None,
                since: at,
                unhealthy: false,
            };
            self.nodes.insert(node.to_owned(), known);
            return;
        };
        if std::mem::replace(&mut known.alive, alive) != alive {
            let (stage, text) = if alive {
                (Stage::AgentBack, format!("the agent of {node} runs again"))
            } else {
                (Stage::AgentGone, format!("the agent of {node} is gone"))
            };
            timeline.add(at, &self.name, Step(stage, alive), text);
        }
    }

    pub(super) fn voted(
        &mut self,
        at: Instant,
        name: &str,
        now: Option<NodeVote>,
        timeline: &mut Timeline,
    ) {
        let Some(node) = self.nodes.get_mut(name) else {
            return;
        };
        if vote(now.as_ref()) != vote(node.vote.as_ref()) {
            node.since = at;
        }
        match vote(now.as_ref()) {
            Vote::Unhealthy if !node.unhealthy => {
                node.unhealthy = true;
                let failure = now.as_ref().and_then(NodeVote::failure);
                let why = failure.map(|failure| format!(": {failure}"));
                let text = format!("{name} votes unhealthy{}", why.unwrap_or_default());
                timeline.add(at, &self.name, Step(Stage::Vote, false), text);
            }
            Vote::Healthy if node.unhealthy => {
                node.unhealthy = false;
                let text = format!("{name} votes healthy");
                timeline.add(at, &self.name, Step(Stage::Vote, true), text);
            }
            _ => {}
        }
        node.vote = now;
    }

    pub(super) fn led(&mut self, at: Instant, leader: Option<String>, timeline: &mut Timeline) {
        let before = std::mem::replace(&mut self.leader, leader);
        if let (Some(before), Some(now)) = (before, &self.leader)
            && before != *now
        {
            let text = format!("{now} leads in place of {before}");
            timeline.add(at, &self.name, Step(Stage::Leader, true), text);
        }
    }

    pub(super) fn cluster(
        &mut self,
        at: Instant,
        now: Option<&Arc<Cluster>>,
        timeline: &mut Timeline,
    ) {
        let before = std::mem::replace(&mut self.cluster, now.cloned());
        let Some(cluster) = now else {
            if before.is_some() {
                self.deleted = true;
                self.conditions_since.clear();
                let text = format!("Cluster {} deleted", self.name);
                timeline.add(at, &self.name, Step(Stage::ClusterDeleted, false), text);
            }
            return;
        };
        if std::mem::take(&mut self.deleted) {
            let text = format!("Cluster {} created", self.name);
            timeline.add(at, &self.name, Step(Stage::ClusterCreated, true), text);
        }
        for condition in cluster.conditions() {
            let kind = &condition.type_;
            let old = before.as_ref().and_then(|before| before.condition(kind));
            if old.is_some_and(|old| old.status == condition.status) {
                continue;
            }
            self.conditions_since.insert(kind.clone(), at);
            let stage = match kind.as_str() {
                DNS_READY | SERVICE_NETWORK_READY | REACHABLE => Stage::Condition,
                REPORTER_READY | GATEWAY_REPORTER_READY => Stage::Reporter,
                _ => continue,
            };
            // A cluster's first verdict is an event, too: without it a False one would show nowhere.
            let text = format!("{kind} {}: {}", condition.status, condition.message);
            let good = condition.status == TRUE;
            timeline.add(at, &self.name, Step(stage, good), text);
        }
        let Some(before) = before else { return };
        let (old, now) = (before.remedy_actions(), cluster.remedy_actions());
        if old != now {
            let text = if now.is_empty() {
                "remedyActions cleared".to_owned()
            } else {
                format!("remedyActions {}", now.join(", "))
            };
            timeline.add(at, &self.name, Step(Stage::Actions, now.is_empty()), text);
        }
    }

    pub(super) fn blocked(&mut self, at: Instant, ingress: Option<&str>, timeline: &mut Timeline) {
        let blocked = ingress.is_some();
        if self.blocked_since.is_some() == blocked {
            return;
        }
        self.blocked_since = blocked.then_some(at);
        let (stage, text) = match ingress {
            Some(ingress) => (Stage::Blocked, format!("ingress {ingress} blocks it")),
            None => (Stage::Unblocked, "no ingress blocks it".to_owned()),
        };
        timeline.add(at, &self.name, Step(stage, !blocked), text);
    }

    pub(super) fn sent(&mut self, at: Instant, timeline: &mut Timeline) {
        self.traffic.sent(at);
        if std::mem::take(&mut self.gone) {
            let text = "the first request reaches it again".to_owned();
            timeline.add(at, &self.name, Step(Stage::TrafficBack, true), text);
        }
    }

    /// Notes that a request went to another member.
    pub(super) fn passed_over(&mut self, timeline: &mut Timeline) {
        self.traffic.elsewhere += 1;
        let gone = !self.gone && self.traffic.is_settled() && self.traffic.elsewhere >= GONE_AFTER;
        if let Some(blocked) = self.blocked_since.filter(|_| gone) {
            self.gone = true;
            // The block takes effect before its status is written, so the last request may be older.
            let since = self.traffic.last_sent.unwrap_or(blocked).max(blocked);
            let text = "no request goes there any more".to_owned();
            timeline.add(since, &self.name, Step(Stage::TrafficGone, true), text);
        }
    }
}
