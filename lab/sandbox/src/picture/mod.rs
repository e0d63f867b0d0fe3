//! Everything that is known, made from facts; and from the same facts what happened.

mod happened;
mod member;
mod state;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{MultiClusterIngress, Remedy, cluster_of_execution_namespace};
use karmada_rules::remedy::{Scope, cause};
use kube::ResourceExt;
use tokio::time::Instant;

use self::happened::{Clock, Story};
use self::member::{Member, Node, vote};
use self::state::{ActionState, ApiState, ConditionState, DnsState, NodeState, RemedyState};
use crate::facts::{ApiFault, Fact, Observation};
use crate::story::StoryRemedy;

pub(crate) use self::happened::{Happened, Stage, Step, ms};
pub(crate) use self::state::{ClusterState, Sample, State, ThresholdsState};

/// What is known of the fleet.
#[derive(Debug)]
pub(crate) struct Picture {
    clock: Clock,
    thresholds: ThresholdsState,
    kubeconfig: String,
    members: BTreeMap<String, Member>,
    /// None until they were first listed.
    remedies: Option<BTreeMap<String, Arc<Remedy>>>,
    /// Their namespaces and names; none until they were first listed.
    ingresses: Option<BTreeSet<(Option<String>, String)>>,
    api_fault: ApiFault,
    api_fault_until: Option<Instant>,
    api_answers: bool,
    unserved: u64,
    story: Story,
}

impl Picture {
    /// A fleet of these members, of which nothing is known yet.
    pub(crate) fn new(members: &[String], thresholds: ThresholdsState, kubeconfig: String) -> Self {
        let clock = Clock::new();
        let members = members.iter().map(|name| (name.clone(), Member::new(name)));
        Self {
            clock,
            thresholds,
            kubeconfig,
            members: members.collect(),
            remedies: None,
            ingresses: None,
            api_fault: ApiFault::None,
            api_fault_until: None,
            api_answers: true,
            unserved: 0,
            story: Story::new(clock),
        }
    }

    /// Takes a fact in, and says what happened by it.
    pub(crate) fn take_in(&mut self, at: Instant, fact: Fact) -> Vec<Happened> {
        match fact {
            Fact::Clusters(clusters) => {
                for (name, member) in &mut self.members {
                    let now = clusters.iter().find(|cluster| cluster.name_any() == *name);
                    member.cluster(at, now, &mut self.story);
                }
            }
            Fact::Remedies(remedies) => self.remedies(at, remedies),
            Fact::Ingresses(ingresses) => self.ingresses(at, &ingresses),
            Fact::Leases(leases) => self.leases(at, &leases),
            Fact::ApiAnswers(answers) => self.api_answers(at, answers),
            Fact::Api { fault, until } => {
                self.api_fault = fault;
                self.api_fault_until = until;
            }
            Fact::Unserved => self.unserved += 1,
            Fact::Sent { cluster } => self.sent(at, &cluster),
            Fact::Dns { cluster, fault } => {
                if let Some(member) = self.members.get_mut(&cluster) {
                    member.fault = fault;
                }
            }
            Fact::Asked { cluster, result } => {
                if let Some(member) = self.members.get_mut(&cluster) {
                    member.asked(at, result, &mut self.story);
                }
            }
            Fact::Agent {
                cluster,
                node,
                alive,
            } => {
                if let Some(member) = self.members.get_mut(&cluster) {
                    member.agent(at, &node, alive, &mut self.story);
                }
            }
            Fact::Voted {
                cluster,
                node,
                observation,
            } => {
                if let Some(member) = self.members.get_mut(&cluster) {
                    member.voted(at, &node, observation, &mut self.story);
                }
            }
            Fact::Answered { cluster, ok } => {
                if let Some(member) = self.members.get_mut(&cluster) {
                    member.traffic.answered(at, ok);
                }
            }
        }
        self.story.take()
    }

    fn sent(&mut self, at: Instant, cluster: &str) {
        for (name, member) in &mut self.members {
            if name == cluster {
                member.sent(at, &mut self.story);
            } else {
                member.passed_over(&mut self.story);
            }
        }
    }

    fn remedies(&mut self, at: Instant, remedies: Vec<Arc<Remedy>>) {
        let now: BTreeMap<_, _> = remedies.into_iter().map(|r| (r.name_any(), r)).collect();
        if let Some(before) = &self.remedies {
            let created = now.iter().filter(|(name, _)| !before.contains_key(*name));
            let deleted = before.iter().filter(|(name, _)| !now.contains_key(*name));
            let created = created.map(|remedy| (remedy, Stage::RemedyCreated, "created"));
            let deleted = deleted.map(|remedy| (remedy, Stage::RemedyDeleted, "deleted"));
            for ((name, remedy), stage, what) in created.chain(deleted) {
                let scope = Scope::of(remedy);
                let clusters = self.members.keys().filter(|name| scope.covers(name));
                let text = format!("Remedy {name} {what}");
                let good = stage == Stage::RemedyCreated;
                self.story
                    .tell_of_all(at, clusters, Step(stage, good), text);
            }
        }
        self.remedies = Some(now);
    }

    fn ingresses(&mut self, at: Instant, ingresses: &[Arc<MultiClusterIngress>]) {
        let now: BTreeSet<_> = ingresses
            .iter()
            .map(|ingress| (ingress.namespace(), ingress.name_any()))
            .collect();
        if let Some(before) = &self.ingresses {
            let created = (now.difference(before)).map(|it| (it, Stage::IngressCreated, "created"));
            let deleted =
                (before.difference(&now)).map(|it| (it, Stage::IngressDeleted, "deleted"));
            for ((_, name), stage, what) in created.chain(deleted) {
                let text = format!("ingress {name} {what}");
                let good = stage == Stage::IngressCreated;
                let clusters = self.members.keys();
                self.story
                    .tell_of_all(at, clusters, Step(stage, good), text);
            }
        }
        self.ingresses = Some(now);
        for (name, member) in &mut self.members {
            let blocking = ingresses.iter().find(|ingress| {
                let status = ingress.status.as_ref();
                let blocked = status.and_then(|status| status.traffic_block_clusters.as_ref());
                blocked.is_some_and(|blocked| blocked.contains(name))
            });
            let blocking = blocking.map(|ingress| ingress.name_any());
            member.blocked(at, blocking.as_deref(), &mut self.story);
        }
    }

    fn leases(&mut self, at: Instant, leases: &[Arc<Lease>]) {
        for lease in leases {
            let namespace = lease.namespace().unwrap_or_default();
            let cluster = cluster_of_execution_namespace(&namespace);
            let is_agents = lease.name_any() == cluster_health_agent::NAME;
            let Some(member) = cluster.and_then(|cluster| self.members.get_mut(cluster)) else {
                continue;
            };
            if is_agents {
                let spec = lease.spec.as_ref();
                let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
                // `<node>_<uuid>`; empty once it is given back.
                let node = holder.and_then(|holder| holder.rsplit_once('_'));
                member.led(at, node.map(|(node, _)| node.to_owned()), &mut self.story);
            }
        }
    }

    fn api_answers(&mut self, at: Instant, answers: bool) {
        if std::mem::replace(&mut self.api_answers, answers) != answers {
            let (stage, text) = if answers {
                (Stage::ApiBack, "the Karmada API answers again")
            } else {
                (Stage::ApiGone, "the Karmada API does not answer")
            };
            self.story
                .tell_of_all(at, [], Step(stage, answers), text.to_owned());
        }
    }

    /// The picture as the page shows it.
    pub(crate) fn state(&mut self, now: Instant) -> State {
        let until = self.api_fault_until;
        if until.is_some_and(|until| until <= now) {
            (self.api_fault, self.api_fault_until) = (ApiFault::None, None);
        }
        let left = |until: Instant| ms(until.saturating_duration_since(now));
        let remedies: Vec<_> = self.remedies.iter().flat_map(BTreeMap::values).collect();
        let clusters = self.members.values_mut();
        let clusters = clusters.map(|member| cluster_state(member, &remedies, now, self.clock));
        let clusters: Vec<_> = clusters.collect();
        State {
            now_ms: self.clock.ms(now),
            thresholds: self.thresholds.clone(),
            kubeconfig: self.kubeconfig.clone(),
            clusters,
            remedies: self.remedy_states(),
            api: ApiState {
                fault: self.api_fault,
                left_ms: self.api_fault_until.map(left),
            },
            ingresses: self.ingresses.as_ref().map(BTreeSet::len),
            unserved: self.unserved,
        }
    }

    /// Those of the user stories, whether they exist or not, and then all others.
    fn remedy_states(&self) -> Vec<RemedyState> {
        let exists = |name: &str| {
            self.remedies
                .iter()
                .any(|remedies| remedies.contains_key(name))
        };
        let stories = StoryRemedy::ALL.map(|story| RemedyState {
            name: story.name().to_owned(),
            active: exists(story.object()),
        });
        let names = self.remedies.iter().flat_map(BTreeMap::keys);
        let others = names.filter(|name| StoryRemedy::ALL.iter().all(|s| s.object() != *name));
        let others = others.map(|name| RemedyState {
            name: name.clone(),
            active: true,
        });
        stories.into_iter().chain(others).collect()
    }
}

fn cluster_state(
    member: &mut Member,
    remedies: &[&Arc<Remedy>],
    now: Instant,
    clock: Clock,
) -> ClusterState {
    let (requests_per_second, errors_per_second) = member.traffic.rates(now);
    let node = |(name, node): (&String, &Node)| {
        let observation = node.observation.as_ref();
        NodeState {
            name: name.clone(),
            alive: node.alive,
            leader: member.leader.as_ref() == Some(name),
            vote: vote(observation),
            failure: observation.and_then(Observation::failure),
            since_ms: clock.ms(node.since),
        }
    };
    let conditions = member
        .cluster
        .iter()
        .flat_map(|cluster| cluster.conditions());
    let condition = conditions.map(|condition| ConditionState {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        since_ms: clock.ms(*member
            .conditions_since
            .get(&condition.type_)
            .unwrap_or(&now)),
    });
    let cluster = member.cluster.as_ref();
    let actions = cluster.iter().flat_map(|cluster| cluster.remedy_actions());
    let action = actions.map(|action| {
        let asking = remedies.iter().filter(|remedy| {
            let asked = remedy.spec.actions.iter().flatten().any(|a| a == action);
            asked && cluster.is_some_and(|cluster| cause(remedy, cluster).is_some())
        });
        ActionState {
            action: action.clone(),
            remedies: asking.map(|remedy| remedy.name_any()).collect(),
        }
    });
    ClusterState {
        name: member.name.clone(),
        deleted: member.deleted,
        dns: DnsState {
            fault: member.fault,
        },
        nodes: member.nodes.iter().map(node).collect(),
        conditions: condition.collect(),
        actions: action.collect(),
        blocked: member.blocked_since.is_some(),
        requests_per_second,
        errors_per_second,
        requests: member.traffic.answered,
        errors: member.traffic.errors,
    }
}

#[cfg(test)]
mod tests;
