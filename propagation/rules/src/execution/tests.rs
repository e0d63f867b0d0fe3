use jiff::Timestamp;
use karmada_api::names::{APPLIED_OVERRIDES, WORK_NAME};
use karmada_api::{Condition, Work};
use objects::message::LONGEST;
use objects::ownership::{Adoption, ObservedObject, Removal};
use objects::write::Plan;
use proptest::prelude::*;
use serde_json::{Value, from_str, from_value, json};

use super::ownership::adoption;
use super::*;
use crate::fixtures::json_values;
use crate::interpret::Timed;

/// A Work and the object that Karmada made of it.
struct Recorded {
    work: Work,
    manifest: Value,
    object: Value,
}

/// Returns the objects that a whole Karmada left in three members.
fn recorded() -> Vec<Recorded> {
    let members = [
        include_str!("fixtures/member1.json"),
        include_str!("fixtures/member2.json"),
        include_str!("fixtures/member3.json"),
    ];
    let pairs = members
        .into_iter()
        .flat_map(|text| from_str::<Vec<Value>>(text).unwrap());
    pairs
        .map(|mut pair| {
            let work: Work = from_value(pair["work"].take()).unwrap();
            let manifest = work.spec.workload.manifests[0].clone();
            let mut object = pair["object"].take();
            // The recording of the members leaves this annotation out.
            let last = "kubectl.kubernetes.io/last-applied-configuration";
            if let Some(text) = manifest["metadata"]["annotations"].get(last) {
                object["metadata"]["annotations"][last] = text.clone();
            }
            Recorded {
                work,
                manifest,
                object,
            }
        })
        .collect()
}

fn named(name: &str) -> Recorded {
    let mut all = recorded().into_iter();
    all.find(|pair| pair.work.metadata.name.as_deref() == Some(name))
        .unwrap()
}

fn deployment() -> Recorded {
    named("web-56d6c779bb")
}

fn now() -> Timestamp {
    "2026-11-22T08:00:00Z".parse().unwrap()
}

/// Returns the number of news about `Dispatching`, about `Applied`, of objects with a first status, and with another health.
fn numbers(plan: &Plan<StatusNews>) -> [usize; 4] {
    let mut numbers = [0; 4];
    for news in &plan.events {
        match news {
            StatusNews::Dispatching(_) => numbers[0] += 1,
            StatusNews::Applied(_) => numbers[1] += 1,
            StatusNews::Reflected(_) => numbers[2] += 1,
            StatusNews::Interpreted(_) => numbers[3] += 1,
            StatusNews::Withheld(_) => {}
        }
    }
    numbers
}

fn applied_news(plan: &Plan<StatusNews>) -> Option<&Condition> {
    plan.events.iter().find_map(|news| match news {
        StatusNews::Applied(condition) => Some(condition),
        _ => None,
    })
}

/// Plans the status after a sync of the only manifest.
fn status_after(
    work: &Work,
    manifest: &Value,
    error: Option<&str>,
    object: &ObservedObject,
) -> Plan<StatusNews> {
    let outcome = Outcome {
        manifest,
        error: error.map(str::to_owned),
        note: None,
        block: None,
        object,
        interpreted: Interpreted::default(),
    };
    let synced = SyncOutcome {
        manifests: &[outcome],
        untouched: false,
    };
    status(work, synced, now())
}

/// Plans the status after a sync that found the Work and its object as they were at the start.
fn status_untouched(work: &Work, manifest: &Value, object: &ObservedObject) -> Plan<StatusNews> {
    let outcome = Outcome {
        manifest,
        error: None,
        note: None,
        block: None,
        object,
        interpreted: Interpreted::default(),
    };
    let synced = SyncOutcome {
        manifests: &[outcome],
        untouched: true,
    };
    status(work, synced, now())
}

/// The status that Karmada wrote of its own objects says all that we would.
#[test]
fn karmada_status_stays_unwritten() {
    let all = recorded();
    assert_eq!(all.len(), 8);
    for Recorded {
        work,
        manifest,
        object,
    } in all
    {
        let present = ObservedObject::Present(object);
        let plan = status_untouched(&work, &manifest, &present);
        assert_eq!(plan, Plan::default(), "{:?}", work.metadata.name);
    }
}

/// An object that names another Work, or is not managed, stays. A preserved one loses Karmada's marks only, when its Work
/// is deleted (Case P9).
#[test]
fn only_own_object_is_removed() {
    let Recorded {
        mut work, object, ..
    } = deployment();
    let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
    let deletion = Removal::Delete { uid };
    assert_eq!(removal(&work, &object), deletion);
    let mut other = object.clone();
    other["metadata"]["annotations"][WORK_NAME] = json!("other");
    assert_eq!(removal(&work, &other), Removal::Nothing);
    let mut unmanaged = object.clone();
    unmanaged["metadata"]["labels"]["karmada.io/managed"] = json!("false");
    assert_eq!(removal(&work, &unmanaged), Removal::Nothing);
    work.spec.preserve_resources_on_deletion = Some(true);
    assert_eq!(removal(&work, &object), deletion);
    work.metadata.deletion_timestamp = Some(from_value(json!("2026-11-22T08:00:00Z")).unwrap());
    let Removal::Release { patch } = removal(&work, &object) else {
        panic!("not released");
    };
    let mut kept = object.clone();
    json_patch::merge(&mut kept, &patch);
    assert_eq!(kept["metadata"]["labels"], json!({ "app": "web" }));
    assert!(
        !kept["metadata"]["annotations"]
            .to_string()
            .contains("karmada.io"),
        "{kept}"
    );
    assert_eq!(kept["spec"], object["spec"]);
}

/// Cases P19 and P24: a suspended Work says so, keeps the report of the application in its status, and reports its object further on.
#[test]
fn suspension_keeps_applied() {
    let Recorded {
        mut work,
        manifest,
        mut object,
    } = deployment();
    work.spec.suspend_dispatching = Some(true);
    work.metadata.generation = Some(7);
    object["status"] = json!({ "replicas": 2, "observedGeneration": 1 });
    let present = ObservedObject::Present(object);
    let plan = status_after(&work, &manifest, None, &present);
    let patch = plan.writes[0].guarded_body();
    let conditions = &patch["status"]["conditions"];
    assert_eq!(conditions[0]["status"], "False");
    assert_eq!(conditions[0]["reason"], "SuspendDispatching");
    assert_eq!(
        conditions[0]["message"],
        "Work dispatching is in a suspended state."
    );
    assert_eq!(
        conditions[1],
        serde_json::to_value(work.condition("Applied")).unwrap()
    );
    assert_eq!(
        patch["status"]["manifestStatuses"][0]["status"]["replicas"],
        2
    );
    assert_eq!(
        patch["metadata"]["resourceVersion"],
        json!(work.metadata.resource_version)
    );
    let [dispatching, applied, ..] = numbers(&plan);
    assert_eq!((dispatching, applied), (1, 0));
}

/// A Work that was suspended before any report shows by its object whether it was applied.
#[test]
fn suspension_recovers_lost_report() {
    let Recorded {
        mut work,
        manifest,
        object,
    } = deployment();
    work.spec.suspend_dispatching = Some(true);
    work.metadata.generation = Some(7);
    let of_another = {
        let mut object = object.clone();
        object["metadata"]["labels"]["work.karmada.io/permanent-id"] = json!("another");
        object
    };
    let applied = work.condition("Applied").cloned();
    let failed = applied.clone().map(|applied| Condition {
        status: "False".to_owned(),
        observed_generation: Some(3),
        ..applied
    });
    let [settled, present, of_another] = [
        ObservedObject::Settled(object.clone()),
        ObservedObject::Present(object),
        ObservedObject::Present(of_another),
    ];
    for (observed, changed, applied, expected) in [
        (&settled, "3", None, Some(7)),
        (&settled, "3", applied.clone(), Some(7)),
        // As it was before the manifest changed.
        (&present, "3", None, Some(2)),
        (&present, "3", applied, None),
        (&present, "3", failed, Some(2)),
        (&present, "1", None, None),
        (&of_another, "3", None, None),
        (&ObservedObject::Absent, "3", None, None),
        (&ObservedObject::Unknown, "3", None, None),
    ] {
        let annotations = work.metadata.annotations.get_or_insert_default();
        annotations.insert("karmada-rs.io/manifest-generation".into(), changed.into());
        let conditions = &mut work.status.get_or_insert_default().conditions;
        conditions.retain(|condition| condition.type_ != "Applied");
        conditions.extend(applied.clone());
        let plan = status_after(&work, &manifest, None, observed);
        let patch = plan.writes[0].guarded_body();
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let reported = conditions.iter().find(|one| one["type"] == "Applied");
        let generation = reported.and_then(|one| one["observedGeneration"].as_i64());
        assert_eq!(generation, expected, "{observed:?} {changed} {applied:?}");
        let is_true = reported.is_none_or(|one| one["status"] == "True");
        assert!(is_true, "{observed:?}");
    }
}

/// A report is written once, and then when status, reason, message or generation are others. Only news that a person
/// would want to know is an Event.
#[test]
fn only_news_is_written() {
    let Recorded {
        mut work,
        manifest,
        object,
    } = deployment();
    work.status = None;
    work.metadata.generation = Some(3);
    let present = ObservedObject::Present(object);
    let plan = status_after(&work, &manifest, None, &present);
    let patch = plan.writes[0].guarded_body();
    assert_eq!(patch["status"]["conditions"][1]["observedGeneration"], 3);
    assert_eq!(numbers(&plan), [1, 1, 1, 1]);
    work.status = Some(from_value(patch["status"].clone()).unwrap());
    assert_eq!(
        status_after(&work, &manifest, None, &present),
        Plan::default()
    );
    let unknown = ObservedObject::Unknown;
    let no = Some("create Deployment shop/web: no");
    let failed = status_after(&work, &manifest, no, &unknown);
    let condition = applied_news(&failed).unwrap();
    assert_eq!(condition.reason, "AppliedFailed");
    let message = "Failed to apply all manifests (0/1): create Deployment shop/web: no";
    assert_eq!(condition.message, message);
    let patch = failed.writes[0].guarded_body();
    // The member was not reached: its last known state stands.
    let known = work.status.as_ref().unwrap().manifest_statuses.clone();
    assert_eq!(patch["status"]["manifestStatuses"], json!(known));
    work.status = Some(from_value(patch["status"].clone()).unwrap());
    assert_eq!(
        status_after(&work, &manifest, no, &unknown),
        Plan::default()
    );
    let other = status_after(&work, &manifest, Some("other"), &unknown);
    assert!(applied_news(&other).is_some());
    // A new generation that is equal in the member is news for the status, but no Event.
    work.status = Some(
        from_value(
            json!({ "conditions": [{ "type": "Applied", "status": "True",
        "reason": "AppliedSuccessful", "message": "Manifest has been successfully applied",
        "observedGeneration": 2 }] }),
        )
        .unwrap(),
    );
    let plan = status_untouched(&work, &manifest, &present);
    assert!(!plan.writes.is_empty() && applied_news(&plan).is_none());
}

fn refused(at: &str) -> String {
    format!(
        "update Deployment shop/web: the certificate has expired: current time {at} is after 2026-11-22T07:00:00Z"
    )
}

/// Case P130: a member that words its refusal anew with each attempt is told of once. The reports would wake the Work, and lead to
/// the next ones.
#[test]
fn reworded_refusal_is_told_once() {
    let Recorded {
        mut work, manifest, ..
    } = deployment();
    work.metadata.generation = Some(3);
    let unknown = ObservedObject::Unknown;
    let first = refused("2026-11-22T08:00:00Z");
    let plan = status_after(&work, &manifest, Some(&first), &unknown);
    assert!(applied_news(&plan).unwrap().message.ends_with(&first));
    let patch = plan.writes[0].guarded_body();
    work.status = Some(from_value(patch["status"].clone()).unwrap());
    let again = refused("2026-11-22T08:00:30Z");
    let plan = status_after(&work, &manifest, Some(&again), &unknown);
    assert_eq!(plan, Plan::default());
    // The next manifest is refused, too.
    work.metadata.generation = Some(4);
    let plan = status_after(&work, &manifest, Some(&again), &unknown);
    let patch = plan.writes[0].guarded_body();
    assert_eq!(patch["status"]["conditions"][1]["observedGeneration"], 4);
    assert_eq!(applied_news(&plan), None);
}

/// Case P131: of a message for which a condition has no room, the API would refuse the whole status.
#[test]
fn long_refusal_is_cut() {
    let Recorded { work, manifest, .. } = deployment();
    let refused = "x".repeat(2 * LONGEST);
    let plan = status_after(&work, &manifest, Some(&refused), &ObservedObject::Unknown);
    assert_eq!(applied_news(&plan).unwrap().message.len(), LONGEST);
}

/// The first status of an object is news, and so is every other health.
#[test]
fn first_status_and_health_changes() {
    let Recorded {
        mut work,
        manifest,
        mut object,
    } = deployment();
    work.status = None;
    let mut changes = |object: &Value| {
        let present = ObservedObject::Present(object.clone());
        let plan = status_after(&work, &manifest, None, &present);
        if let Some(write) = plan.writes.first() {
            work.status = Some(from_value(write.body()["status"].clone()).unwrap());
        }
        let health = plan.events.iter().filter_map(|news| match news {
            StatusNews::Interpreted(one) => one.health.clone(),
            _ => None,
        });
        (numbers(&plan)[2], health.collect::<Vec<_>>())
    };
    let generation = object["metadata"]["generation"].clone();
    object["status"] = json!({ "observedGeneration": generation, "replicas": 2 });
    assert_eq!(changes(&object), (1, vec!["Unhealthy".to_owned()]));
    object["status"]["readyReplicas"] = 1.into();
    assert_eq!(changes(&object), (0, vec![]));
    for ready in ["updatedReplicas", "availableReplicas", "readyReplicas"] {
        object["status"][ready] = 2.into();
    }
    assert_eq!(changes(&object), (0, vec!["Healthy".to_owned()]));
    assert_eq!(changes(&object), (0, vec![]));
}

/// Plans the status of a Work whose object scripts interpret so.
fn status_interpreted(work: &Work, object: &Value, interpreted: &Interpreted) -> Plan<StatusNews> {
    let manifest = &work.spec.workload.manifests[0];
    let outcome = Outcome {
        manifest,
        error: None,
        note: None,
        block: None,
        object: &ObservedObject::Present(object.clone()),
        interpreted: interpreted.clone(),
    };
    let synced = SyncOutcome {
        manifests: &[outcome],
        untouched: false,
    };
    status(work, synced, now())
}

fn scripted(at: &str) -> Interpreted {
    Interpreted {
        status: Some(Ok(Timed {
            value: json!({ "n": 1, "at": at }),
            at_another_time: Some(json!({ "n": 1, "at": "later" })),
        })),
        is_healthy: Some(Ok(false)),
    }
}

/// Case I65: the answers of scripts about an object come before the rules of its kind; one that only a clock has changed is
/// not reported.
#[test]
fn scripts_come_first() {
    let Recorded {
        mut work, object, ..
    } = deployment();
    let patch = status_interpreted(&work, &object, &scripted("a")).writes[0].guarded_body();
    let reported = &patch["status"]["manifestStatuses"][0];
    assert_eq!(reported["status"], json!({ "n": 1, "at": "a" }));
    assert_eq!(reported["health"], "Unhealthy");
    work.status = from_value(patch["status"].clone()).unwrap();
    let plan = status_interpreted(&work, &object, &scripted("b"));
    assert!(plan.writes.is_empty());
}

/// Case I69: where the script of a status fails, the last report stays; where that of the health does, the
/// health is unknown.
#[test]
fn failed_scripts_report_nothing_new() {
    let Recorded { work, object, .. } = deployment();
    let before = work.status.as_ref().unwrap().manifest_statuses[0].clone();
    let failed = Interpreted {
        status: Some(Err("no".to_owned())),
        is_healthy: Some(Ok(false)),
    };
    let plan = status_interpreted(&work, &object, &failed);
    assert_eq!(numbers(&plan)[3], 0);
    let failed = Interpreted {
        status: None,
        is_healthy: Some(Err("no".to_owned())),
    };
    let patch = status_interpreted(&work, &object, &failed).writes[0].guarded_body();
    let reported = &patch["status"]["manifestStatuses"][0];
    assert_eq!(reported["health"], "Unknown");
    assert_eq!(reported["status"], json!(before.status));
}

/// One error of all manifests, such as that of the connection, is said once.
#[test]
fn equal_errors_are_said_once() {
    let Recorded { work, manifest, .. } = deployment();
    let outcomes = [Some("no address"), Some("no address"), None].map(|error| Outcome {
        manifest: &manifest,
        error: error.map(str::to_owned),
        note: None,
        block: None,
        object: &ObservedObject::Unknown,
        interpreted: Interpreted::default(),
    });
    let synced = SyncOutcome {
        manifests: &outcomes,
        untouched: false,
    };
    let plan = status(&work, synced, now());
    let applied = applied_news(&plan).unwrap();
    let message = "Failed to apply all manifests (1/3): no address";
    assert_eq!(applied.message, message);
}

/// A note stands behind the words of Karmada for a Work that was applied, and is found there again.
#[test]
fn notes_follow_success() {
    let Recorded {
        mut work, manifest, ..
    } = deployment();
    let outcomes = [Some("no color"), None, Some("no size")].map(|note| Outcome {
        manifest: &manifest,
        error: None,
        note,
        block: None,
        object: &ObservedObject::Absent,
        interpreted: Interpreted::default(),
    });
    let synced = SyncOutcome {
        manifests: &outcomes,
        untouched: false,
    };
    let patch = status(&work, synced, now()).writes[0].guarded_body();
    work.status = from_value(patch["status"].clone()).unwrap();
    let message = "Manifest has been successfully applied; no color; no size";
    assert_eq!(notes(&work), message);
    assert_eq!(applied(&work).unwrap().message, message);
}

fn service(node_port: u16) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "type": "NodePort",
            "ports": [{ "name": "http", "port": 80, "nodePort": node_port }] },
        "status": { "loadBalancer": {} } })
}

fn reported(work: &Work, own: u16) -> Value {
    let object = ObservedObject::Present(service(own));
    let plan = status_after(work, &service(30_080), None, &object);
    plan.writes[0].body()["status"]["manifestStatuses"][0]["status"].clone()
}

/// Case T7: a member that refuses a node port tells which one it has allocated instead, and one that took it tells it only where an
/// override may have given it another than the template has.
#[test]
fn own_node_port_is_reported() {
    let own = |port: u16| json!({ "nodePorts": { "http": port } });
    let mut work = Work::default();
    assert_eq!(reported(&work, 31_234), own(31_234));
    assert_eq!(reported(&work, 30_080), Value::Null);
    let overrides = (APPLIED_OVERRIDES.to_owned(), "[]".to_owned());
    work.metadata.annotations = Some([overrides].into());
    assert_eq!(reported(&work, 30_080), own(30_080));
}

proptest! {
    /// No object or manifest is too odd to be judged.
    #[test]
    fn odd_objects_are_judged(manifest in json_values(), object in json_values()) {
        let work = Work::default();
        let refused = matches!(adoption(&work, &manifest, &object), Adoption::Refuse { .. });
        prop_assert!(refused);
        drop(removal(&work, &object));
        drop(status_after(&work, &manifest, None, &ObservedObject::Present(object)));
    }
}
