use std::collections::BTreeMap;

use fleet_api::conditions::BEEN_AVAILABLE;
use fleet_api::names::{ENVELOPE_TYPE, PARENT_SNAPSHOT_NAME};
use fleet_api::{Binding, ResourceSnapshot, Work};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::Key;
use objects::write::Action;
use serde_json::{Value, from_value, json, to_value};

use super::*;
use crate::envelope::Opening;
use crate::fixtures::{fixture, items, merged, without_server_fields};

/// The recorded binding, snapshots and Works of one cluster.
struct Recorded {
    placement: &'static str,
    binding: Binding,
    snapshots: Vec<ResourceSnapshot>,
    works: Vec<Work>,
}

impl Recorded {
    /// The seed's first example on its canary cluster, with the Work as it was at the time of the file.
    fn seed(work: &str) -> Self {
        let work: Work = from_value(fixture(work)).unwrap();
        let bindings = items("crp-1-bindings").into_iter();
        let bindings = bindings.map(|one| from_value::<Binding>(one).unwrap());
        let owner = work.metadata.label(fleet_api::names::PARENT_BINDING);
        let mut bindings = bindings.filter(|one| Some(one.metadata.name()) == owner);
        Self {
            placement: "crp-1",
            binding: bindings.next().unwrap(),
            snapshots: vec![from_value(fixture("crp-1-resourcesnapshot-0")).unwrap()],
            works: vec![work],
        }
    }

    /// A placement with envelopes, before it has Works.
    fn of_envelopes() -> Self {
        let mut binding = Self::seed("crp-1-work").binding;
        binding.metadata.name = Some("crp-env-kind-cluster-1-77e37a68".to_owned());
        binding.spec.target_cluster = "kind-cluster-1".to_owned();
        binding.spec.resource_snapshot_name = "crp-env-0-snapshot".to_owned();
        Self {
            placement: "crp-env",
            binding,
            snapshots: vec![from_value(fixture("crp-env-resourcesnapshot-0")).unwrap()],
            works: Vec::new(),
        }
    }

    /// Has the rollout hold it at its snapshot.
    fn hold(&mut self) {
        self.binding.metadata.generation = Some(9);
        let conditions = &mut self.binding.status.as_mut().unwrap().conditions;
        let started = conditions
            .iter_mut()
            .find(|one| one.type_ == ROLLOUT_STARTED)
            .unwrap();
        started.status = "False".to_owned();
        started.reason = ROLLOUT_NOT_STARTED.to_owned();
        started.observed_generation = Some(9);
    }

    /// Gives it the Works of the recorded envelopes.
    fn make(&mut self) {
        let works = items("crp-env-works").into_iter();
        self.works = works.map(|work| from_value(work).unwrap()).collect();
    }

    fn plan(&self) -> Option<(Synchronization, Vec<Write>)> {
        let snapshots: Vec<_> = self.snapshots.iter().collect();
        let works: Vec<_> = self.works.iter().collect();
        plan(&WorksFacts {
            placement: &Key::cluster_scoped(self.placement),
            binding: &self.binding,
            snapshots: &snapshots,
            opening: Opening { config_maps: false },
            overrides: &[],
            cluster: None,
            works: &works,
        })
    }

    fn report(&self, synchronization: &Synchronization) -> Option<Value> {
        let works: Vec<_> = self.works.iter().collect();
        let now: Timestamp = "2026-11-25T16:44:20Z".parse().unwrap();
        let status = report(&self.binding, synchronization, &works, now)?;
        Some(to_value(status).unwrap())
    }
}

/// A Work in a fleet that changes hands is as we would have it: nothing is written.
#[test]
fn recorded_works_are_ours() {
    let mut recorded = Recorded::seed("crp-1-work");
    assert_eq!(
        recorded.plan(),
        Some((Synchronization::Synchronized, vec![]))
    );

    let expected = fixture("crp-1-work");
    recorded.works.clear();
    let Some((Synchronization::Written, writes)) = recorded.plan() else {
        panic!()
    };
    let [write] = &writes[..] else { panic!() };
    let mut expected = without_server_fields(expected);
    let work = expected.as_object_mut().unwrap();
    work.remove("status");
    // The agent's own.
    work["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("finalizers");
    assert_eq!(write.action, Action::Create(expected));
}

#[test]
fn changed_works_are_patched() {
    let mut recorded = Recorded::seed("crp-1-work");
    let before = recorded.works[0].clone();
    recorded.works[0].spec.workload.manifests.pop();
    let mut stale = before.clone();
    stale.metadata.name = Some("crp-1-0".to_owned());
    recorded.works.push(stale);
    let Some((Synchronization::Written, writes)) = recorded.plan() else {
        panic!()
    };
    let [patch, deletion] = &writes[..] else {
        panic!("{writes:?}")
    };
    assert_eq!(
        (&deletion.action, &*deletion.object.key.name),
        (&Action::Delete, "crp-1-0")
    );
    assert_eq!(merged(&recorded.works[0], patch), before);
}

/// The rollout gives first, and a binding whose snapshot is lost keeps its Works.
#[test]
fn works_follow_their_binding() {
    let mut recorded = Recorded::seed("crp-1-work");
    recorded.snapshots.clear();
    assert_eq!(recorded.plan(), Some((Synchronization::Kept, vec![])));
    recorded.binding.metadata.generation = Some(9);
    assert_eq!(recorded.plan(), None);
    // Held, it goes on reporting its Works.
    recorded.hold();
    assert_eq!(recorded.plan(), Some((Synchronization::Kept, vec![])));
    recorded.binding.spec.state = BindingState::Unscheduled;
    assert_eq!(recorded.plan(), Some((Synchronization::Kept, vec![])));
    // Before its turn came it had nothing.
    recorded.binding.spec.resource_snapshot_name.clear();
    assert_eq!(recorded.plan(), None);
}

/// Case F34: a new way to write reaches the Works of a cluster that is held, too, and of the old one nothing is left: they
/// would never say that they are written so, and be held for ever.
#[test]
fn held_works_are_rewritten() {
    let mut recorded = Recorded::seed("crp-1-work");
    let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
    recorded.works[0].spec.apply_strategy = from_value(forced).unwrap();
    let looks = from_value(json!({ "type": "ReportDiff" })).unwrap();
    recorded.binding.spec.apply_strategy = Some(looks);
    recorded.hold();
    let Some((Synchronization::Kept, writes)) = recorded.plan() else {
        panic!()
    };
    let [patch] = &writes[..] else {
        panic!("{writes:?}")
    };
    assert_eq!(patch.object.key.name, "crp-1-work");
    recorded.works[0] = merged(&recorded.works[0], patch);
    assert_eq!(
        to_value(&recorded.works[0].spec.apply_strategy).unwrap(),
        json!({ "type": "ReportDiff" })
    );
    assert_eq!(recorded.plan(), Some((Synchronization::Kept, vec![])));
}

/// Case F38: the Works of envelopes are those that a running KubeFleet made, which leaves the old `ConfigMap` as it is.
#[test]
fn recorded_envelopes_are_opened() {
    let mut recorded = Recorded::of_envelopes();
    let Some((Synchronization::Written, writes)) = recorded.plan() else {
        panic!()
    };
    let made = writes.into_iter().map(|write| match write.action {
        Action::Create(work) => work,
        action => panic!("{action:?}"),
    });
    let made: BTreeMap<_, _> = made.map(|work| (work.name().to_owned(), work)).collect();
    let expected = items("crp-env-works").into_iter().map(|work| {
        let mut work = without_server_fields(work);
        work.as_object_mut().unwrap().remove("status");
        work["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("finalizers");
        (work.name().to_owned(), work)
    });
    assert_eq!(made, expected.collect());
    recorded.make();
    assert_eq!(
        recorded.plan(),
        Some((Synchronization::Synchronized, vec![]))
    );
}

/// Case F38: the Work of an envelope keeps its name, whoever gave it, and wherever the envelope is by now.
#[test]
fn envelopes_keep_their_works() {
    let mut recorded = Recorded::of_envelopes();
    recorded.make();
    for work in &mut recorded.works {
        if work.metadata.label(ENVELOPE_TYPE).is_some() {
            let name = format!("crp-env-0-envelope-{}", work.metadata.uid());
            work.metadata.name = Some(name);
        }
    }
    assert_eq!(
        recorded.plan(),
        Some((Synchronization::Synchronized, vec![]))
    );
}

/// Case F38: an object that fails is told with the envelope that it came in.
#[test]
fn wrapped_failure_names_its_envelope() {
    let mut recorded = Recorded::of_envelopes();
    recorded.make();
    let labelled = recorded.works.iter_mut();
    let mut labelled = labelled.filter(|work| work.metadata.label(ENVELOPE_TYPE).is_some());
    let status = labelled.next().unwrap().status.as_mut().unwrap();
    let manifests = status.manifest_conditions.iter_mut();
    let conditions = manifests.flat_map(|manifest| &mut manifest.conditions);
    for condition in conditions.chain(&mut status.conditions) {
        if condition.type_ == "Applied" {
            condition.status = "False".to_owned();
        }
    }
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    let envelope = json!({ "name": "env-n", "namespace": "app-7", "type": "ResourceEnvelope" });
    assert_eq!(status["failedPlacements"][0]["envelope"], envelope);
    // A refusal by a member is no fault of its Works.
    let said = status["conditions"].as_array().unwrap().iter();
    let mut synchronized = said.filter(|one| one["type"] == "WorkSynchronized");
    assert_eq!(synchronized.next().unwrap()["status"], "True");
}

/// Whoever mends the objects that cannot be applied sees those that do not run, too.
#[test]
fn every_failure_is_listed() {
    let mut recorded = Recorded::seed("crp-1-work-not-available");
    recorded.binding.status = None;
    let before = recorded.report(&Synchronization::Synchronized).unwrap();
    let unavailable = before["failedPlacements"].as_array().unwrap().len();
    let status = recorded.works[0].status.as_mut().unwrap();
    let mut first = status
        .manifest_conditions
        .first_mut()
        .unwrap()
        .conditions
        .iter_mut();
    first.find(|one| one.type_ == "Applied").unwrap().status = "False".to_owned();
    let mut of_work = status.conditions.iter_mut();
    of_work.find(|one| one.type_ == "Applied").unwrap().status = "False".to_owned();
    let after = recorded.report(&Synchronization::Synchronized).unwrap();
    let failed = after["failedPlacements"].as_array().unwrap();
    let kinds: Vec<_> = failed
        .iter()
        .map(|one| one["condition"]["type"].as_str())
        .collect();
    let mut expected = vec![Some("Available"); unavailable];
    expected.insert(0, Some("Applied"));
    assert_eq!(kinds, expected);
}

/// Case F38: an envelope with a bad entry keeps everything of its placement as it is.
#[test]
fn bad_envelope_is_named() {
    let mut recorded = Recorded::of_envelopes();
    let objects = &mut recorded.snapshots[0].spec.selected_resources;
    objects.last_mut().unwrap()["data"]["quota.yaml"]["metadata"]["namespace"] = json!("other");
    let reason = "ResourceEnvelope app-7/env-n cannot be opened: quota.yaml (ResourceQuota other/q) is of another \
                  namespace than its envelope";
    let failed = Synchronization::Failed(Failure::Synchronizing(reason.to_owned()));
    let (synchronization, writes) = recorded.plan().unwrap();
    assert_eq!((&synchronization, writes), (&failed, vec![]));
    let status = recorded.report(&failed).unwrap();
    let conditions = status["conditions"].as_array().unwrap();
    let last = conditions.last().unwrap();
    assert_eq!(
        (&last["type"], &last["reason"]),
        (&json!("WorkSynchronized"), &json!("SyncWorkFailed"))
    );
}

/// The words of a running KubeFleet about its bindings when their Works were as recorded.
#[test]
fn recorded_reports_are_ours() {
    let available = Recorded::seed("crp-1-work");
    assert_eq!(available.report(&Synchronization::Synchronized), None);

    let mut broken = Recorded::seed("crp-1-work-not-available");
    broken.binding.status = None;
    let status = broken.report(&Synchronization::Synchronized).unwrap();
    let placement = fixture("crp-1-not-available");
    let recorded = &placement["status"]["placementStatuses"][0];
    assert_eq!(status["failedPlacements"], recorded["failedPlacements"]);
    let of_works = [&status, recorded].map(|status| {
        let list = status["conditions"].as_array().unwrap().iter().cloned();
        let ours = ["Overridden", "WorkSynchronized", "Applied", "Available"];
        let of_works = list.filter(|one| ours.contains(&one["type"].as_str().unwrap()));
        let of_works = of_works.map(|mut one| {
            // The placement has its own generation there.
            one["observedGeneration"] = Value::Null;
            one
        });
        of_works.collect::<Vec<_>>()
    });
    assert_eq!(of_works[0], of_works[1]);
}

/// Case F101: a Work that leaves a cluster, and something holds there, does not hold up the others. One that was deleted by
/// hand does, until it is back.
#[test]
fn leaving_work_holds_nothing_up() {
    let mut recorded = Recorded::seed("crp-1-work");
    let mut leaving = recorded.works[0].clone();
    leaving.metadata.name = Some("crp-1-1".to_owned());
    leaving.metadata.generation = Some(2);
    let now = "2026-11-25T16:44:20Z".parse().unwrap();
    leaving.metadata.deletion_timestamp = Some(Time(now));
    recorded.works.push(leaving);
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    let mut said = status["conditions"].as_array().unwrap().iter();
    let applied = said.find(|one| one["type"] == "Applied").unwrap();
    assert_eq!(applied["reason"], "ApplyInProgress");
    let marks = recorded.works[1].metadata.annotations.as_mut().unwrap();
    let earlier = "crp-1-9-snapshot".to_owned();
    marks.insert(PARENT_SNAPSHOT_NAME.to_owned(), earlier);
    assert_eq!(recorded.report(&Synchronization::Synchronized), None);
}

/// That a binding serves for the first time is said with the report that shows it, and once.
#[test]
fn first_availability_is_kept() {
    let mut recorded = Recorded::seed("crp-1-work");
    let never = json!({ "type": BEEN_AVAILABLE, "status": "False", "reason": "NeverAvailable" });
    let before = recorded.binding.status.as_mut().unwrap();
    before.conditions.push(from_value(never).unwrap());
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    let last = status["conditions"].as_array().unwrap().last().unwrap();
    assert_eq!(last["status"], "True", "{last}");
    recorded.binding.status = Some(from_value(status).unwrap());
    assert_eq!(recorded.report(&Synchronization::Synchronized), None);
}

/// The words of a running KubeFleet about members that were only looked at.
#[test]
fn recorded_differences_are_ours() {
    let bindings = items("crp-diff-bindings").into_iter();
    for (binding, work) in bindings.zip(items("crp-diff-works")) {
        let mut recorded = Recorded::seed("crp-1-work");
        recorded.binding = from_value(binding).unwrap();
        recorded.works = vec![from_value(work).unwrap()];
        assert_eq!(recorded.report(&Synchronization::Synchronized), None);
        // With another strategy, nothing has been said yet.
        recorded.works[0].metadata.generation = Some(2);
        let status = recorded.report(&Synchronization::Synchronized).unwrap();
        let last = &status["conditions"][3];
        let said = (&last["type"], &last["status"], &last["reason"]);
        let expected = ["DiffReported", "False", "DiffReportInProgress"].map(Value::from);
        assert_eq!(said, (&expected[0], &expected[1], &expected[2]));
        assert_eq!(status.get("diffedPlacements"), None);
    }
}

/// A difference that cannot be told is no failed placement, and no other is told without it: the condition says why.
#[test]
fn unreported_difference_is_named() {
    let mut recorded = Recorded::seed("crp-1-work");
    recorded.binding = from_value(items("crp-diff-bindings")[0].clone()).unwrap();
    let mut work = items("crp-diff-works")[0].clone();
    let is_false = |condition: &mut Value| {
        condition["status"] = json!("False");
        condition["message"] = json!("the member does not serve Fake of dummy/v10");
    };
    let of_work = work["status"]["conditions"].as_array_mut().unwrap();
    of_work.iter_mut().for_each(is_false);
    is_false(&mut work["status"]["manifestConditions"][0]["conditions"][0]);
    recorded.works = vec![from_value(work).unwrap()];
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    let mut said = status["conditions"].as_array().unwrap().iter();
    let said = said.find(|one| one["type"] == "DiffReported").unwrap();
    assert_eq!(said["status"], "False");
    let message = said["message"].as_str().unwrap();
    assert!(
        message.ends_with(": the member does not serve Fake of dummy/v10"),
        "{message}"
    );
    for list in ["failedPlacements", "diffedPlacements"] {
        assert_eq!(status.get(list), None, "{list}");
    }
}

/// The words of a running KubeFleet about a member in which somebody had changed an object.
#[test]
fn recorded_drift_is_ours() {
    let placement = fixture("crp-diff-drifted");
    let cluster = &placement["status"]["placementStatuses"][0];
    let mut recorded = Recorded::seed("crp-1-work");
    recorded.works = vec![from_value(fixture("crp-diff-work-drifted")).unwrap()];
    recorded.binding.status = None;
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    for list in ["driftedPlacements", "failedPlacements"] {
        assert_eq!(status[list], cluster[list], "{list}");
    }
    let (ours, theirs) = (&status["conditions"][2], &cluster["conditions"][4]);
    for field in ["type", "status", "reason", "message"] {
        assert_eq!(ours[field], theirs[field], "{field}");
    }
}

/// Differences that would not fit into the binding are named without their values.
#[test]
fn large_differences_are_named() {
    let mut recorded = Recorded::seed("crp-1-work");
    recorded.binding = from_value(items("crp-diff-bindings")[0].clone()).unwrap();
    let mut work = items("crp-diff-works")[0].clone();
    let details = &mut work["status"]["manifestConditions"][1]["diffDetails"];
    details["observedDiffs"] = json!([
        { "path": "/data/a", "valueInHub": "x".repeat(500_000) },
        { "path": "/data/b", "valueInHub": "y" },
    ]);
    recorded.works = vec![from_value(work).unwrap()];
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    let told = &status["diffedPlacements"][0]["observedDiffs"];
    assert_eq!(told[0]["valueInHub"], "(too large, see the Work)");
    assert_eq!(told[1], json!({ "path": "/data/b", "valueInHub": "y" }));
    let many = (0..20_000).map(|key| json!({ "path": format!("/data/{key}"), "valueInHub": "y" }));
    let mut work = items("crp-diff-works")[0].clone();
    work["status"]["manifestConditions"][1]["diffDetails"]["observedDiffs"] = many.collect();
    recorded.works = vec![from_value(work).unwrap()];
    let status = recorded.report(&Synchronization::Synchronized).unwrap();
    let size = status.to_string().len();
    assert!((300_000..500_000).contains(&size), "{size}");
}

#[test]
fn unanswered_works_are_in_progress() {
    let recorded = fixture("binding-bound-apply-in-progress");
    let binding: Binding = from_value(recorded).unwrap();
    let mut fresh = Recorded::seed("crp-1-work");
    fresh.binding = binding;
    assert_eq!(fresh.report(&Synchronization::Written), None);
    fresh.works[0].metadata.generation = Some(2);
    assert_eq!(fresh.report(&Synchronization::Synchronized), None);
}
