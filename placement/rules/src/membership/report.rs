//! The status of a cluster of the fleet.

use fleet_api::conditions::{COSTS_COLLECTED, NAMESPACES_COLLECTED, TRAFFIC_CONTROL};
use fleet_api::member::{AgentStatus, MEMBER_AGENT, MemberClusterStatus};
use objects::condition::{Condition, FALSE, TRUE, find};
use objects::write::{ObjectRef, Write};

use super::facts::MembershipFacts;
use crate::condition::{condition, put};

/// Whether the hub has the objects that the agent of a cluster needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It has.
    Ready,
    /// The cluster is leaving.
    Leaving,
    /// It cannot have it, for this reason.
    Refused(&'static str),
}

impl Readiness {
    fn condition(self) -> Condition {
        let not_ready = "Member cluster is not ready to join the fleet";
        let message = match self {
            Self::Ready => {
                let message = "Member cluster is ready to join the fleet";
                return condition(("ReadyToJoin", TRUE), "MemberClusterReadyToJoin", message);
            }
            Self::Leaving => not_ready.to_owned(),
            Self::Refused(reason) => format!("{not_ready}: {reason}"),
        };
        condition(
            ("ReadyToJoin", FALSE),
            "MemberClusterNotReadyToJoin",
            &message,
        )
    }
}

/// Returns the write that brings the status of the cluster up to date with its channel, unless it is.
pub(super) fn write(facts: &MembershipFacts<'_>, readiness: Readiness) -> Option<Write> {
    let cluster = facts.cluster;
    let before = cluster.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let channel = facts.channel.and_then(|channel| channel.status.as_ref());
    if let Some(channel) = channel {
        after = MemberClusterStatus {
            conditions: after.conditions,
            ..channel.clone()
        };
        let agents = after.agent_status.iter_mut();
        for condition in agents.flat_map(|agent| &mut agent.conditions) {
            condition.observed_generation = cluster.metadata.generation;
        }
    }
    // The agent speaks of itself, as that the properties of the cluster are collected. Which traffic the cluster gets is not
    // for the agent to say.
    let told = channel.into_iter().flat_map(|channel| &channel.conditions);
    let told = told.filter(|one| one.type_ != TRAFFIC_CONTROL);
    let told: Vec<_> = told.cloned().collect();
    for kind in [COSTS_COLLECTED, NAMESPACES_COLLECTED] {
        if find(&told, kind).is_none() {
            after.conditions.retain(|one| one.type_ != kind);
        }
    }
    let new = [Some(readiness.condition()), joined(&after.agent_status)];
    let new = told.into_iter().chain(new.into_iter().flatten());
    let dated = (cluster.metadata.generation, facts.now);
    put(&mut after.conditions, new, dated);
    let object = ObjectRef::of(cluster, &());
    Write::status_between("member_status", object, &before, &after)
}

/// Returns the condition whether a cluster with these agents has joined; `None` before its own has said a word. Those of
/// networking come and go without it.
pub(super) fn joined(agents: &[AgentStatus]) -> Option<Condition> {
    let agents = agents.iter().filter(|agent| agent.type_ == MEMBER_AGENT);
    let said: Vec<_> = agents
        .map(|agent| find(&agent.conditions, "Joined").map(|joined| &*joined.status))
        .collect();
    if said.is_empty() {
        return None;
    }
    Some(if said.iter().all(|said| *said == Some(TRUE)) {
        condition(
            ("Joined", TRUE),
            "MemberClusterJoined",
            "Member cluster has successfully joined the fleet",
        )
    } else if said.iter().all(|said| *said == Some(FALSE)) {
        condition(
            ("Joined", FALSE),
            "MemberClusterLeft",
            "Member cluster has left the fleet",
        )
    } else {
        condition(
            ("Joined", "Unknown"),
            "MemberClusterJoinStateUnknown",
            "Not every agent of the member cluster has said whether it has joined",
        )
    })
}
