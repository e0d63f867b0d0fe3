//! The fleet's state and its timeline, both made from the updates.

mod member;
mod placements;
mod remedy;
mod rollout;
mod state;
mod timeline;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::traffic::remedy::cause;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, MultiClusterIngress, Remedy, cluster_of_execution_namespace};
use kube::ResourceExt;
use tokio::time::Instant;

use self::member::{Member, vote};
use self::placements::Placements;
use self::remedy::Remedies;
use self::rollout::Rollout;
use self::state::{
    ActionState, ApiState, ConditionState, DnsState, NodeState, Phase, ServiceNetworkState,
};
use self::timeline::{Clock, Timeline};
use crate::fault::ApiFault;
use crate::node_vote::NodeVote;
use crate::site::Site;
use crate::update::{Request, Update};

pub(crate) use self::state::{
    ClusterState, PlacedPhase, PlacementPhase, PlacementState, RemedyPhase, RolloutState, Sample,
    State, ThresholdsState,
};
pub(crate) use self::timeline::{Stage, Step, TimelineEntry, ms};

/// The state of the fleet, as far as updates have shown it.
#[derive(Debug)]
pub(crate) struct Picture {
    clock: Clock,
    thresholds: ThresholdsState,
    kubeconfig: String,
    members: BTreeMap<String, Member>,
    remedies: Remedies,
    /// Their namespaces and names; none before the first list.
    ingresses: Option<BTreeSet<(Option<String>, String)>>,
    api_fault: ApiFault,
    api_fault_until: Option<Instant>,
    api_available: bool,
    unserved: u64,
    rollout: Rollout,
    placements: Placements,
    timeline: Timeline,
}

impl Picture {
    /// Creates the state of these members before any update.
    pub(crate) fn new(members: &[String], thresholds: ThresholdsState, kubeconfig: String) -> Self {
        let clock = Clock::new();
        let (remedies, rollout) = (Remedies::new(members), Rollout::new(members));
        let placements = Placements::new(members);
        let members = members.iter().map(|name| (name.clone(), Member::new(name)));
        Self {
            clock,
            thresholds,
            kubeconfig,
            members: members.collect(),
            remedies,
            ingresses: None,
            api_fault: ApiFault::None,
            api_fault_until: None,
            api_available: true,
            unserved: 0,
            rollout,
            placements,
            timeline: Timeline::new(clock),
        }
    }

    /// Applies an update and returns the timeline entries that it leads to.
    pub(crate) fn apply(&mut self, at: Instant, update: Update) -> Vec<TimelineEntry> {
        self.remedies.expire(at, &mut self.timeline);
        match update {
            Update::Clusters(clusters) => self.clusters(at, &clusters),
            Update::Remedies(remedies) => self.remedies.replace(at, remedies, &mut self.timeline),
            Update::Ingresses(ingresses) => self.ingresses(at, &ingresses),
            Update::Leases(leases) => self.leases(at, &leases),
            Update::Templates(_)
            | Update::Profiles(_)
            | Update::Works(_)
            | Update::Copies {
                site: Site::Shop, ..
            } => {
                self.rollout.apply(at, &update, &mut self.timeline);
            }
            Update::Hub(update) => self.placements.apply(at, update, &mut self.timeline),
            Update::Copies {
                site: Site::Store,
                cluster,
                copies,
            } => {
                (self.placements).copies(at, &cluster, &copies, &mut self.timeline);
            }
            Update::Request(Site::Shop, request) => self.request(at, request),
            Update::Request(Site::Store, request) => self.placements.request(at, request),
            Update::ApiAvailable(available) => self.api_available(at, available),
            Update::Api { fault, until } => {
                self.api_fault = fault;
                self.api_fault_until = until;
            }
            Update::Dns { cluster, fault } => self.on(&cluster, |member, _| member.dns = fault),
            Update::ServiceNetwork { cluster, fault } => {
                self.on(&cluster, |member, _| member.service_network = fault);
            }
            Update::Outage { cluster, outage } => {
                self.on(&cluster, |member, _| member.outage = outage);
            }
            Update::Reach {
                cluster,
                from,
                reached,
            } => self.on(&cluster, |member, timeline| {
                member.reach(at, from, reached, timeline);
            }),
            Update::Connections { cluster, failing } => self.on(&cluster, |member, timeline| {
                member.connections(at, failing, timeline);
            }),
            Update::Lookup { cluster, result } => self.on(&cluster, |member, timeline| {
                member.lookup(at, result, timeline);
            }),
            Update::Agent {
                cluster,
                node,
                alive,
            } => self.on(&cluster, |member, timeline| {
                member.agent(at, &node, alive, timeline);
            }),
            Update::Vote {
                cluster,
                node,
                vote,
            } => self.on(&cluster, |member, timeline| {
                member.voted(at, &node, vote, timeline);
            }),
        }
        self.timeline.take()
    }

    /// Lets a member change, if there is one of that name.
    fn on(&mut self, cluster: &str, change: impl FnOnce(&mut Member, &mut Timeline)) {
        if let Some(member) = self.members.get_mut(cluster) {
            change(member, &mut self.timeline);
        }
    }

    fn clusters(&mut self, at: Instant, clusters: &[Arc<Cluster>]) {
        for (name, member) in &mut self.members {
            let now = clusters.iter().find(|cluster| cluster.name_any() == *name);
            member.cluster(at, now, &mut self.timeline);
        }
    }

    fn request(&mut self, at: Instant, request: Request) {
        match request {
            Request::Sent { cluster } => self.sent(at, &cluster),
            Request::Responded { cluster, ok } => {
                self.on(&cluster, |member, _| member.traffic.ended(at, ok));
            }
            Request::Unserved => self.unserved += 1,
        }
    }

    fn sent(&mut self, at: Instant, cluster: &str) {
        for (name, member) in &mut self.members {
            if name == cluster {
                member.sent(at, &mut self.timeline);
            } else {
                member.passed_over(&mut self.timeline);
            }
        }
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
                self.timeline
                    .add_for_all(at, clusters, Step(stage, good), text);
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
            member.blocked(at, blocking.as_deref(), &mut self.timeline);
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
                // `<node>_<uuid>`; empty once the lease is released.
                let node = holder.and_then(|holder| holder.rsplit_once('_'));
                member.led(
                    at,
                    node.map(|(node, _)| node.to_owned()),
                    &mut self.timeline,
                );
            }
        }
    }

    fn api_available(&mut self, at: Instant, available: bool) {
        if std::mem::replace(&mut self.api_available, available) != available {
            let (stage, text) = if available {
                (Stage::ApiBack, "the Karmada API responds again")
            } else {
                (Stage::ApiGone, "the Karmada API does not respond")
            };
            self.timeline
                .add_for_all(at, [], Step(stage, available), text.to_owned());
        }
    }

    /// Returns the state as the page shows it.
    pub(crate) fn state(&mut self, now: Instant) -> State {
        let until = self.api_fault_until;
        if until.is_some_and(|until| until <= now) {
            (self.api_fault, self.api_fault_until) = (ApiFault::None, None);
        }
        let remedies: Vec<_> = self.remedies.existing().collect();
        let clusters = self.members.values_mut();
        let clusters = clusters.map(|member| cluster_state(member, &remedies, now, self.clock));
        let clusters: Vec<_> = clusters.collect();
        State {
            now_ms: self.clock.ms(now),
            thresholds: self.thresholds.clone(),
            kubeconfig: self.kubeconfig.clone(),
            clusters,
            rollout: self.rollout.state(),
            placements: self.placements.state(now),
            remedies: self.remedies.states(),
            api: ApiState {
                fault: self.api_fault,
                left_ms: (self.api_fault_until)
                    .map(|until| ms(until.saturating_duration_since(now))),
            },
            ingresses: self.ingresses.as_ref().map(BTreeSet::len),
            unserved: self.unserved,
        }
    }
}

fn cluster_state(
    member: &mut Member,
    remedies: &[&Arc<Remedy>],
    now: Instant,
    clock: Clock,
) -> ClusterState {
    let (requests_per_second, errors_per_second) = member.traffic.rates(now);
    let nodes = member.nodes.iter().map(|(name, node)| {
        let latest = node.vote.as_ref();
        NodeState {
            name: name.clone(),
            alive: node.alive,
            leader: member.leader.as_ref() == Some(name),
            vote: vote(latest),
            failure: latest.and_then(NodeVote::failure),
            network_failure: latest.and_then(NodeVote::network_failure),
            since_ms: clock.ms(node.since),
        }
    });
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
    let time = Timestamp::now();
    let actions = cluster.iter().flat_map(|cluster| cluster.remedy_actions());
    let action = actions.map(|action| {
        let causing = remedies.iter().filter(|remedy| {
            let has_action = remedy.spec.actions.iter().flatten().any(|a| a == action);
            has_action && cluster.is_some_and(|cluster| cause(remedy, cluster, time).is_some())
        });
        ActionState {
            action: action.clone(),
            remedies: causing.map(|remedy| remedy.name_any()).collect(),
        }
    });
    ClusterState {
        name: member.name.clone(),
        phase: Phase::of(member, requests_per_second),
        deleted: member.deleted,
        outage: member.outage,
        lost_by: member.lost_by.iter().copied().collect(),
        dns: DnsState { fault: member.dns },
        service_network: ServiceNetworkState {
            fault: member.service_network,
        },
        nodes: nodes.collect(),
        conditions: condition.collect(),
        actions: action.collect(),
        blocked: member.blocked_since.is_some(),
        requests_per_second,
        errors_per_second,
        requests: member.traffic.ended,
        errors: member.traffic.errors,
    }
}

#[cfg(test)]
mod tests;
