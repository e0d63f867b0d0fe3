use jiff::Timestamp;
use karmada_api::names::WORK_NAME;
use karmada_api::{Condition, Work};
use proptest::prelude::*;
use serde_json::{Value, from_str, from_value, json};

use super::*;

/// A Work and the object that Karmada made of it.
struct Recorded {
    work: Work,
    manifest: Value,
    object: Value,
}

/// Returns what a whole Karmada left in three members.
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
            // The recording leaves this annotation out of what it took from the members.
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

/// Returns the object with the entry of managed fields that an apply of ours leaves.
fn as_ours(mut object: Value) -> Value {
    let version = &object["metadata"]["resourceVersion"].clone();
    let taken = managed_fields::take_over(&object, managed_fields::TakeOver::FromKarmada).unwrap();
    assert_eq!(taken.value(["metadata", "resourceVersion"]), Some(version));
    let fields = taken.value(["metadata", "managedFields"]);
    object["metadata"]["managedFields"] = fields.unwrap().clone();
    object
}

fn now() -> Timestamp {
    "2026-11-22T08:00:00Z".parse().unwrap()
}

#[test]
fn what_karmada_applied_is_not_written_again() {
    let all = recorded();
    assert_eq!(all.len(), 8);
    for Recorded {
        work,
        manifest,
        object,
    } in all
    {
        let name = &work.metadata.name;
        assert_eq!(
            plan(&work, &manifest, Some(&object)),
            ApplyPlan::Unchanged,
            "{name:?}"
        );
        let mut cached = object.clone();
        cached["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(
            plan(&work, &manifest, Some(&cached)),
            ApplyPlan::Unchanged,
            "{name:?}"
        );
        let outcome = Outcome {
            manifest: &manifest,
            error: None,
            object: Seen::Present(&object),
        };
        assert_eq!(
            status(&work, &[outcome], true, now()),
            StatusPlan::default(),
            "{name:?}"
        );
    }
}

#[test]
fn an_edit_takes_the_fields_over_from_karmada_and_names_the_object_that_was_read() {
    let Recorded {
        work,
        mut manifest,
        object,
    } = deployment();
    manifest["spec"]["replicas"] = json!(3);
    let ApplyPlan::Apply { body, take_over } = plan(&work, &manifest, Some(&object)) else {
        panic!("not applied");
    };
    assert_eq!(body["metadata"]["uid"], object["metadata"]["uid"]);
    assert_eq!(body["spec"], manifest["spec"]);
    let take_over = json!(take_over.unwrap());
    let before = &object["metadata"]["managedFields"][0];
    let after = &take_over[1]["value"][0];
    assert_eq!(take_over[1]["value"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&after["manager"], &after["operation"]),
        (&json!("karmada-rs"), &json!("Apply"))
    );
    assert_eq!(after["fieldsV1"], before["fieldsV1"]);
    let version = &object["metadata"]["resourceVersion"];
    let guard = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version });
    assert_eq!(take_over[0], guard);
    // The second time they are ours.
    let ours = as_ours(object);
    let plan = plan(&work, &manifest, Some(&ours));
    assert!(
        matches!(
            plan,
            ApplyPlan::Apply {
                take_over: None,
                ..
            }
        ),
        "{plan:?}"
    );
}

#[test]
fn an_absent_object_is_created_and_one_being_deleted_is_waited_for() {
    let Recorded {
        work,
        manifest,
        mut object,
    } = deployment();
    let created = plan(&work, &manifest, None);
    assert_eq!(
        created,
        ApplyPlan::Create {
            body: manifest.clone()
        }
    );
    object["metadata"]["deletionTimestamp"] = json!("2026-11-22T08:00:00Z");
    assert!(matches!(
        plan(&work, &manifest, Some(&object)),
        ApplyPlan::Refuse { .. }
    ));
}

#[test]
fn a_foreign_object_is_refused_unless_the_user_wants_it_overwritten_as_a_whole() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    object["metadata"]["labels"] = json!({ "app": "web" });
    object["metadata"]["annotations"] = json!({});
    object["metadata"]["managedFields"][0]["manager"] = json!("helm");
    let ApplyPlan::Refuse { message } = plan(&work, &manifest, Some(&object)) else {
        panic!("not refused");
    };
    assert!(
        message.contains("work.karmada.io/conflict-resolution=overwrite"),
        "{message}"
    );
    manifest["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] = json!("overwrite");
    let ApplyPlan::Apply { take_over, .. } = plan(&work, &manifest, Some(&object)) else {
        panic!("not applied");
    };
    let take_over = take_over.unwrap();
    let take_over = json!(take_over);
    let entries = take_over[1]["value"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    // A container of helm's would go on beside ours; its labels may stay.
    assert_eq!(entries[0]["manager"], "helm");
    let kept: Vec<_> = entries[0]["fieldsV1"].as_object().unwrap().keys().collect();
    assert_eq!(kept, ["f:metadata"]);
    let taken: Vec<_> = entries[1]["fieldsV1"].as_object().unwrap().keys().collect();
    assert_eq!(taken, ["f:spec"]);
}

#[test]
fn the_object_of_another_work_is_not_fought_over() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    object["metadata"]["annotations"][WORK_NAME] = json!("other");
    let ApplyPlan::Refuse { message } = plan(&work, &manifest, Some(&object)) else {
        panic!("not refused");
    };
    assert!(message.contains("karmada-es-member1/other"), "{message}");
    manifest["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] = json!("overwrite");
    assert!(matches!(
        plan(&work, &manifest, Some(&object)),
        ApplyPlan::Apply { .. }
    ));
}

#[test]
fn a_label_of_ours_that_someone_took_off_is_put_on_again() {
    let Recorded {
        work,
        manifest,
        mut object,
    } = deployment();
    object["metadata"]["labels"] = json!({ "app": "web" });
    let plan = plan(&work, &manifest, Some(&object));
    assert!(matches!(plan, ApplyPlan::Apply { .. }), "{plan:?}");
}

#[test]
fn a_field_that_has_left_the_manifest_is_an_edit() {
    for ours in [false, true] {
        let Recorded {
            work,
            mut manifest,
            mut object,
        } = named("web-settings-6bcc888469");
        if ours {
            object = as_ours(object);
        }
        manifest["data"] = json!({});
        let plan = plan(&work, &manifest, Some(&object));
        assert!(matches!(plan, ApplyPlan::Apply { .. }), "{ours}: {plan:?}");
    }
    let Recorded {
        work,
        mut manifest,
        object,
    } = deployment();
    let object = as_ours(object);
    let container = &mut manifest["spec"]["template"]["spec"]["containers"][0];
    container.as_object_mut().unwrap().remove("envFrom");
    assert!(matches!(
        plan(&work, &manifest, Some(&object)),
        ApplyPlan::Apply { .. }
    ));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_others_add_is_theirs_and_what_they_change_is_repaired() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, bool); 8] = [
        (
            "an annotation",
            |o| o["metadata"]["annotations"]["a"] = json!("b"),
            false,
        ),
        (
            "a status",
            |o| o["status"] = json!({ "replicas": 2 }),
            false,
        ),
        (
            "a sidecar",
            |o| {
                push(
                    o,
                    "/spec/template/spec/containers",
                    json!({ "name": "proxy" }),
                );
            },
            false,
        ),
        (
            "a first sidecar",
            |o| {
                let list = o.pointer_mut("/spec/template/spec/containers").unwrap();
                list.as_array_mut()
                    .unwrap()
                    .insert(0, json!({ "name": "proxy" }));
            },
            false,
        ),
        (
            "a security setting",
            |o| {
                o["spec"]["template"]["spec"]["securityContext"] = json!({ "runAsUser": 7 });
            },
            false,
        ),
        (
            "another image",
            |o| {
                o["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
            },
            true,
        ),
        (
            "another port",
            |o| {
                o["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] =
                    json!(1);
            },
            true,
        ),
        (
            "no label",
            |o| {
                o["metadata"]["labels"] = json!({
            "karmada.io/managed": "true", "work.karmada.io/permanent-id": "x" });
            },
            true,
        ),
    ];
    for (name, change, repaired) in cases {
        for ours in [false, true] {
            let Recorded {
                work,
                manifest,
                mut object,
            } = deployment();
            if ours {
                object = as_ours(object);
            }
            change(&mut object);
            let plan = plan(&work, &manifest, Some(&object));
            let applied = matches!(plan, ApplyPlan::Apply { .. });
            assert_eq!(applied, repaired, "{name}: {plan:?}");
        }
    }
}

#[test]
fn atomic_parts_are_ours_as_a_whole() {
    let Recorded {
        work,
        manifest,
        mut object,
    } = named("web-b97f76f44");
    object["spec"]["selector"]["more"] = json!("x");
    assert!(matches!(
        plan(&work, &manifest, Some(&object)),
        ApplyPlan::Apply { .. }
    ));
    let Recorded {
        work,
        manifest,
        mut object,
    } = named("shop.reader-56f65c769");
    let rule = object["rules"][0].clone();
    push(&mut object, "/rules", rule);
    assert!(matches!(
        plan(&work, &manifest, Some(&object)),
        ApplyPlan::Apply { .. }
    ));
}

fn push(object: &mut Value, pointer: &str, element: Value) {
    object
        .pointer_mut(pointer)
        .unwrap()
        .as_array_mut()
        .unwrap()
        .push(element);
}

#[test]
fn the_member_keeps_the_values_that_are_its_own() {
    let retained = |manifest: Value, object: Value| retain::retain(&manifest, Some(&object));
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "selector": {} } });
    let job = retained(job, json!({}));
    assert_eq!(job["spec"], json!({}));
    let manual = json!({ "apiVersion": "batch/v1", "kind": "Job",
        "spec": { "manualSelector": true, "selector": { "matchLabels": { "a": "b" } } } });
    assert_eq!(retained(manual.clone(), json!({})), manual);
    let token = json!({ "apiVersion": "v1", "kind": "Secret", "data": null,
        "type": "kubernetes.io/service-account-token" });
    assert_eq!(retained(token, json!({})).get("data"), None);
    let service =
        json!({ "apiVersion": "v1", "kind": "Service", "spec": { "healthCheckNodePort": 1 } });
    let theirs = json!({ "spec": { "healthCheckNodePort": 30_000 } });
    assert_eq!(
        retained(service, theirs)["spec"]["healthCheckNodePort"],
        30_000
    );
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
        "imagePullSecrets": [{ "name": "a" }, { "name": "b" }] });
    let theirs = json!({ "imagePullSecrets": [{ "name": "c" }, { "name": "b" }] });
    let merged = retained(account, theirs);
    assert_eq!(
        merged["imagePullSecrets"],
        json!([{ "name": "c" }, { "name": "b" }, { "name": "a" }])
    );
}

#[test]
fn retained_replicas_are_left_to_their_owner_and_otherwise_kept() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    manifest["metadata"]["labels"]["resourcetemplate.karmada.io/retain-replicas"] = json!("true");
    manifest["spec"]["replicas"] = json!(9);
    let body = |object: &Value| match plan(&work, &manifest, Some(object)) {
        ApplyPlan::Apply { body, .. } => body,
        plan => panic!("{plan:?}"),
    };
    assert_eq!(
        body(&object)["spec"]["replicas"],
        object["spec"]["replicas"]
    );
    push(
        &mut object,
        "/metadata/managedFields",
        json!({
            "manager": "hpa", "operation": "Update", "subresource": "scale",
            "fieldsV1": { "f:spec": { "f:replicas": {} } },
        }),
    );
    assert_eq!(body(&object)["spec"].get("replicas"), None);
}

#[test]
fn only_a_change_of_content_unsettles_an_object() {
    let object = deployment().object;
    let settled = Settled::of(&object);
    let mut status = object.clone();
    status["status"] = json!({ "replicas": 1 });
    status["metadata"]["resourceVersion"] = json!("9");
    assert_eq!(Settled::of(&status), settled);
    for (pointer, value) in [
        ("/metadata/generation", json!(2)),
        ("/metadata/uid", json!("other")),
        ("/metadata/labels/app", json!("other")),
        (
            "/metadata/annotations/work.karmada.io~1name",
            json!("other"),
        ),
    ] {
        let mut changed = object.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert_ne!(Settled::of(&changed), settled, "{pointer}");
    }
    let mut map = named("web-settings-6bcc888469").object;
    let settled = Settled::of(&map);
    map["data"]["greeting"] = json!("hallo");
    assert_ne!(Settled::of(&map), settled, "a kind without generation");
}

#[test]
fn only_the_works_own_object_is_deleted() {
    let Recorded {
        mut work, object, ..
    } = deployment();
    let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(deletion(&work, Some(&object)), Deletion::Delete { uid });
    assert_eq!(deletion(&work, None), Deletion::Nothing);
    let mut other = object.clone();
    other["metadata"]["annotations"][WORK_NAME] = json!("other");
    assert_eq!(deletion(&work, Some(&other)), Deletion::Nothing);
    let mut unmanaged = object.clone();
    unmanaged["metadata"]["labels"]["karmada.io/managed"] = json!("false");
    assert_eq!(deletion(&work, Some(&unmanaged)), Deletion::Nothing);
    work.spec.preserve_resources_on_deletion = Some(true);
    let Deletion::Release { patch } = deletion(&work, Some(&object)) else {
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

#[test]
fn a_suspended_work_keeps_what_it_knows_of_its_application_and_goes_on_to_read() {
    let Recorded {
        mut work,
        manifest,
        mut object,
    } = deployment();
    work.spec.suspend_dispatching = Some(true);
    work.metadata.generation = Some(7);
    object["status"] = json!({ "replicas": 2, "observedGeneration": 1 });
    let outcome = Outcome {
        manifest: &manifest,
        error: None,
        object: Seen::Present(&object),
    };
    let plan = status(&work, &[outcome], false, now());
    let patch = plan.patch.unwrap();
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
    assert!(plan.dispatching.is_some() && plan.applied.is_none());
}

#[test]
fn a_suspended_work_tells_of_an_application_whose_report_was_lost() {
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
    for (seen, changed, applied, expected) in [
        (Seen::Settled(&object), "3", None, Some(7)),
        (Seen::Settled(&object), "3", applied.clone(), Some(7)),
        // As it was before the manifest changed.
        (Seen::Present(&object), "3", None, Some(2)),
        (Seen::Present(&object), "3", applied, None),
        (Seen::Present(&object), "3", failed, Some(2)),
        (Seen::Present(&object), "1", None, None),
        (Seen::Present(&of_another), "3", None, None),
        (Seen::Absent, "3", None, None),
        (Seen::Unknown, "3", None, None),
    ] {
        let annotations = work.metadata.annotations.get_or_insert_default();
        annotations.insert("karmada-rs.io/manifest-generation".into(), changed.into());
        let conditions = &mut work.status.get_or_insert_default().conditions;
        conditions.retain(|condition| condition.type_ != "Applied");
        conditions.extend(applied.clone());
        let outcome = Outcome {
            manifest: &manifest,
            error: None,
            object: seen,
        };
        let patch = status(&work, &[outcome], false, now()).patch.unwrap();
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let told = conditions.iter().find(|one| one["type"] == "Applied");
        let generation = told.and_then(|one| one["observedGeneration"].as_i64());
        assert_eq!(generation, expected, "{seen:?} {changed} {applied:?}");
        let is_true = told.is_none_or(|one| one["status"] == "True");
        assert!(is_true, "{seen:?}");
    }
}

#[test]
fn the_status_is_written_once_and_then_only_on_news() {
    let Recorded {
        mut work,
        manifest,
        object,
    } = deployment();
    work.status = None;
    work.metadata.generation = Some(3);
    let good = [Outcome {
        manifest: &manifest,
        error: None,
        object: Seen::Present(&object),
    }];
    let plan = status(&work, &good, false, now());
    let patch = plan.patch.unwrap();
    assert_eq!(patch["status"]["conditions"][1]["observedGeneration"], 3);
    assert!(plan.dispatching.is_some() && plan.applied.is_some());
    assert_eq!((plan.reflected.len(), plan.interpreted.len()), (1, 1));
    work.status = Some(from_value(patch["status"].clone()).unwrap());
    assert_eq!(status(&work, &good, false, now()), StatusPlan::default());
    let bad = |text: &str| {
        let error = Some(text.to_owned());
        [Outcome {
            manifest: &manifest,
            error,
            object: Seen::Unknown,
        }]
    };
    let failed = status(&work, &bad("no"), false, now());
    let condition = failed.applied.unwrap();
    assert_eq!(condition.reason, "AppliedFailed");
    let message = "Failed to apply all manifests (0/1): Deployment shop/web: no";
    assert_eq!(condition.message, message);
    let patch = failed.patch.unwrap();
    // The member was not reached: its last known state stands.
    let known = work.status.as_ref().unwrap().manifest_statuses.clone();
    assert_eq!(patch["status"]["manifestStatuses"], json!(known));
    work.status = Some(from_value(patch["status"].clone()).unwrap());
    assert_eq!(
        status(&work, &bad("no"), false, now()),
        StatusPlan::default()
    );
    assert!(status(&work, &bad("other"), false, now()).applied.is_some());
    // A new generation that is equal in the member is news for the status, but no Event.
    work.status = Some(
        from_value(
            json!({ "conditions": [{ "type": "Applied", "status": "True",
        "reason": "AppliedSuccessful", "message": "Manifest has been successfully applied",
        "observedGeneration": 2 }] }),
        )
        .unwrap(),
    );
    let plan = status(&work, &good, true, now());
    assert!(plan.patch.is_some() && plan.applied.is_none());
}

#[test]
fn a_first_status_is_news_and_so_is_every_other_health() {
    let Recorded {
        mut work,
        manifest,
        mut object,
    } = deployment();
    work.status = None;
    let mut changes = |object: &Value| {
        let outcome = Outcome {
            manifest: &manifest,
            error: None,
            object: Seen::Present(object),
        };
        let plan = status(&work, &[outcome], false, now());
        if let Some(patch) = plan.patch {
            work.status = Some(from_value(patch["status"].clone()).unwrap());
        }
        let health = plan.interpreted.into_iter().filter_map(|one| one.health);
        (plan.reflected.len(), health.collect::<Vec<_>>())
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

#[test]
fn a_replacement_keeps_what_others_wrote_into_the_metadata() {
    let Recorded {
        mut manifest,
        mut object,
        ..
    } = deployment();
    object["metadata"]["finalizers"] = json!(["x/y"]);
    object["metadata"]["annotations"]["theirs"] = json!("kept");
    manifest["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("app");
    let body = replacement(&manifest, &object);
    assert_eq!(body["metadata"]["finalizers"], json!(["x/y"]));
    assert_eq!(body["metadata"]["annotations"]["theirs"], "kept");
    assert_eq!(body["metadata"]["labels"].get("app"), None);
    assert_eq!(
        body["metadata"]["resourceVersion"],
        object["metadata"]["resourceVersion"]
    );
    assert_eq!(body["spec"], manifest["spec"]);
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("managedFields".to_owned()),
            Just("fieldsV1".to_owned()),
            Just("labels".to_owned()),
            Just("spec".to_owned()),
            "[fkv]:[a-c{]",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_or_manifest_is_too_odd_to_be_judged(manifest in json_values(), object in json_values()) {
        let work = Work::default();
        drop(plan(&work, &manifest, Some(&object)));
        drop(deletion(&work, Some(&object)));
        drop(replacement(&manifest, &object));
        let outcome = Outcome { manifest: &manifest, error: None, object: Seen::Present(&object) };
        drop(status(&work, &[outcome], false, now()));
        prop_assert_eq!(Settled::of(&object), Settled::of(&object));
    }

    #[test]
    fn an_object_contains_itself_without_one_of_its_fields(object in json_values(), name in "[a-c]") {
        prop_assert!(contains(&object, &object, None));
        let mut more = object.clone();
        if let Some(map) = more.as_object_mut() {
            // No generated field has such a name.
            map.insert(name, json!("more"));
            prop_assert!(contains(&more, &object, None));
            prop_assert!(!contains(&object, &more, None));
        }
    }
}
