//! What is known of one member, and what a new fact about it means.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use karmada_api::Cluster;
use karmada_api::condition::{DNS_READY, REPORTER_READY, TRUE};
use karmada_rules::health::observation::Failure;
use tokio::time::Instant;

use super::happened::{Stage, Step, Story};
use super::traffic::Traffic;
use crate::facts::{DnsFault, Observation, Vote};

/// How long names must resolve until DNS counts as mended.
const MENDED_AFTER: Duration = Duration::from_secs(1);
/// So many requests must have gone elsewhere until a blocked cluster counts as left.
const LEFT_AFTER: u64 = 30;

#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) fault: DnsFault,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) leader: Option<String>,
    pub(super) cluster: Option<Arc<Cluster>>,
    /// Whether there was a Cluster and is none now.
    pub(super) deleted: bool,
    /// Since when each condition has its status.
    pub(super) conditions_since: BTreeMap<String, Instant>,
    /// Since when an ingress blocks it.
    pub(super) blocked_since: Option<Instant>,
    pub(super) traffic: Traffic,
    /// Whether the traffic left, as far as it was told.
    left: bool,
    /// Whether pods cannot resolve names, as far as it was told.
    broken: bool,
    /// Since when they can.
    well_since: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) alive: bool,
    pub(super) observation: Option<Observation>,
    /// Since when its vote is what it is.
    pub(super) since: Instant,
    /// Whether it was told that it votes unhealthy.
    unhealthy: bool,
}

/// The vote of an agent that does not answer is none.
pub(super) fn vote(observation: Option<&Observation>) -> Vote {
    observation.map_or(Vote::None, |observation| observation.vote)
}

impl Member {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn asked(&mut self, at: Instant, result: Result<(), Failure>, story: &mut Story) {
        if let Err(failure) = result {
            self.well_since = None;
            if !std::mem::replace(&mut self.broken, true) {
                let text = format!("names do not resolve in {}: {failure}", self.name);
                story.tell(at, &self.name, Step(Stage::DnsBroken, false), text);
            }
            return;
        }
        let since = *self.well_since.get_or_insert(at);
        if self.broken && at.saturating_duration_since(since) >= MENDED_AFTER {
            self.broken = false;
            let text = format!("names resolve in {} again", self.name);
            story.tell(since, &self.name, Step(Stage::DnsMended, true), text);
        }
    }

    pub(super) fn agent(&mut self, at: Instant, node: &str, alive: bool, story: &mut Story) {
        let Some(known) = self.nodes.get_mut(node) else {
            let known = Node {
                alive,
                observation: None,
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
            story.tell(at, &self.name, Step(stage, alive), text);
        }
    }

    pub(super) fn voted(
        &mut self,
        at: Instant,
        name: &str,
        observation: Option<Observation>,
        story: &mut Story,
    ) {
        let Some(node) = self.nodes.get_mut(name) else {
            return;
        };
        let now = vote(observation.as_ref());
        if now != vote(node.observation.as_ref()) {
            node.since = at;
        }
        match now {
            Vote::Unhealthy if !node.unhealthy => {
                node.unhealthy = true;
                let failure = observation.as_ref().and_then(Observation::failure);
                let why = failure.map(|failure| format!(": {failure}"));
                let text = format!("{name} votes unhealthy{}", why.unwrap_or_default());
                story.tell(at, &self.name, Step(Stage::Vote, false), text);
            }
            Vote::Healthy if node.unhealthy => {
                node.unhealthy = false;
                let text = format!("{name} votes healthy");
                story.tell(at, &self.name, Step(Stage::Vote, true), text);
            }
            _ => {}
        }
        node.observation = observation;
    }

    pub(super) fn led(&mut self, at: Instant, leader: Option<String>, story: &mut Story) {
        let before = std::mem::replace(&mut self.leader, leader);
        if let (Some(before), Some(now)) = (before, &self.leader)
            && before != *now
        {
            let text = format!("{now} leads in place of {before}");
            story.tell(at, &self.name, Step(Stage::Leader, true), text);
        }
    }

    pub(super) fn cluster(&mut self, at: Instant, now: Option<&Arc<Cluster>>, story: &mut Story) {
        let before = std::mem::replace(&mut self.cluster, now.cloned());
        let Some(cluster) = now else {
            if before.is_some() {
                self.deleted = true;
                self.conditions_since.clear();
                let text = format!("Cluster {} deleted", self.name);
                story.tell(at, &self.name, Step(Stage::ClusterDeleted, false), text);
            }
            return;
        };
        if std::mem::take(&mut self.deleted) {
            let text = format!("Cluster {} created", self.name);
            story.tell(at, &self.name, Step(Stage::ClusterCreated, true), text);
        }
        for condition in cluster.conditions() {
            let kind = &condition.type_;
            let old = before.as_ref().and_then(|before| before.condition(kind));
            if old.is_some_and(|old| old.status == condition.status) {
                continue;
            }
            self.conditions_since.insert(kind.clone(), at);
            let stage = match kind.as_str() {
                DNS_READY => Stage::Condition,
                REPORTER_READY => Stage::Reporter,
                _ => continue,
            };
            if old.is_some() {
                let text = format!("{kind} {}: {}", condition.status, condition.message);
                let good = condition.status == TRUE;
                story.tell(at, &self.name, Step(stage, good), text);
            }
        }
        let Some(before) = before else { return };
        let (old, now) = (before.remedy_actions(), cluster.remedy_actions());
        if old != now {
            let text = if now.is_empty() {
                "remedyActions cleared".to_owned()
            } else {
                format!("remedyActions {}", now.join(", "))
            };
            story.tell(at, &self.name, Step(Stage::Actions, now.is_empty()), text);
        }
    }

    pub(super) fn blocked(&mut self, at: Instant, ingress: Option<&str>, story: &mut Story) {
        let blocked = ingress.is_some();
        if self.blocked_since.is_some() == blocked {
            return;
        }
        self.blocked_since = blocked.then_some(at);
        let (stage, text) = match ingress {
            Some(ingress) => (Stage::Blocked, format!("ingress {ingress} blocks it")),
            None => (Stage::Unblocked, "no ingress blocks it".to_owned()),
        };
        story.tell(at, &self.name, Step(stage, !blocked), text);
    }

    pub(super) fn sent(&mut self, at: Instant, story: &mut Story) {
        self.traffic.sent(at);
        if std::mem::take(&mut self.left) {
            let text = "the first request reaches it again".to_owned();
            story.tell(at, &self.name, Step(Stage::TrafficBack, true), text);
        }
    }

    /// A request went to another member.
    pub(super) fn passed_over(&mut self, story: &mut Story) {
        self.traffic.elsewhere += 1;
        let gone = !self.left && self.traffic.is_settled() && self.traffic.elsewhere >= LEFT_AFTER;
        if let Some(blocked) = self.blocked_since.filter(|_| gone) {
            self.left = true;
            // The ingress says so once the load balancer may know.
            let since = self.traffic.last_sent.unwrap_or(blocked).max(blocked);
            let text = "no request goes there any more".to_owned();
            story.tell(since, &self.name, Step(Stage::TrafficGone, true), text);
        }
    }
}
