use karmada_api::ResourceBinding;
use objects::write::Action;
use serde_json::{Value, from_value, to_value};

use super::super::fixtures;
use super::*;

fn now() -> Time {
    from_value(json!("2026-11-22T08:00:00Z")).unwrap()
}

fn works_of(binding: BindingRef<'_>) -> Vec<Work> {
    let mut works = fixtures::works();
    works.retain(|work| work.metadata.name.as_deref() == Some(&work_name(binding)));
    works
}

fn planned(binding: &ResourceBinding, works: &[Work]) -> Plan<Transition> {
    plan(
        binding.into(),
        &works.iter().collect::<Vec<_>>(),
        None,
        &now(),
    )
}

/// Returns the binding after its status was written.
#[track_caller]
fn written(binding: &ResourceBinding, works: &[Work]) -> (ResourceBinding, bool) {
    let Plan { writes, events, .. } = planned(binding, works);
    let [write] = writes.as_slice() else {
        panic!("nothing to write");
    };
    let Action::Json(patch) = &write.action else {
        panic!("{write:?}");
    };
    let mut object = to_value(binding).unwrap();
    json_patch::patch(&mut object, patch.operations()).unwrap();
    let binding = from_value(object).unwrap();
    assert_eq!(planned(&binding, works), Plan::default());
    (binding, events == [Transition])
}

#[track_caller]
fn condition_of<'a>(binding: &'a ResourceBinding, kind: &str) -> &'a Condition {
    let conditions = binding
        .status
        .as_ref()
        .unwrap()
        .conditions
        .as_ref()
        .unwrap();
    conditions
        .iter()
        .find(|condition| condition.type_ == kind)
        .unwrap()
}

fn items(binding: &ResourceBinding) -> Value {
    to_value(
        binding
            .status
            .as_ref()
            .unwrap()
            .aggregated_status
            .as_ref()
            .unwrap(),
    )
    .unwrap()
}

fn set_applied(work: &mut Work, status: &str, message: &str, observed: Option<i64>) {
    let applied = json!({
        "type": "Applied", "status": status, "message": message, "observedGeneration": observed,
    });
    work.status.get_or_insert_default().conditions = vec![from_value(applied).unwrap()];
}

/// The status of Karmada is taken over as it is.
#[test]
fn karmadas_status_is_taken_over() {
    for (_, binding) in fixtures::bound() {
        let works = works_of((&binding).into());
        assert_eq!(
            planned(&binding, &works),
            Plan::default(),
            "{:?}",
            binding.metadata.name
        );
    }
    let (_, binding) = fixtures::role();
    let binding = BindingRef::from(&binding);
    let works = works_of(binding);
    let works: Vec<&Work> = works.iter().collect();
    assert_eq!(plan(binding, &works, None, &now()), Plan::default());
}

/// A status is built from nothing in one patch.
#[test]
fn status_needs_one_patch() {
    let (_, recorded) = fixtures::deployment();
    let mut binding = recorded.clone();
    binding.status = None;
    let works = works_of((&binding).into());
    let (written, is_transition) = written(&binding, &works);
    assert!(is_transition);
    assert_eq!(items(&written), items(&recorded));
    let applied = condition_of(&written, FULLY_APPLIED);
    assert_eq!(applied.reason, "FullyAppliedSuccess");
    assert_eq!(applied.last_transition_time, Some(now()));
    assert_eq!(written.status.unwrap().conditions.unwrap().len(), 1);
}

/// Works that were just made say nothing.
#[test]
fn new_works_say_nothing() {
    let (_, mut binding) = fixtures::deployment();
    binding.status = None;
    let mut works = works_of((&binding).into());
    for work in &mut works {
        work.status = None;
    }
    assert_eq!(planned(&binding, &works), Plan::default());
    assert_eq!(planned(&binding, &[]), Plan::default());
}

/// Case P131: each of many clusters has room for the begin of its failure.
#[test]
fn many_failures_have_room() {
    let (_, binding) = fixtures::deployment();
    let one = works_of((&binding).into()).remove(0);
    let works = (0..400).map(|number| {
        let mut work = one.clone();
        work.metadata.namespace = Some(format!("karmada-es-m{number}"));
        set_applied(&mut work, "False", &"x".repeat(30_000), Some(1));
        work
    });
    let (failed, _) = written(&binding, &works.collect::<Vec<_>>());
    let text = items(&failed).to_string();
    assert!(text.contains("\"appliedMessage\":\"xxx") && text.len() < 512 * 1024);
}

/// A failure has its message and no status.
#[test]
fn failure_has_message_only() {
    let (_, binding) = fixtures::deployment();
    let mut works = works_of((&binding).into());
    set_applied(&mut works[1], "False", "quota exceeded", Some(1));
    let (failed, is_transition) = written(&binding, &works);
    assert!(is_transition);
    let item = json!({ "clusterName": "member2", "appliedMessage": "quota exceeded", "health": "Unknown" });
    assert_eq!(items(&failed)[1], item);
    let condition = condition_of(&failed, FULLY_APPLIED);
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "FullyAppliedFailed")
    );
    assert_eq!(
        condition_of(&failed, "Scheduled"),
        condition_of(&binding, "Scheduled")
    );
}

/// Details of a member's status are no transition.
#[test]
fn details_are_no_transition() {
    let (_, binding) = fixtures::deployment();
    let mut works = works_of((&binding).into());
    let status = works[0].status.as_mut().unwrap();
    status.manifest_statuses[0].status = Some(json!({ "readyReplicas": 2 }));
    let (changed, is_transition) = written(&binding, &works);
    assert!(!is_transition);
    assert_eq!(items(&changed)[0]["status"], json!({ "readyReplicas": 2 }));
    let kept = condition_of(&changed, FULLY_APPLIED);
    assert_eq!(kept, condition_of(&binding, FULLY_APPLIED));
}

/// A cluster that is new makes a binding less than fully applied.
#[test]
fn new_cluster_is_not_applied() {
    let (_, mut binding) = fixtures::deployment();
    let works = works_of((&binding).into());
    let clusters = binding.spec.clusters.as_mut().unwrap();
    clusters.push(from_value(json!({ "name": "member3", "replicas": 1 })).unwrap());
    let (pending, _) = written(&binding, &works);
    assert_eq!(condition_of(&pending, FULLY_APPLIED).status, "False");
}

/// A binding that has lost its last cluster is applied nowhere.
#[test]
fn nowhere_is_not_applied() {
    let (_, mut binding) = fixtures::deployment();
    binding.spec.clusters = None;
    let (nowhere, _) = written(&binding, &[]);
    let condition = condition_of(&nowhere, FULLY_APPLIED);
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "FullyAppliedFailed")
    );
}

/// A copy that nobody needs is listed until it is gone.
#[test]
fn unneeded_copy_is_listed() {
    let (_, mut binding) = fixtures::deployment();
    let mut works = works_of((&binding).into());
    binding.spec.clusters.as_mut().unwrap().pop();
    works[1].metadata.deletion_timestamp = Some(now());
    assert_eq!(planned(&binding, &works), Plan::default());
    works.pop();
    let (gone, _) = written(&binding, &works);
    assert_eq!(items(&gone).as_array().unwrap().len(), 1);
    assert_eq!(condition_of(&gone, FULLY_APPLIED).status, "True");
}

/// Case P19: a suspension is shown with the state of each cluster.
#[test]
fn suspension_is_shown() {
    let (mut binding, paused) = fixtures::paused();
    let mut works = works_of((&binding).into());
    works[1] = paused;
    binding.status = fixtures::deployment().1.status;
    let (suspended, is_transition) = written(&binding, &works);
    assert!(is_transition);
    let dispatching = condition_of(&suspended, DISPATCHING);
    assert_eq!(dispatching.reason, "SuspendDispatching");
    assert_eq!(dispatching.status, "False");
    assert_eq!(
        dispatching.message,
        "Dispatching is suspended on member2 (has generation 2)."
    );
    let fully = condition_of(&suspended, FULLY_APPLIED);
    assert_eq!(
        (fully.status.as_str(), fully.reason.as_str()),
        ("False", "DispatchSuspended")
    );

    // The manifest of a suspended Work that was delivered before is no loss.
    set_applied(&mut works[1], "True", "", Some(3));
    let (delivered, _) = written(&suspended, &works);
    assert_eq!(condition_of(&delivered, FULLY_APPLIED).status, "True");
    let dispatching = condition_of(&delivered, DISPATCHING);
    assert_eq!(
        dispatching.message,
        "Dispatching is suspended on member2 (up to date)."
    );

    works[1].spec.suspend_dispatching = Some(false);
    let (resumed, _) = written(&delivered, &works);
    assert_eq!(condition_of(&resumed, DISPATCHING).status, "True");
}

/// A work that was suspended from the first has an item.
#[test]
fn suspended_work_has_item() {
    let (_, mut binding) = fixtures::deployment();
    binding.status = None;
    let mut works = works_of((&binding).into());
    works.truncate(1);
    works[0].status = None;
    works[0].spec.suspend_dispatching = Some(true);
    let (waiting, _) = written(&binding, &works);
    assert_eq!(
        items(&waiting),
        json!([{ "clusterName": "member1", "health": "Unknown" }])
    );
    let message = &condition_of(&waiting, DISPATCHING).message;
    assert_eq!(message, "Dispatching is suspended on member1 (has none).");
}

/// A long list of clusters is cut.
#[test]
fn long_list_is_cut() {
    let names: Vec<String> = (10..30).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(listed(&names).ends_with("m19 and 10 more"));
}
