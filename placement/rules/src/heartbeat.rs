//! The report of the agent in a cluster on its channel (`InternalMemberCluster`): whether it has joined, whether it is
//! healthy, and how much of it is in use.
//!
//! Nothing but a heartbeat is written, and each says everything. One is due when the period is over, or as soon as
//! there is news for which the hub must not wait that long.

mod namespaces;
mod properties;

use std::collections::BTreeMap;

use fleet_api::InternalMemberCluster;
use fleet_api::member::{
    AgentStatus, JOIN, LEAVE, MEMBER_AGENT, MemberClusterStatus, PropertyValue, ResourceUsage,
};
use jiff::{SignedDuration, Timestamp};
use objects::amounts::Amounts;
use objects::condition::{Condition, FALSE, TRUE, find, whole_seconds};
use objects::write::{ObjectRef, Plan, Write};

use super::condition::{condition, put};
pub use namespaces::{Namespaces, brought_by};
use objects::usage::ClusterUsage;
pub use properties::{Collected, Entrypoint, Prices, read_prices};

/// The period where a channel names none that may be.
const DEFAULT_PERIOD: i32 = 60;
/// The longest period, in seconds.
const MAX_PERIOD: i32 = 600;

/// The property of a cluster: the number of its nodes.
const NODE_COUNT: &str = "kubernetes-fleet.io/node-count";
/// The resources whose use is told.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// The characters of an error that are told: a status that is too long is refused as a whole.
const MAX_MESSAGE: usize = 1000;

/// Everything that decides about a heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatFacts<'a> {
    /// The channel.
    pub channel: &'a InternalMemberCluster,
    /// Why the cluster's API is not healthy; `None` if it is.
    pub trouble: Option<&'a str>,
    /// How much of the cluster is in use, if that is known.
    pub usage: Option<&'a ClusterUsage>,
    /// Its namespaces, if the hub is to hear of them and they are known.
    pub namespaces: Option<&'a Namespaces>,
    /// The properties of which the hub is to hear besides.
    pub collected: &'a Collected,
    /// Whether Works wait for the agent.
    pub holds_works: bool,
    /// The time.
    pub now: Timestamp,
}

/// Plans the heartbeat of a cluster that is due, and wakes at the next, if there is another.
pub fn plan(facts: &HeartbeatFacts<'_>) -> Plan {
    let mut plan = Plan::default();
    let before = facts.channel.status.clone().unwrap_or_default();
    if has_left(facts, &before) {
        return plan;
    }
    let due = due(facts, &before);
    if facts.now < due && !is_news(facts, &before) {
        plan.wake_at = Some(due);
        return plan;
    }
    let (object, after) = (ObjectRef::of(facts.channel, &()), said(facts, &before));
    let write = Write::status_between("heartbeat", object, &before, &after);
    plan.writes.extend(write);
    plan.wake_at = Some(later(facts.now, period(facts.channel)));
    plan
}

/// Returns `true` if the agent has said its last.
fn has_left(facts: &HeartbeatFacts<'_>, before: &MemberClusterStatus) -> bool {
    let joined = agent(before).and_then(|agent| find(&agent.conditions, "Joined"));
    facts.channel.spec.state == LEAVE && joined.is_some_and(|joined| joined.status == FALSE)
}

/// Returns when the next heartbeat is due if there is no news.
fn due(facts: &HeartbeatFacts<'_>, before: &MemberClusterStatus) -> Timestamp {
    let last = agent(before).and_then(|agent| agent.last_received_heartbeat.as_ref());
    match last {
        Some(last) if last.0 <= facts.now => later(last.0, period(facts.channel)),
        // There was none, or the clock has been set back since.
        _ => facts.now,
    }
}

/// Returns `true` if a condition has another status than it was said to have, or if the usage becomes known.
fn is_news(facts: &HeartbeatFacts<'_>, before: &MemberClusterStatus) -> bool {
    let old = agent(before).map_or(&[][..], |agent| &agent.conditions);
    let is_other =
        |new: &Condition| find(old, &new.type_).is_none_or(|old| old.status != new.status);
    conditions(facts).iter().any(is_other)
        || usage(facts).is_some() && !before.properties.contains_key(NODE_COUNT)
        || namespaces::are_news(facts.namespaces, before)
}

/// Returns the status of the channel with this heartbeat.
fn said(facts: &HeartbeatFacts<'_>, before: &MemberClusterStatus) -> MemberClusterStatus {
    let now = whole_seconds(facts.now);
    let mut status = before.clone();
    if let Some(usage) = usage(facts) {
        let nodes = PropertyValue {
            value: usage.nodes.to_string(),
            observation_time: Some(now.clone()),
        };
        status.properties.insert(NODE_COUNT.to_owned(), nodes);
        let mut available = usage.allocatable.clone();
        available.subtract(&usage.allocated);
        status.resource_usage = ResourceUsage {
            capacity: texts(&usage.capacity),
            allocatable: texts(&usage.allocatable),
            available: texts(&available),
            observation_time: Some(now.clone()),
        };
    }
    let mut said = agent(before).cloned().unwrap_or_else(|| AgentStatus {
        type_: MEMBER_AGENT.to_owned(),
        ..AgentStatus::default()
    });
    said.last_received_heartbeat = Some(now);
    let dated = (facts.channel.metadata.generation, facts.now);
    put(&mut said.conditions, conditions(facts), dated);
    namespaces::write(facts.namespaces, &mut status, dated);
    properties::write(facts.collected, &mut status, dated);
    match status.agent_status.iter_mut().find(|agent| is_ours(agent)) {
        Some(agent) => *agent = said,
        None => status.agent_status.push(said),
    }
    status
}

/// Returns the conditions of the agent that are known now. Whether it has joined stays as it was while it cannot leave
/// yet, and where nobody knows the wanted state.
fn conditions(facts: &HeartbeatFacts<'_>) -> Vec<Condition> {
    let healthy = match facts.trouble {
        None => condition(("Healthy", TRUE), "InternalMemberClusterHealthy", ""),
        Some(trouble) => {
            let message: String = trouble.chars().take(MAX_MESSAGE).collect();
            condition(
                ("Healthy", FALSE),
                "InternalMemberClusterUnhealthy",
                &message,
            )
        }
    };
    let joined = match &*facts.channel.spec.state {
        JOIN => Some((TRUE, "InternalMemberClusterJoined")),
        LEAVE if !facts.holds_works => Some((FALSE, "InternalMemberClusterLeft")),
        _ => None,
    };
    let joined = joined.map(|(status, reason)| condition(("Joined", status), reason, ""));
    [Some(healthy), joined].into_iter().flatten().collect()
}

/// Returns how much of the cluster is in use: of one that is not healthy, nothing new is known.
fn usage<'a>(facts: &HeartbeatFacts<'a>) -> Option<&'a ClusterUsage> {
    facts.usage.filter(|_| facts.trouble.is_none())
}

fn texts(amounts: &Amounts) -> BTreeMap<String, String> {
    let texts = RESOURCES.map(|resource| (resource.to_owned(), amounts.text(resource)));
    texts.into()
}

fn agent(status: &MemberClusterStatus) -> Option<&AgentStatus> {
    status.agent_status.iter().find(|agent| is_ours(agent))
}

fn is_ours(agent: &AgentStatus) -> bool {
    agent.type_ == MEMBER_AGENT
}

fn period(channel: &InternalMemberCluster) -> SignedDuration {
    let seconds = channel.spec.heartbeat_period_seconds;
    let seconds = seconds.filter(|seconds| (1..=MAX_PERIOD).contains(seconds));
    SignedDuration::from_secs(seconds.unwrap_or(DEFAULT_PERIOD).into())
}

fn later(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::{Value, from_value, json};

    use super::super::fixtures::{fixture, merged};
    use super::*;
    use objects::usage::{NodeCapacity, PodRequest};

    /// Nothing beside the report of every agent.
    static NOTHING: LazyLock<Collected> = LazyLock::new(Collected::default);

    fn at(text: &str) -> Timestamp {
        format!("2026-11-25T{text}Z").parse().unwrap()
    }

    fn joined() -> InternalMemberCluster {
        from_value(fixture("internalmembercluster")).unwrap()
    }

    /// The usage of the recorded cluster.
    fn usage() -> ClusterUsage {
        let amounts = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
        let status = json!({ "capacity": amounts, "allocatable": amounts });
        let node = NodeCapacity::from(&json!({ "status": status }));
        ClusterUsage::of([&node], [])
    }

    fn facts<'a>(
        channel: &'a InternalMemberCluster,
        usage: &'a ClusterUsage,
    ) -> HeartbeatFacts<'a> {
        HeartbeatFacts {
            channel,
            trouble: None,
            usage: Some(usage),
            namespaces: None,
            collected: &NOTHING,
            holds_works: true,
            now: at("16:44:15"),
        }
    }

    /// Returns the channel after a heartbeat.
    fn after(facts: &HeartbeatFacts<'_>) -> InternalMemberCluster {
        merged(facts.channel, &plan(facts).writes[0])
    }

    /// Returns status and reason of each condition of an agent.
    fn conditions_of(agent: &AgentStatus) -> Vec<String> {
        let conditions = agent.conditions.iter();
        conditions
            .map(|one| format!("{} {}", one.status, one.reason))
            .collect()
    }

    /// Our agent writes the same as KubeFleet's, and nothing of it again before the period is over.
    #[test]
    fn recorded_heartbeat_is_ours() {
        let (recorded, usage) = (joined(), usage());
        let silent = InternalMemberCluster {
            status: None,
            ..recorded.clone()
        };
        let first = HeartbeatFacts {
            now: "2026-11-25T16:44:09.7Z".parse().unwrap(),
            ..facts(&silent, &usage)
        };
        assert_eq!(after(&first), recorded);
        let early = plan(&facts(&recorded, &usage));
        assert_eq!(early.writes, []);
        assert_eq!(early.wake_at, Some(at("16:44:24")));
        let due = HeartbeatFacts {
            now: at("16:44:24"),
            ..facts(&recorded, &usage)
        };
        let text = json!(recorded).to_string();
        let mut expected: Value =
            serde_json::from_str(&text.replace("16:44:09", "16:44:24")).unwrap();
        let conditions = "/status/agentStatus/0/conditions";
        *expected.pointer_mut(conditions).unwrap() =
            json!(recorded).pointer(conditions).unwrap().clone();
        expected["metadata"] = json!(recorded.metadata);
        assert_eq!(json!(after(&due)), expected);
        assert_eq!(plan(&due).wake_at, Some(at("16:44:39")));
    }

    /// Left is said once no Work waits any more, and is the last word.
    #[test]
    fn leaving_waits_for_works() {
        let (mut channel, usage) = (joined(), usage());
        channel.spec.state = LEAVE.to_owned();
        channel.metadata.generation = Some(2);
        let waiting = facts(&channel, &usage);
        assert_eq!(plan(&waiting).writes, []);
        let later = HeartbeatFacts {
            now: at("16:44:30"),
            ..waiting
        };
        let said = &after(&later).status.unwrap().agent_status[0];
        assert_eq!(conditions_of(said)[1], "True InternalMemberClusterJoined");
        let free = HeartbeatFacts {
            holds_works: false,
            ..waiting
        };
        let left = after(&free);
        let recorded: InternalMemberCluster =
            from_value(fixture("internalmembercluster-left")).unwrap();
        let [said, expected] = [&left, &recorded].map(|channel| {
            let status = channel.status.clone().unwrap();
            conditions_of(&status.agent_status[0])
        });
        assert_eq!(said, expected);
        for channel in [left, recorded] {
            let now = at("18:00:00");
            let over = HeartbeatFacts {
                now,
                ..facts(&channel, &usage)
            };
            assert_eq!(plan(&over), Plan::default());
        }
    }

    /// A clock that was set back does not silence the agent, nor does a period that nobody could want.
    #[test]
    fn heartbeats_never_stop() {
        let (mut channel, usage) = (joined(), usage());
        let set_back = HeartbeatFacts {
            now: at("15:00:00"),
            ..facts(&channel, &usage)
        };
        let beat = plan(&set_back);
        assert_eq!(beat.writes.len(), 1);
        assert_eq!(beat.wake_at, Some(at("15:00:15")));
        for seconds in [None, Some(0), Some(-1), Some(i32::MAX)] {
            channel.spec.heartbeat_period_seconds = seconds;
            let early = plan(&facts(&channel, &usage));
            assert_eq!(early.writes, []);
            assert_eq!(early.wake_at, Some(at("16:45:09")));
        }
    }

    /// The words of others on the channel stay.
    #[test]
    fn others_keep_their_words() {
        let (mut channel, usage) = (joined(), usage());
        let status = channel.status.as_mut().unwrap();
        let theirs = AgentStatus {
            type_: "ServiceExportImportAgent".to_owned(),
            ..status.agent_status[0].clone()
        };
        status.agent_status.insert(0, theirs.clone());
        status.conditions = vec![condition(("Theirs", TRUE), "Reason", "")];
        status.agent_status[1]
            .conditions
            .push(condition(("Theirs", TRUE), "Reason", ""));
        let price = PropertyValue::default();
        status.properties.insert("x.io/price".to_owned(), price);
        let before = status.clone();
        let due = HeartbeatFacts {
            now: at("17:00:00"),
            ..facts(&channel, &usage)
        };
        let after = after(&due).status.unwrap();
        assert_eq!(after.agent_status[0], theirs);
        assert_eq!(
            after.agent_status[1].conditions,
            before.agent_status[1].conditions
        );
        assert_eq!(after.conditions, before.conditions);
        assert!(after.properties.contains_key("x.io/price"));
    }

    /// Trouble and recovery are told at once; all else that was known stays meanwhile.
    #[test]
    fn health_is_told_immediately() {
        let channel = joined();
        let none = ClusterUsage::default();
        let trouble = "x".repeat(50_000);
        let ill = HeartbeatFacts {
            trouble: Some(&trouble),
            ..facts(&channel, &none)
        };
        let ill = after(&ill);
        let (said, before) = (
            ill.status.as_ref().unwrap(),
            channel.status.as_ref().unwrap(),
        );
        let healthy = &said.agent_status[0].conditions[0];
        assert_eq!(
            (&*healthy.status, &*healthy.reason, healthy.message.len()),
            (FALSE, "InternalMemberClusterUnhealthy", MAX_MESSAGE)
        );
        assert_eq!(said.resource_usage, before.resource_usage);
        let again = HeartbeatFacts {
            trouble: Some("another"),
            ..facts(&ill, &none)
        };
        assert_eq!(plan(&again).writes, []);
        assert_eq!(plan(&facts(&ill, &none)).writes.len(), 1);
    }

    /// The usage is told as soon as it is known, and later changes with the next heartbeat.
    #[test]
    fn usage_waits_once_known() {
        let (mut channel, usage) = (joined(), usage());
        let none = ClusterUsage::default();
        assert_eq!(plan(&facts(&channel, &none)).writes, []);
        let status = channel.status.as_mut().unwrap();
        status.properties.clear();
        status.resource_usage = ResourceUsage::default();
        let unknown = HeartbeatFacts {
            usage: None,
            ..facts(&channel, &usage)
        };
        assert_eq!(plan(&unknown).writes, []);
        let written = after(&facts(&channel, &none)).status.unwrap();
        assert_eq!(written.properties[NODE_COUNT].value, "0");
        let nothing = json!({ "cpu": "0", "memory": "0" });
        assert_eq!(json!(written.resource_usage.capacity), nothing);
    }

    /// The room of a cluster is the part that its pods do not ask for, and never less than none.
    #[test]
    fn requests_are_not_available() {
        let pod = PodRequest::from(&json!({ "spec": { "nodeName": "n", "containers": [
            { "resources": { "requests": { "cpu": "250m", "memory": "16Gi" } } },
        ] } }));
        let mut channel = joined();
        channel.status = None;
        let mut usage = usage();
        usage.allocated = ClusterUsage::of([], [&pod]).allocated;
        let written = after(&facts(&channel, &usage)).status.unwrap();
        let available = json!({ "cpu": "3750m", "memory": "0" });
        assert_eq!(json!(written.resource_usage.available), available);
    }

    /// A state that nobody knows changes nothing.
    #[test]
    fn unknown_state_changes_nothing() {
        let (mut channel, usage) = (joined(), usage());
        channel.spec.state = "Pause".to_owned();
        let free = HeartbeatFacts {
            holds_works: false,
            ..facts(&channel, &usage)
        };
        assert_eq!(plan(&free).writes, []);
        let due = HeartbeatFacts {
            now: at("17:00:00"),
            ..free
        };
        let said = &after(&due).status.unwrap().agent_status[0];
        assert_eq!(conditions_of(said)[1], "True InternalMemberClusterJoined");
    }
}
