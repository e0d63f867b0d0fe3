//! The fate of a placement whose clusters are emptied: whether it leaves them, and how many others it has then.

use std::collections::BTreeSet;
use std::fmt;

use fleet_api::binding::BindingState;
use fleet_api::policy::PlacementType;
use fleet_api::{Binding, MemberCluster, Placement, PolicySnapshot};
use jiff::{SignedDuration, Timestamp};
use objects::Metadata;
use objects::write::Action;

use super::eligible::{LastHeard, eligibility, heartbeat};
use super::pick::{FleetCluster, SchedulingFacts, plan};

/// The time after which a silent cluster gets nothing new, as it is by default.
const HEARTBEAT_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Everything that decides about a placement.
#[derive(Clone, Copy, Debug)]
pub struct DrainFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The latest snapshot of its policy.
    pub policy: &'a PolicySnapshot,
    /// All of its bindings.
    pub bindings: &'a [&'a Binding],
    /// Every cluster, with the taints that it has once it is drained.
    pub clusters: &'a [MemberCluster],
    /// The names of those that are drained.
    pub drained: &'a BTreeSet<String>,
    /// The time.
    pub now: Timestamp,
}

/// The fate of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It leaves when it is evicted, and lacks nothing then.
    Whole,
    /// It leaves when it is evicted, and has fewer clusters then than it should.
    Short {
        /// The clusters that it has then.
        left: usize,
        /// Those that it has now.
        before: usize,
    },
    /// Its policy names its clusters: nothing evicts it.
    Fixed,
    /// It tolerates the taint, and would be back at once.
    Tolerant,
}

impl Departure {
    /// Returns `true` if an eviction makes it leave for good.
    pub fn is_evictable(self) -> bool {
        matches!(self, Self::Whole | Self::Short { .. })
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("finds another place"),
            Self::Short { left: 0, .. } => f.write_str("has no other cluster"),
            Self::Short { left, before } => {
                write!(f, "finds no other cluster, and has {left} of {before} then")
            }
            Self::Fixed => {
                f.write_str("names its clusters, so that nothing evicts it: take them off its list")
            }
            Self::Tolerant => f.write_str("tolerates the taint, and stays"),
        }
    }
}

/// Returns the fate of a placement; `None` if it is in none of the drained clusters.
pub fn departure(facts: &DrainFacts<'_>) -> Option<Departure> {
    let placed = facts.bindings.iter().copied().filter(|binding| {
        !binding.metadata.is_deleting() && binding.spec.state != BindingState::Unscheduled
    });
    let (leaving, staying): (Vec<&Binding>, Vec<&Binding>) =
        placed.partition(|binding| facts.drained.contains(&binding.spec.target_cluster));
    if leaving.is_empty() {
        return None;
    }
    let policy = facts.policy.spec.policy.as_ref();
    let placement_type = policy.map(|policy| policy.placement_type);
    if placement_type == Some(PlacementType::PickFixed) {
        return Some(Departure::Fixed);
    }
    let more = picked(facts, &staying);
    if more.iter().any(|name| facts.drained.contains(name)) {
        return Some(Departure::Tolerant);
    }
    let (left, before) = (staying.len() + more.len(), leaving.len() + staying.len());
    let is_enough = match placement_type {
        Some(PlacementType::PickN) => left >= before,
        _ => left > 0,
    };
    Some(if is_enough {
        Departure::Whole
    } else {
        Departure::Short { left, before }
    })
}

/// Returns the clusters that are picked for a placement which has these bindings.
fn picked(facts: &DrainFacts<'_>, bindings: &[&Binding]) -> Vec<String> {
    let clusters = facts.clusters.iter().map(|cluster| {
        let heard = heartbeat(cluster).map(|at| LastHeard::observe(None, at, facts.now));
        FleetCluster {
            cluster,
            obstacle: eligibility(cluster, heard, HEARTBEAT_TIMEOUT, facts.now).obstacle,
        }
    });
    let [writes, _] = plan(&SchedulingFacts {
        placement: facts.placement,
        policy: facts.policy,
        clusters: &clusters.collect::<Vec<_>>(),
        bindings,
        now: facts.now,
    });
    let created = writes.iter().filter_map(|write| match &write.action {
        Action::Create(binding) => binding.pointer("/spec/targetCluster")?.as_str(),
        _ => None,
    });
    created.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    const NOW: &str = "2026-11-25T16:44:45Z";

    fn cluster(name: &str, taints: &Value) -> MemberCluster {
        let time = json!(NOW);
        let conditions = ["Joined", "Healthy"].map(|kind| {
            json!({ "type": kind, "status": "True", "reason": "r", "lastTransitionTime": time })
        });
        let agent = json!({ "type": "MemberAgent", "conditions": conditions,
            "lastReceivedHeartbeat": time });
        from_value(
            json!({ "metadata": { "name": name }, "spec": { "taints": taints },
            "status": { "agentStatus": [agent] } }),
        )
        .unwrap()
    }

    /// Returns the fate of a placement in these of three clusters, of which `m1` is drained.
    fn drained(policy: &Value, clusters: &[&str]) -> Option<Departure> {
        let taint = json!([{ "key": "drain", "effect": "NoSchedule" }]);
        let all = [
            cluster("m1", &taint),
            cluster("m2", &Value::Null),
            cluster("m3", &Value::Null),
        ];
        let bindings: Vec<Binding> = clusters
            .iter()
            .map(|name| {
                let spec = json!({ "state": "Bound", "targetCluster": name,
                    "schedulingPolicySnapshotName": "crp-0" });
                from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
            })
            .collect();
        let placement: Placement = from_value(json!({ "metadata": { "name": "crp" } })).unwrap();
        let policy = json!({ "metadata": { "name": "crp-0" }, "spec": { "policy": policy } });
        departure(&DrainFacts {
            placement: &placement,
            policy: &from_value(policy).unwrap(),
            bindings: &bindings.iter().collect::<Vec<_>>(),
            clusters: &all,
            drained: &["m1".to_owned()].into(),
            now: NOW.parse().unwrap(),
        })
    }

    fn pick_n(number: i32) -> Value {
        json!({ "placementType": "PickN", "numberOfClusters": number })
    }

    fn short(left: usize, before: usize) -> Departure {
        Departure::Short { left, before }
    }

    /// The fate of a placement depends on its policy and on the clusters that are left.
    #[test]
    fn departure_follows_policy() {
        let all = json!({ "placementType": "PickAll" });
        let fixed = json!({ "placementType": "PickFixed", "clusterNames": ["m1"] });
        for (policy, clusters, expected) in [
            (pick_n(1), &["m1"][..], Some(Departure::Whole)),
            (pick_n(2), &["m1", "m2"][..], Some(Departure::Whole)),
            (pick_n(3), &["m1", "m2", "m3"][..], Some(short(2, 3))),
            (pick_n(1), &["m2"][..], None),
            (all.clone(), &["m1", "m2", "m3"][..], Some(Departure::Whole)),
            (fixed, &["m1"][..], Some(Departure::Fixed)),
        ] {
            assert_eq!(
                drained(&policy, clusters),
                expected,
                "{policy} {clusters:?}"
            );
        }
        let mut everywhere = all;
        everywhere["tolerations"] = json!([{ "operator": "Exists" }]);
        let all = ["m1", "m2", "m3"];
        assert_eq!(drained(&everywhere, &all), Some(Departure::Tolerant));
    }
}
