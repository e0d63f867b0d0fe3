//! A placement in rollout, and the reports of its members.

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::binding::BindingState;
use fleet_api::conditions::{APPLIED, AVAILABLE, UNTRACKABLE, WORK_SYNCHRONIZED};
use fleet_api::{Binding, Placement};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::Metadata;
use objects::condition::{Condition, find, transition, upsert};
use objects::write::{Action, Plan};
use serde_json::{from_value, json};

use crate::eligible::Reach;
use crate::fixtures::merged;
use crate::overrides::Overrides;
use crate::rollout::{RolloutFacts, plan};
use crate::strategy::apply_strategy;

/// The words of a member about its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Available,
    Untrackable,
    Unavailable,
    Refused,
}

/// A placement in rollout.
#[derive(Clone)]
pub(super) struct World {
    pub(super) placement: Placement,
    pub(super) snapshot: String,
    pub(super) bindings: Vec<Binding>,
    pub(super) unreachable: BTreeSet<String>,
    pub(super) gone: BTreeSet<String>,
    pub(super) seconds: i64,
    names: usize,
}

impl World {
    /// Has a placement that is scheduled to so many clusters.
    pub(super) fn new(clusters: usize) -> Self {
        let mut world = Self {
            placement: Placement::default(),
            snapshot: "s0".to_owned(),
            bindings: Vec::new(),
            unreachable: BTreeSet::new(),
            gone: BTreeSet::new(),
            seconds: 0,
            names: 0,
        };
        for n in 0..clusters {
            world.schedule(&format!("c{n}"));
        }
        world
    }

    pub(super) fn schedule(&mut self, cluster: &str) {
        self.names += 1;
        let mut binding: Binding = from_value(json!({
            "metadata": { "name": format!("b{}", self.names), "generation": 1 },
            "spec": { "state": "Scheduled", "targetCluster": cluster },
        }))
        .unwrap();
        binding.spec.apply_strategy = Some(apply_strategy(&self.placement));
        self.bindings.push(binding);
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.seconds).unwrap()
    }

    pub(super) fn plan(&self) -> Plan {
        let bindings: Vec<_> = self.bindings.iter().collect();
        let clusters = self.bindings.iter().map(|one| &*one.spec.target_cluster);
        let clusters = clusters.filter(|cluster| !self.gone.contains(*cluster));
        let clusters = clusters.map(|cluster| {
            if self.unreachable.contains(cluster) {
                (cluster, Reach::Unreachable)
            } else {
                (cluster, Reach::Reachable)
            }
        });
        let mut clusters: BTreeMap<_, _> = clusters.collect();
        clusters.insert("another", Reach::Reachable);
        plan(&RolloutFacts {
            placement: &self.placement,
            snapshot: &self.snapshot,
            overrides: &Overrides::default(),
            bindings: &bindings,
            clusters: &clusters,
            progress_deadline: SignedDuration::from_mins(10),
            now: self.now(),
        })
    }

    /// Writes a plan, as the API does: a new spec is a new generation.
    pub(super) fn write(&mut self, plan: Plan) {
        for write in plan.writes {
            let now = self.now();
            let mut bindings = self.bindings.iter_mut();
            let binding = bindings.find(|one| one.metadata.key() == write.object.key);
            let binding = binding.unwrap();
            if write.action == Action::Delete {
                binding.metadata.deletion_timestamp = Some(Time(now));
                continue;
            }
            let generation = binding.metadata.generation;
            let new = merged(binding, &write);
            let changed = i64::from(new.spec != binding.spec);
            *binding = new;
            binding.metadata.generation = generation.map(|number| number + changed);
        }
    }

    /// Goes step by step until the reports leave nothing to write.
    pub(super) fn run(&mut self) {
        for _ in 0..10 {
            let plan = self.plan();
            if plan.writes.is_empty() {
                return;
            }
            self.write(plan);
        }
        panic!("the rollout does not settle");
    }

    /// Runs and has every member report, until nothing changes.
    pub(super) fn settle(&mut self, says: Says) {
        for _ in 0..100 {
            self.bindings.retain(|one| !one.metadata.is_deleting());
            self.report_all(says);
            if self.plan().writes.is_empty() {
                return;
            }
            self.run();
            self.seconds += 60;
        }
        panic!("the rollout does not end");
    }

    pub(super) fn report_all(&mut self, says: Says) {
        (0..self.bindings.len()).for_each(|place| self.report(place, says));
    }

    /// Has the members with a snapshot report.
    pub(super) fn report_where(&mut self, snapshot: &str, says: Says) {
        for place in 0..self.bindings.len() {
            if self.bindings[place].spec.resource_snapshot_name == snapshot {
                self.report(place, says);
            }
        }
    }

    /// Has a member report on the present generation.
    pub(super) fn report(&mut self, place: usize, says: Says) {
        let now = self.now();
        let binding = &mut self.bindings[place];
        if binding.spec.state == BindingState::Scheduled
            || self.unreachable.contains(&binding.spec.target_cluster)
        {
            return;
        }
        let (applied, available) = match says {
            Says::Available => (("True", ""), Some(("True", "AllWorkAreAvailable"))),
            Says::Untrackable => (("True", ""), Some(("True", UNTRACKABLE))),
            Says::Unavailable => (("True", ""), Some(("False", "NotAllWorkAreAvailable"))),
            Says::Refused => (("False", "NotAllWorkHaveBeenApplied"), None),
        };
        let status = binding.status.get_or_insert_default();
        status.failed_placements = if says == Says::Refused {
            from_value(json!([{ "condition": { "type": APPLIED, "status": "False",
                "reason": "ManifestApplyFailed" } }]))
            .unwrap()
        } else {
            Vec::new()
        };
        let generation = binding.metadata.generation;
        let old = find(&status.conditions, AVAILABLE);
        // A version that is being applied anew is not available meanwhile.
        if old.is_some_and(|old| old.observed_generation != generation) || available.is_none() {
            status
                .conditions
                .retain(|condition| condition.type_ != AVAILABLE);
        }
        let reports = [
            (WORK_SYNCHRONIZED, Some(("True", ""))),
            (APPLIED, Some(applied)),
            (AVAILABLE, available),
        ];
        for (kind, report) in reports {
            let Some((value, reason)) = report else {
                continue;
            };
            let old = find(&status.conditions, kind);
            let condition = Condition {
                type_: kind.to_owned(),
                status: value.to_owned(),
                reason: reason.to_owned(),
                last_transition_time: Some(transition(old, value, now)),
                observed_generation: generation,
                ..Condition::default()
            };
            upsert(&mut status.conditions, condition);
        }
    }

    /// Returns the number of clusters with this snapshot.
    pub(super) fn with(&self, snapshot: &str) -> usize {
        let bindings = self.bindings.iter();
        bindings
            .filter(|one| one.spec.resource_snapshot_name == snapshot)
            .count()
    }
}
