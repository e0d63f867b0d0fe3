//! A placement that runs update, its approvals, and the reports of its members.

use fleet_api::binding::BindingState;
use fleet_api::conditions::{AVAILABLE, ROLLOUT_STARTED};
use fleet_api::names::{NUMBER_OF_SNAPSHOTS, RESOURCE_INDEX};
use fleet_api::update::{RunState, StageStatus, UpdateRunStatus};
use fleet_api::{
    ApprovalRequest, Binding, MemberCluster, Placement, PolicySnapshot, StagedUpdateRun,
    StagedUpdateStrategy,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use objects::Metadata;
use objects::condition::{find, transition, upsert};
use objects::write::{Action, Write};
use serde_json::{Value, from_value, json};

use crate::condition::condition;
use crate::fixtures::merged;
use crate::overrides::Overrides;
use crate::update::{UpdateFacts, UpdatePlan, plan};

/// A placement that runs update.
#[derive(Clone)]
pub(super) struct World {
    pub(super) placement: Placement,
    pub(super) strategy: Option<StagedUpdateStrategy>,
    pub(super) policy: PolicySnapshot,
    pub(super) snapshots: Vec<ObjectMeta>,
    pub(super) bindings: Vec<Binding>,
    pub(super) clusters: Vec<MemberCluster>,
    pub(super) approvals: Vec<ApprovalRequest>,
    pub(super) runs: Vec<StagedUpdateRun>,
    pub(super) seconds: i64,
}

/// A write that the API has taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Done {
    /// A cluster gets this snapshot.
    Given(String, String),
    /// Something else.
    Other,
}

fn env(value: &str) -> Value {
    json!({ "matchLabels": { "env": value } })
}

/// Three stages: the canaries with an approval and a wait of a minute after them, staging after an approval, two at a time,
/// and production, half of it at a time.
pub(super) fn stages() -> Value {
    json!([
        { "name": "canary", "labelSelector": env("canary"),
          "afterStageTasks": [{ "type": "Approval" }, { "type": "TimedWait", "waitTime": "1m" }] },
        { "name": "staging", "labelSelector": env("staging"), "maxConcurrency": 2,
          "beforeStageTasks": [{ "type": "Approval" }] },
        { "name": "prod", "labelSelector": env("prod"), "maxConcurrency": "50%",
          "sortingLabelKey": "order" },
    ])
}

impl World {
    /// Has a placement on these clusters, each with its environment.
    pub(super) fn new(clusters: &[(&str, &str)]) -> Self {
        let mut world = Self {
            placement: from_value(json!({ "metadata": { "name": "web", "generation": 1 },
                "spec": { "strategy": { "type": "External" } } }))
            .unwrap(),
            strategy: from_value(json!({ "metadata": { "name": "safe" }, "spec": { "stages": stages() } }))
                .unwrap(),
            policy: from_value(json!({
                "metadata": { "name": "web-0", "generation": 1,
                    "labels": { "kubernetes-fleet.io/policy-index": "0" } },
                "status": { "observedCRPGeneration": 1, "conditions": [
                    { "type": "Scheduled", "status": "True", "reason": "x", "observedGeneration": 1 }] },
            }))
            .unwrap(),
            snapshots: Vec::new(),
            bindings: Vec::new(),
            clusters: Vec::new(),
            approvals: Vec::new(),
            runs: Vec::new(),
            seconds: 0,
        };
        world.snapshot();
        for (place, (name, env)) in clusters.iter().enumerate() {
            // The later it is named, the earlier it is updated.
            let labels = json!({ "env": env, "order": (100 - place).to_string() });
            let cluster = json!({ "metadata": { "name": name, "labels": labels } });
            world.clusters.push(from_value(cluster).unwrap());
            world.pick(name);
        }
        world
    }

    /// Has six clusters, two in each stage.
    pub(super) fn of_six() -> Self {
        Self::new(&[
            ("c1", "canary"),
            ("c2", "canary"),
            ("s1", "staging"),
            ("s2", "staging"),
            ("p1", "prod"),
            ("p2", "prod"),
        ])
    }

    pub(super) fn pick(&mut self, cluster: &str) {
        let name = format!("web-{cluster}-{}", self.bindings.len());
        let binding = json!({
            "metadata": { "name": name, "generation": 1 },
            "spec": { "state": "Scheduled", "targetCluster": cluster, "schedulingPolicySnapshotName": "web-0" },
        });
        self.bindings.push(from_value(binding).unwrap());
    }

    /// Takes the next snapshot.
    pub(super) fn snapshot(&mut self) {
        let index = self.snapshots.len();
        let metadata = json!({ "name": format!("web-{index}-snapshot"),
            "labels": { RESOURCE_INDEX: index.to_string() }, "annotations": { NUMBER_OF_SNAPSHOTS: "1" } });
        self.snapshots.push(from_value(metadata).unwrap());
    }

    /// Creates a run to a snapshot, or to the latest.
    pub(super) fn start(&mut self, name: &str, index: &str) {
        let run = json!({
            "metadata": { "name": name, "generation": 1, "creationTimestamp": self.now() },
            "spec": { "placementName": "web", "stagedRolloutStrategyName": "safe",
                "resourceSnapshotIndex": index, "state": "Run" },
        });
        self.runs.push(from_value(run).unwrap());
    }

    pub(super) fn want(&mut self, state: RunState) {
        let run = self.runs.last_mut().unwrap();
        if run.spec.state != state {
            run.spec.state = state;
            run.metadata.generation = run.metadata.generation.map(|number| number + 1);
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.seconds).unwrap()
    }

    pub(super) fn status(&self) -> UpdateRunStatus {
        let status = self.runs.last().unwrap().status.clone();
        status.unwrap_or_default()
    }

    pub(super) fn stage(&self, name: &str) -> StageStatus {
        let stages = self.status().stages;
        stages
            .into_iter()
            .find(|stage| stage.stage_name == name)
            .unwrap()
    }

    pub(super) fn plan(&self, run: usize) -> UpdatePlan {
        let run = &self.runs[run];
        let approvals = self.approvals.iter();
        let approvals: Vec<_> = approvals
            .filter(|one| {
                one.metadata.label("kubernetes-fleet.io/targetUpdateRun")
                    == Some(run.metadata.name())
            })
            .collect();
        plan(&UpdateFacts {
            run,
            placement: Some(&self.placement),
            strategy: self.strategy.as_ref(),
            policies: &[&self.policy],
            snapshots: &self.snapshots.iter().collect::<Vec<_>>(),
            overrides: &Overrides::default(),
            bindings: &self.bindings.iter().collect::<Vec<_>>(),
            clusters: &self.clusters.iter().collect::<Vec<_>>(),
            approvals: &approvals,
            now: self.now(),
        })
    }

    /// Takes a step of a run, of which only so many writes succeed. Returns these.
    pub(super) fn step(&mut self, run: usize, most: usize) -> Vec<Done> {
        let UpdatePlan {
            status,
            bindings,
            approvals,
            ..
        } = self.plan(run);
        let mut done = Vec::new();
        for write in bindings.iter().take(most) {
            done.push(self.write_binding(write));
        }
        for write in approvals.iter().take(most - done.len()) {
            self.write_approval(write);
            done.push(Done::Other);
        }
        if done.len() < most
            && let Some(status) = status
        {
            self.runs[run].status = Some(status);
            done.push(Done::Other);
        }
        done
    }

    /// Goes step by step until there is nothing left to write.
    pub(super) fn settle(&mut self) {
        let run = self.runs.len() - 1;
        for _ in 0..200 {
            if self.step(run, usize::MAX).is_empty() {
                return;
            }
            self.bindings.retain(|one| !one.metadata.is_deleting());
        }
        panic!("there is always something to write");
    }

    /// Settles while the members make everything available.
    pub(super) fn serve(&mut self) {
        for _ in 0..20 {
            self.settle();
            self.report_all(true);
        }
    }

    fn write_approval(&mut self, write: &Write) {
        let mut approvals = self.approvals.iter_mut();
        let approval = approvals.find(|one| one.metadata.key() == write.object.key);
        match &write.action {
            Action::Create(request) => {
                let mut request: ApprovalRequest = from_value(request.clone()).unwrap();
                request.metadata.generation = Some(1);
                request.metadata.creation_timestamp = Some(Time(self.now()));
                self.approvals.push(request);
            }
            Action::Merge(_) => {
                let approval = approval.unwrap();
                *approval = merged(approval, write);
            }
            Action::Delete => {
                let key = &write.object.key;
                self.approvals.retain(|one| one.metadata.key() != *key);
            }
            action => panic!("{action:?}"),
        }
    }

    fn write_binding(&mut self, write: &Write) -> Done {
        let now = self.now();
        let mut bindings = self.bindings.iter_mut();
        let binding = bindings.find(|one| one.metadata.key() == write.object.key);
        let binding = binding.unwrap();
        if write.action == Action::Delete {
            binding.metadata.deletion_timestamp = Some(Time(now));
            return Done::Other;
        }
        let before = binding.clone();
        *binding = merged(&before, write);
        let generation = before.metadata.generation;
        let is_given = binding.spec != before.spec;
        binding.metadata.generation = generation.map(|number| number + i64::from(is_given));
        if !is_given {
            return Done::Other;
        }
        let spec = &binding.spec;
        let snapshot = spec.resource_snapshot_name.clone();
        Done::Given(spec.target_cluster.clone(), snapshot)
    }

    /// Has a member say whether its version does its work, if its Works may have it.
    pub(super) fn report(&mut self, cluster: &str, is_available: bool) -> bool {
        let now = self.now();
        let mut bindings = self.bindings.iter_mut();
        let Some(binding) = bindings.find(|one| one.spec.target_cluster == cluster) else {
            return false;
        };
        let generation = binding.metadata.generation;
        let status = binding.status.get_or_insert_default();
        let started = find(&status.conditions, ROLLOUT_STARTED);
        let is_there = binding.spec.state == BindingState::Bound
            && started
                .is_some_and(|one| one.status == "True" && one.observed_generation == generation);
        if !is_there {
            return false;
        }
        let text = if is_available { "True" } else { "False" };
        let mut said = condition((AVAILABLE, text), "Said", "");
        said.observed_generation = generation;
        said.last_transition_time =
            Some(transition(find(&status.conditions, AVAILABLE), text, now));
        upsert(&mut status.conditions, said);
        is_available
    }

    pub(super) fn report_all(&mut self, is_available: bool) {
        let clusters: Vec<_> = self
            .bindings
            .iter()
            .map(|one| one.spec.target_cluster.clone())
            .collect();
        for cluster in clusters {
            self.report(&cluster, is_available);
        }
    }

    /// Has a person answer a request, if it was made.
    pub(super) fn answer(&mut self, name: &str, is_approved: bool) -> bool {
        let mut approvals = self.approvals.iter_mut();
        let Some(request) = approvals.find(|one| one.metadata.name() == name) else {
            return false;
        };
        let text = if is_approved { "True" } else { "False" };
        let mut said = condition(("Approved", text), "lgtm", "");
        said.observed_generation = Some(1);
        upsert(&mut request.status.get_or_insert_default().conditions, said);
        true
    }

    /// Returns the clusters that have a snapshot, sorted.
    pub(super) fn with(&self, snapshot: &str) -> Vec<&str> {
        let bindings = self.bindings.iter();
        let with = bindings.filter(|one| one.spec.resource_snapshot_name == snapshot);
        let mut with: Vec<_> = with.map(|one| &*one.spec.target_cluster).collect();
        with.sort_unstable();
        with
    }
}
