//! The engine's plans for the objects that a whole Karmada left in three members, and for people's changes of them.

use std::sync::LazyLock;

use karmada_api::names::WORK_NAME;
use karmada_runtime::program::Program;
use lab_parts::test_api::TestApi;
use objects::write::Action;
use proptest::prelude::*;
use serde_json::{from_str, from_value, json};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::IDENTITY;

/// A Work and the object that Karmada made of it.
struct Recorded {
    work: Work,
    manifest: Value,
    object: Value,
}

/// Returns the objects that a whole Karmada left in three members.
fn recorded() -> Vec<Recorded> {
    let members = [
        include_str!("../../../../propagation/rules/src/execution/fixtures/member1.json"),
        include_str!("../../../../propagation/rules/src/execution/fixtures/member2.json"),
        include_str!("../../../../propagation/rules/src/execution/fixtures/member3.json"),
    ];
    let pairs = members
        .into_iter()
        .flat_map(|text| from_str::<Vec<Value>>(text).unwrap());
    pairs
        .map(|mut pair| {
            let work: Work = from_value(pair["work"].take()).unwrap();
            let manifest = work.spec.workload.manifests[0].clone();
            let mut object = pair["object"].take();
            // The recording leaves this annotation out of the members' objects.
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

/// Returns interpreters without scripts and webhooks.
fn nobody() -> Arc<Interpreters> {
    static NOBODY: LazyLock<(Runtime, Arc<Interpreters>)> = LazyLock::new(|| {
        let runtime = Builder::new_current_thread().build().unwrap();
        let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
        let client = runtime.block_on(async { TestApi::with_kinds([]).client() });
        (
            runtime,
            Arc::new(Interpreters::of_program(&mut program, &client)),
        )
    });
    Arc::clone(&NOBODY.1)
}

type Planned = Result<Vec<Action>, String>;

const UNCHANGED: Planned = Ok(Vec::new());

/// Plans the write of `manifest` as the only one of `work`, after that `last` write.
fn planned(work: &Work, manifest: &Value, object: Option<&Value>, last: LastWrite) -> Planned {
    let mut work = work.clone();
    work.spec.workload.manifests = vec![manifest.clone()];
    let namespace = work.metadata.namespace.clone().unwrap_or_default();
    let set = manifest_set(&work);
    let one = set.refs().next().unwrap();
    let owner = KarmadaWork {
        namespace,
        interpreters: nobody(),
    };
    let instruction = owner.instruction(&one, object);
    apply::plan::<KarmadaWork>(&instruction, manifest, object, last)
}

fn plan(work: &Work, manifest: &Value, object: Option<&Value>) -> Planned {
    planned(work, manifest, object, LastWrite::Unknown)
}

fn is_replacement(plan: &Planned) -> bool {
    matches!(plan.as_deref(), Ok([Action::Replace(_)]))
}

/// Returns the body of a plan that is a replacement.
fn replacement(plan: Planned) -> Option<Value> {
    plan.ok()?.into_iter().find_map(|action| match action {
        Action::Replace(body) => Some(body),
        _ => None,
    })
}

/// Returns the object with the managed fields that a replacement of ours leaves.
fn as_ours(mut object: Value) -> Value {
    let fields = execution::MANAGERS.gathered(&object).unwrap();
    object["metadata"]["managedFields"] = fields;
    object
}

/// The objects that a whole Karmada left in three members need no write, with managed fields or without, as caches keep
/// them.
#[test]
fn karmada_objects_stay_unwritten() {
    let all = recorded();
    assert_eq!(all.len(), 8);
    for Recorded {
        work,
        manifest,
        object,
    } in all
    {
        let name = &work.metadata.name;
        assert_eq!(plan(&work, &manifest, Some(&object)), UNCHANGED, "{name:?}");
        let mut cached = object.clone();
        cached["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(plan(&work, &manifest, Some(&cached)), UNCHANGED, "{name:?}");
    }
}

/// The first edit makes the fields of Karmada's programs ours, of the very object that was read. The second time they
/// are.
#[test]
fn edit_takes_fields_over() {
    let Recorded {
        work,
        mut manifest,
        object,
    } = deployment();
    manifest["spec"]["replicas"] = json!(3);
    let body = |object: &Value| replacement(plan(&work, &manifest, Some(object))).unwrap();
    let replaced = body(&object);
    for field in ["uid", "resourceVersion"] {
        assert_eq!(replaced["metadata"][field], object["metadata"][field]);
    }
    assert_eq!(replaced["spec"], manifest["spec"]);
    let taken = replaced["metadata"]["managedFields"].as_array().unwrap();
    let taken = taken.last().unwrap();
    let before = &object["metadata"]["managedFields"][0];
    assert_eq!(
        (&taken["manager"], &taken["operation"]),
        (&json!("karmada-rs"), &json!("Update"))
    );
    assert_eq!(taken["fieldsV1"], before["fieldsV1"]);
    let ours = as_ours(object);
    assert_eq!(body(&ours)["metadata"].get("managedFields"), None);
}

/// An object that is being deleted is neither written nor created beside.
#[test]
fn absent_created_deleting_awaited() {
    let Recorded {
        work,
        manifest,
        mut object,
    } = deployment();
    let created = plan(&work, &manifest, None);
    let creation = Action::Create(manifest.clone());
    assert_eq!(created, Ok(vec![creation]));
    object["metadata"]["deletionTimestamp"] = json!("2026-11-22T08:00:00Z");
    assert!(plan(&work, &manifest, Some(&object)).is_err());
}

/// An object of helm's is refused with the way out. Overwritten, its fields become ours, but not its metadata.
#[test]
fn foreign_object_needs_overwrite() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    object["metadata"]["labels"] = json!({ "app": "web" });
    object["metadata"]["annotations"] = json!({});
    object["metadata"]["managedFields"][0]["manager"] = json!("helm");
    let reason = plan(&work, &manifest, Some(&object)).unwrap_err();
    assert!(
        reason.contains("work.karmada.io/conflict-resolution=overwrite"),
        "{reason}"
    );
    manifest["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] = json!("overwrite");
    let body = replacement(plan(&work, &manifest, Some(&object))).unwrap();
    let entries = body["metadata"]["managedFields"].as_array().unwrap();
    // A container of helm's would look like a change of its own; its labels may stay.
    let helms = entries.iter().find(|entry| entry["manager"] == "helm");
    let kept: Vec<_> = helms.unwrap()["fieldsV1"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(kept, ["f:metadata"]);
    let taken = &entries.last().unwrap()["fieldsV1"];
    assert_eq!(
        taken.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["f:spec"]
    );
}

/// The object of another Work is refused, unless the user wants it overwritten.
#[test]
fn another_work_needs_overwrite() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    object["metadata"]["annotations"][WORK_NAME] = json!("other");
    let reason = plan(&work, &manifest, Some(&object)).unwrap_err();
    assert!(reason.contains("karmada-es-member1/other"), "{reason}");
    manifest["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] = json!("overwrite");
    assert!(is_replacement(&plan(&work, &manifest, Some(&object))));
}

/// The label `karmada.io/managed` is drift like any other.
#[test]
fn removed_label_is_restored() {
    let Recorded {
        work,
        manifest,
        mut object,
    } = deployment();
    object["metadata"]["labels"] = json!({ "app": "web" });
    let plan = plan(&work, &manifest, Some(&object));
    assert!(is_replacement(&plan), "{plan:?}");
}

/// A field that has left the manifest is ours still, whether we applied it or Karmada did.
#[test]
fn dropped_field_is_an_edit() {
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
        assert!(is_replacement(&plan), "{ours}: {plan:?}");
    }
    let Recorded {
        work,
        mut manifest,
        object,
    } = deployment();
    let object = as_ours(object);
    let container = &mut manifest["spec"]["template"]["spec"]["containers"][0];
    container.as_object_mut().unwrap().remove("envFrom");
    assert!(is_replacement(&plan(&work, &manifest, Some(&object))));
}

/// A field that somebody else owns is drift if the manifest lacks it, and none if it has the same.
#[test]
fn additions_of_others_are_drift() {
    for (image, is_drift) in [("web:1", false), ("proxy:1", true)] {
        let Recorded {
            work,
            mut manifest,
            mut object,
        } = deployment();
        let pod = "/spec/template/spec/containers";
        let container = json!({ "name": image, "image": image });
        push(&mut object, pod, container.clone());
        if !is_drift {
            push(&mut manifest, pod, container);
        }
        let key = format!("k:{{\"name\":\"{image}\"}}");
        let fields = json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": {
            key: { ".": {}, "f:name": {}, "f:image": {} } } } } } });
        let entry = json!({ "manager": "kubectl-edit", "operation": "Update",
            "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields });
        push(&mut object, "/metadata/managedFields", entry);
        for last in [
            LastWrite::OfManifest,
            LastWrite::Undated,
            LastWrite::Unknown,
        ] {
            let plan = planned(&work, &manifest, Some(&object), last);
            assert_eq!(plan != UNCHANGED, is_drift, "{image} {last:?}: {plan:?}");
        }
    }
}

/// A field that nobody owns was added by a webhook at our write; a changed field of the manifest is repaired.
#[test]
fn only_changed_fields_are_repaired() {
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
            let applied = is_replacement(&plan);
            assert_eq!(applied, repaired, "{name}: {plan:?}");
        }
    }
}

/// An atomic map or list that somebody added to differs.
#[test]
fn atomic_parts_are_whole() {
    let Recorded {
        work,
        manifest,
        mut object,
    } = named("web-b97f76f44");
    object["spec"]["selector"]["more"] = json!("x");
    assert!(is_replacement(&plan(&work, &manifest, Some(&object))));
    let Recorded {
        work,
        manifest,
        mut object,
    } = named("shop.reader-56f65c769");
    let rule = object["rules"][0].clone();
    push(&mut object, "/rules", rule);
    assert!(is_replacement(&plan(&work, &manifest, Some(&object))));
}

fn push(object: &mut Value, pointer: &str, element: Value) {
    object
        .pointer_mut(pointer)
        .unwrap()
        .as_array_mut()
        .unwrap()
        .push(element);
}

/// With the label that retains replicas, an autoscaler's are left out, and ours stay as they are in the member.
#[test]
fn retained_replicas_follow_their_owner() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    manifest["metadata"]["labels"]["resourcetemplate.karmada.io/retain-replicas"] = json!("true");
    manifest["spec"]["replicas"] = json!(9);
    object["spec"]["replicas"] = json!(5);
    manifest["metadata"]["labels"]["more"] = json!("x");
    let body = replacement(plan(&work, &manifest, Some(&object))).unwrap();
    assert_eq!(body["spec"]["replicas"], 5);
}

/// A replacement keeps finalizers and annotations of others, and drops a label that left the manifest.
#[test]
fn replacement_keeps_foreign_metadata() {
    let Recorded {
        work,
        mut manifest,
        mut object,
    } = deployment();
    object["metadata"]["finalizers"] = json!(["x/y"]);
    object["metadata"]["annotations"]["theirs"] = json!("kept");
    manifest["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("app");
    manifest["spec"]["replicas"] = json!(3);
    let body = replacement(plan(&work, &manifest, Some(&object))).unwrap();
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
    /// No object or manifest is too odd to be judged.
    #[test]
    fn odd_objects_are_judged(manifest in json_values(), object in json_values()) {
        let work = Work::default();
        for last in [LastWrite::OfManifest, LastWrite::Unknown] {
            drop(planned(&work, &manifest, Some(&object), last));
        }
    }
}
