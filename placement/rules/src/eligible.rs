//! Whether a cluster may be given anything: it has joined, and its agent is alive.

use std::fmt;

use fleet_api::MemberCluster;
use fleet_api::member::{AgentStatus, MEMBER_AGENT};
use jiff::{SignedDuration, Timestamp};
use objects::Metadata;
use objects::condition::{TRUE, find};

/// The heartbeats in a row that an agent may miss, where it beats so seldom that it is not silent for longer by then.
const MISSED_BEATS: i32 = 3;
/// The time for which an agent may call itself unhealthy.
const UNHEALTHY_GRACE: SignedDuration = SignedDuration::from_mins(5);

/// When an agent was last heard of. Its own clock may be wrong, so a heartbeat counts from when it was observed; only
/// the first one, whose age nobody knows, is judged by the time that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastHeard {
    latest_heartbeat: Timestamp,
    at: Timestamp,
}

impl LastHeard {
    /// Returns when an agent was last heard of, now that it shows `heartbeat`.
    #[must_use]
    pub fn observe(before: Option<Self>, heartbeat: Timestamp, now: Timestamp) -> Self {
        match before {
            Some(before) if heartbeat == before.latest_heartbeat => before,
            Some(before) if heartbeat > before.latest_heartbeat => Self {
                latest_heartbeat: heartbeat,
                at: now,
            },
            _ => {
                let latest = before.map_or(heartbeat, |before| before.latest_heartbeat);
                Self {
                    latest_heartbeat: latest,
                    at: heartbeat.min(now),
                }
            }
        }
    }
}

/// Returns the last heartbeat of a cluster's agent, as the agent dates it.
pub fn heartbeat(cluster: &MemberCluster) -> Option<Timestamp> {
    let heartbeat = agent(cluster)?.last_received_heartbeat.as_ref();
    heartbeat.map(|time| time.0)
}

/// Whether a cluster may be given anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eligibility {
    /// Why it may not; `None` if it may.
    pub obstacle: Option<Obstacle>,
    /// The time from which it may not any longer, if it is not heard of until then.
    pub until: Option<Timestamp>,
}

impl Eligibility {
    fn refused(obstacle: Obstacle) -> Self {
        Self {
            obstacle: Some(obstacle),
            until: None,
        }
    }
}

/// Why a cluster may not be given anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It is being deleted.
    Leaving,
    /// Its agent has never been heard of.
    Unheard,
    /// Its agent has not joined, or has left.
    NotJoined,
    /// Its agent has not been heard of for too long.
    Silent,
    /// Its agent does not say whether it is healthy, or has said for too long that it is not.
    Unhealthy,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leaving => "the cluster is leaving the fleet",
            Self::Unheard => "the cluster's agent has not been heard of yet",
            Self::NotJoined => "the cluster has not joined the fleet",
            Self::Silent => "the cluster's agent has not been heard of for too long",
            Self::Unhealthy => "the cluster's agent is not healthy",
        })
    }
}

/// Whether a write for a cluster arrives there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It does.
    Reachable,
    /// It may not: nothing is counted on it, and nothing is changed there.
    Unreachable,
}

/// Returns whether a cluster may be given anything. `heard` is when its agent was last heard of.
pub fn eligibility(
    cluster: &MemberCluster,
    heard: Option<LastHeard>,
    heartbeat_timeout: SignedDuration,
    now: Timestamp,
) -> Eligibility {
    if cluster.metadata.is_deleting() {
        return Eligibility::refused(Obstacle::Leaving);
    }
    let (Some(agent), Some(heard)) = (agent(cluster), heard) else {
        return Eligibility::refused(Obstacle::Unheard);
    };
    if find(&agent.conditions, "Joined").is_none_or(|joined| joined.status != TRUE) {
        return Eligibility::refused(Obstacle::NotJoined);
    }
    let silent_at = after(heard.at, heartbeat_timeout.max(own_patience(cluster)));
    if now >= silent_at {
        return Eligibility::refused(Obstacle::Silent);
    }
    let Some(healthy) = find(&agent.conditions, "Healthy") else {
        return Eligibility::refused(Obstacle::Unhealthy);
    };
    let mut until = silent_at;
    if healthy.status != TRUE {
        // Of unknown age is old.
        let since = healthy.last_transition_time.as_ref();
        let since = since.map_or(Timestamp::MIN, |time| time.0);
        let unhealthy_at = after(since, UNHEALTHY_GRACE);
        if now >= unhealthy_at {
            return Eligibility::refused(Obstacle::Unhealthy);
        }
        until = until.min(unhealthy_at);
    }
    Eligibility {
        obstacle: None,
        until: Some(until),
    }
}

fn agent(cluster: &MemberCluster) -> Option<&AgentStatus> {
    let mut agents = cluster.status.as_ref()?.agent_status.iter();
    agents.find(|agent| agent.type_ == MEMBER_AGENT)
}

/// Returns the time in which an agent misses its heartbeats: a cluster may ask for one every ten minutes.
fn own_patience(cluster: &MemberCluster) -> SignedDuration {
    let period = cluster.spec.heartbeat_period_seconds.unwrap_or_default();
    SignedDuration::from_secs(i64::from(period.saturating_mul(MISSED_BEATS)))
}

fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::super::fixtures::fixture;
    use super::*;

    const TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

    fn at(text: &str) -> Timestamp {
        format!("2026-11-25T{text}Z").parse().unwrap()
    }

    fn decided(cluster: &MemberCluster, now: Timestamp) -> Option<Obstacle> {
        let heard = heartbeat(cluster).map(|beat| LastHeard::observe(None, beat, now));
        eligibility(cluster, heard, TIMEOUT, now).obstacle
    }

    #[test]
    fn recorded_member_is_eligible() {
        let cluster: MemberCluster = from_value(fixture("membercluster")).unwrap();
        assert_eq!(decided(&cluster, at("16:44:20")), None);
        assert_eq!(decided(&cluster, at("16:49:08")), None);
        assert_eq!(decided(&cluster, at("16:49:09")), Some(Obstacle::Silent));
    }

    /// Case F111: one that beats every ten minutes is not silent before it has missed its own heartbeats.
    #[test]
    fn slow_heartbeats_are_awaited() {
        let mut cluster: MemberCluster = from_value(fixture("membercluster")).unwrap();
        cluster.spec.heartbeat_period_seconds = Some(600);
        assert_eq!(decided(&cluster, at("17:14:08")), None);
        assert_eq!(decided(&cluster, at("17:14:09")), Some(Obstacle::Silent));
    }

    #[test]
    fn obstacles_are_told_apart() {
        let recorded = fixture("membercluster");
        let agent = &recorded["status"]["agentStatus"][0];
        let with = |conditions: serde_json::Value| {
            let mut agent = agent.clone();
            agent["conditions"] = conditions;
            json!({ "status": { "agentStatus": [agent] } })
        };
        let condition = |kind: &str, status: &str| {
            json!({ "type": kind, "status": status,
            "lastTransitionTime": "2026-11-25T16:44:09Z" })
        };
        let joined = condition("Joined", "True");
        let leaving = json!({ "metadata": { "deletionTimestamp": "2026-11-25T16:44:09Z" } });
        for (change, now, obstacle) in [
            (leaving, "16:44:20", Some(Obstacle::Leaving)),
            (
                json!({ "status": null }),
                "16:44:20",
                Some(Obstacle::Unheard),
            ),
            (
                with(json!([condition("Joined", "False")])),
                "16:44:20",
                Some(Obstacle::NotJoined),
            ),
            (with(json!([joined])), "16:44:20", Some(Obstacle::Unhealthy)),
            (
                with(json!([joined, condition("Healthy", "False")])),
                "16:49:08",
                None,
            ),
            (
                with(json!([joined, condition("Healthy", "Unknown")])),
                "16:49:09",
                Some(Obstacle::Silent),
            ),
        ] {
            let mut cluster = recorded.clone();
            json_patch::merge(&mut cluster, &change);
            let cluster = from_value(cluster).unwrap();
            assert_eq!(decided(&cluster, at(now)), obstacle, "{change}");
        }
    }

    /// Heartbeats of a member whose clock is an hour ahead, or behind, or set back, count from when we saw them.
    #[test]
    fn wrong_clocks_do_not_count() {
        let first = LastHeard::observe(None, at("15:44:00"), at("16:44:00"));
        assert_eq!(first.at, at("15:44:00"));
        let second = LastHeard::observe(Some(first), at("15:44:15"), at("16:44:15"));
        assert_eq!(second.at, at("16:44:15"));
        let again = LastHeard::observe(Some(second), at("15:44:15"), at("16:45:00"));
        assert_eq!(again, second);
        let set_back = LastHeard::observe(Some(second), at("14:00:00"), at("16:45:00"));
        assert_eq!(
            (set_back.at, set_back.latest_heartbeat),
            (at("14:00:00"), at("15:44:15"))
        );
        let ahead = LastHeard::observe(None, at("17:44:00"), at("16:44:00"));
        assert_eq!(ahead.at, at("16:44:00"));
    }

    #[test]
    fn silence_is_foreseen() {
        let cluster: MemberCluster = from_value(fixture("membercluster")).unwrap();
        let now = at("16:44:20");
        let heard = heartbeat(&cluster).map(|beat| LastHeard::observe(None, beat, now));
        let eligibility = eligibility(&cluster, heard, TIMEOUT, now);
        assert_eq!(eligibility.until, Some(at("16:49:09")));
    }
}
