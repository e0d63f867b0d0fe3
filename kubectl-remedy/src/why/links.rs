//! The links of one cluster, as the rules see them.

use karmada_api::condition::{Condition, REPORTER_LEASE, owned};
use karmada_api::remedy::{EXPIRES_AT, REASON};
use karmada_api::{
    Cluster, ClusterConditionRequirement, MultiClusterIngress, Operator, Remedy, TRAFFIC_CONTROL,
};
use kube::ResourceExt;
use traffic::ingress::Desired;
use traffic::remedy::{self, Decision, Effect, Mode, Problem, covers, is_met, problems};

use super::explanation::{
    Actions, BackendState, IngressState, RemedyEffect, ReporterLease, Traces, requires,
};
use crate::args::ControllerArgs;
use crate::change::Change;
use crate::fleet::FleetSnapshot;
use crate::lease::Holder;
use crate::status::{blocked, is_located};

/// One cluster, and all that decides about it.
#[derive(Debug)]
pub(super) struct Links<'a> {
    pub(super) fleet: &'a FleetSnapshot,
    pub(super) cluster: &'a Cluster,
    pub(super) traces: &'a Traces,
    pub(super) controllers: &'a ControllerArgs,
}

impl Links<'_> {
    pub(super) fn name(&self) -> String {
        self.cluster.name_any()
    }

    pub(super) fn is_blocked(&self) -> bool {
        let actions = self.cluster.remedy_actions();
        actions.iter().any(|action| action == TRAFFIC_CONTROL)
    }

    pub(super) fn summary(&self) -> String {
        let name = self.name();
        let acting = self.fleet.acting_on(self.cluster);
        let blocking: Vec<String> = acting
            .iter()
            .filter(|(remedy, _)| requires(remedy, TRAFFIC_CONTROL))
            .map(|(remedy, cause)| format!("Remedy {} ({cause})", remedy.name_any()))
            .collect();
        let blocking = blocking.join(", ");
        match (self.is_blocked(), blocking.is_empty()) {
            (true, false) => format!("{name} is blocked by {blocking}."),
            (true, true) => format!("{name} is blocked although no Remedy asks for it any more."),
            (false, false) => format!("{name} is not blocked although {blocking} asks for it."),
            (false, true) => format!("{name} is not blocked."),
        }
    }

    pub(super) fn conditions(&self) -> Vec<Condition> {
        owned(self.cluster.conditions()).cloned().collect()
    }

    pub(super) fn lease(&self) -> ReporterLease {
        let lease = self.traces.lease.as_ref();
        ReporterLease {
            namespace: self.fleet.kind.namespace(&self.name()),
            name: REPORTER_LEASE,
            exists: lease.is_some(),
            holder: lease.and_then(|lease| Holder::of(lease, self.fleet.now)),
            refusals: self.traces.refusals.clone(),
        }
    }

    pub(super) fn remedies(&self) -> Vec<RemedyEffect> {
        let read = self.fleet.remedies.iter();
        let unread = self.fleet.remedies.unread().iter();
        read.map(|(_, remedy)| self.effect(remedy))
            .chain(unread.map(|key| RemedyEffect {
                name: key.name.clone(),
                acts: None,
                actions: Vec::new(),
                because: "it cannot be read, so no action is cleared".to_owned(),
                reason: None,
                expires_at: None,
            }))
            .collect()
    }

    fn effect(&self, remedy: &Remedy) -> RemedyEffect {
        let cause = remedy::cause(remedy, self.cluster, self.fleet.now);
        let annotations = remedy.annotations();
        RemedyEffect {
            name: remedy.name_any(),
            acts: Some(cause.is_some()),
            actions: remedy.spec.actions.clone().unwrap_or_default(),
            because: cause.map_or_else(|| self.why_not(remedy), |cause| cause.to_string()),
            reason: annotations.get(REASON).cloned(),
            expires_at: annotations.get(EXPIRES_AT).cloned(),
        }
    }

    /// Returns the reason why `remedy` does not act on the cluster.
    pub(super) fn why_not(&self, remedy: &Remedy) -> String {
        if remedy.metadata.deletion_timestamp.is_some() {
            return "it is being deleted".to_owned();
        }
        let fleet = remedy::FleetLookup {
            has_cluster: &|_| true,
            has_condition: &|_| true,
        };
        let mut problems = problems(remedy, fleet).into_iter();
        let empty = problems
            .find(|problem| matches!(problem, Problem::SelectsNoCluster | Problem::NeverMatches));
        if let Some(empty) = empty {
            return empty.to_string();
        }
        if !covers(remedy, &self.name()) {
            return "it does not name this cluster".to_owned();
        }
        if Mode::of(remedy, self.fleet.now) == Mode::Expired {
            return "it has expired".to_owned();
        }
        let decision = Decision::of(remedy);
        if let Decision::Unreadable(error) = decision {
            return error.to_string();
        }
        match Effect::of(remedy, self.cluster, self.fleet.now) {
            Some(Effect::WouldAct(cause)) => return format!("it only observes: {cause}"),
            Some(Effect::Unclear) => return "what decides about it cannot be read".to_owned(),
            Some(Effect::Acts(_)) | None => {}
        }
        let reasons: Vec<String> = match decision {
            Decision::Any(matches) => matches
                .iter()
                .map(|wanted| match &wanted.cluster_condition_match {
                    Some(wanted) => self.unmet(wanted),
                    None => "a match names no condition".to_owned(),
                })
                .collect(),
            // Those that are met are no reason.
            Decision::All(wanted) => wanted
                .iter()
                .filter(|wanted| !is_met(wanted, self.cluster))
                .map(|wanted| self.unmet(wanted))
                .collect(),
            Decision::AtOnce | Decision::Unreadable(_) => Vec::new(),
        };
        reasons.join("; ")
    }

    /// Returns the reason why the cluster does not meet a requirement.
    fn unmet(&self, wanted: &ClusterConditionRequirement) -> String {
        let kind = &wanted.condition_type;
        let asked = match wanted.operator {
            Some(Operator::Equal) => format!("{} is asked for", wanted.condition_status),
            Some(Operator::NotEqual) => "any other is asked for".to_owned(),
            None => return format!("a match on {kind} has no operator"),
        };
        match self.cluster.condition(kind) {
            None => format!("the cluster has no {kind}"),
            Some(found) if found.unclear => format!("{kind} cannot be read"),
            Some(found) => format!("{kind} is {}, and {asked}", found.status),
        }
    }

    pub(super) fn actions(&self) -> Actions {
        let fleet = self.fleet.forecast(self.controllers.max_blocked_clusters);
        let mut all = fleet.iter();
        let own = all.find(|known| known.cluster.name_any() == self.name());
        Actions {
            present: self.cluster.remedy_actions().to_vec(),
            last_writer: self.traces.actions.clone(),
            pending: own.into_iter().flat_map(Change::all_of).collect(),
        }
    }

    pub(super) fn ingresses(&self) -> Vec<IngressState> {
        let name = self.name();
        let served = self.fleet.served(&self.controllers.settings());
        let mut states = Vec::new();
        for (key, ingress) in self.fleet.ingresses.iter() {
            let is_blocked = blocked(ingress).contains(&name);
            if !is_blocked && !is_located(ingress, &name) {
                continue;
            }
            let desired = served.iter().find(|desired| desired.key == *key);
            states.push(IngressState {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                is_blocked,
                blocked_clusters: blocked(ingress).to_vec(),
                addresses: addresses(ingress),
                last_writer: self.traces.blocks.get(key).cloned(),
                backends: desired.map(|desired| self.backends(desired)),
            });
        }
        states
    }

    /// Returns the servers of the backends of an ingress that run in the cluster.
    fn backends(&self, desired: &Desired) -> Vec<BackendState> {
        let name = self.name();
        let here = desired.backends.iter().filter(|backend| {
            let here = backend.cluster(&name);
            here.is_some_and(|here| here.is_located)
        });
        here.map(|backend| BackendState {
            service: backend.service.clone(),
            served_by: backend.serving(),
        })
        .collect()
    }
}

/// Returns the addresses of the load balancer of `ingress`, by its status.
fn addresses(ingress: &MultiClusterIngress) -> Vec<String> {
    let status = ingress.status.as_ref();
    let reported = status.and_then(|status| status.load_balancer.as_ref());
    let entries = reported.and_then(|reported| reported.ingress.as_ref());
    let entries = entries.into_iter().flatten();
    let addresses = entries.flat_map(|entry| [&entry.ip, &entry.hostname]);
    addresses.flatten().cloned().collect()
}
