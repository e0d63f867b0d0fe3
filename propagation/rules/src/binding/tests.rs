use karmada_api::{PropagationPolicy, ResourceBinding};
use objects::write::{Action, Guard};
use objects::{Metadata, group_kind};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::activation::{Activation, Facts, decide};
use super::super::candidate::Candidate;
use super::super::interpret::replicas;
use super::*;

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn web_policy() -> Value {
    fixture(include_str!("../fixtures/propagationpolicy.json"))
}

fn deployment() -> Value {
    fixture(include_str!("../fixtures/template-deployment.json"))
}

/// Returns the binding as Karmada made it, with our record.
fn web_binding() -> Value {
    let mut binding = fixture(include_str!(
        "../fixtures/resourcebinding-web-deployment.json"
    ));
    let policy: PropagationPolicy = serde_json::from_value(web_policy()).unwrap();
    let record = record(&Candidate::from(&policy), &deployment());
    binding["metadata"]["annotations"][names::ACTIVATED] = json!(record.to_text());
    binding
}

fn record(policy: &Candidate<'_>, template: &Value) -> Record {
    let activation = decide(&Facts {
        policy,
        template,
        claimed: None,
        bound: None,
        seen: None,
        policy_changed: None,
    });
    match activation {
        Activation::Follows(record) => record,
        other => panic!("{other:?}"),
    }
}

/// Plans with the policy and the binding as they are read.
#[expect(
    clippy::unwrap_in_result,
    reason = "there is a plan or none, and a fixture that is no fixture fails its test"
)]
fn planned(object: &Value, policy: &Value, existing: Option<&Value>) -> Option<Write> {
    let policy: PropagationPolicy = serde_json::from_value(policy.clone()).unwrap();
    let claim = Claim::by(&Candidate::from(&policy)).unwrap();
    let source = BindingSource {
        template: object,
        policy: &policy.spec,
        claim: &claim,
        scheduling: &Scheduling {
            replicas: replicas(object),
            components: Vec::new(),
            groups: groups(object, &policy.spec),
            priority: None,
        },
        record: &record(&Candidate::from(&policy), object),
        is_followed: true,
    };
    let binding = existing
        .map(|existing| serde_json::from_value::<ResourceBinding>(existing.clone()).unwrap());
    let binding = binding.as_ref().map(BindingRef::from);
    let (group, kind) = group_kind(object);
    let own = Key::new(object.namespace(), object.name());
    let key = new_key(group, kind, &own, |_| true).unwrap();
    let place = binding.map_or(Place::New(key), Place::Existing);
    plan(source, place, || "id".to_owned())
}

fn patched(existing: &Value, write: Option<Write>) -> Value {
    let Some(Action::Json(patch)) = write.map(|write| write.action) else {
        panic!("not patched");
    };
    let mut object = existing.clone();
    json_patch::patch(&mut object, patch.operations()).unwrap();
    object
}

/// The bindings of Karmada lack our record only.
#[test]
fn karmadas_bindings_lack_only_record() {
    let reader = fixture(include_str!("../fixtures/clusterpropagationpolicy.json"));
    let role = fixture(include_str!("../fixtures/template-clusterrole.json"));
    let role_binding = fixture(include_str!("../fixtures/clusterresourcebinding.json"));
    let service = fixture(include_str!("../fixtures/template-service.json"));
    let service_binding = fixture(include_str!("../fixtures/resourcebinding-web-service.json"));
    let paused_binding = fixture(include_str!("../fixtures/paused-resourcebinding.json"));
    let web = fixture(include_str!(
        "../fixtures/resourcebinding-web-deployment.json"
    ));
    let mut paused = web_policy();
    paused["spec"]["suspension"] =
        json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } });
    for (object, policy, binding) in [
        (&role, &reader, &role_binding),
        (&service, &web_policy(), &service_binding),
        (&deployment(), &web_policy(), &web),
        (&deployment(), &paused, &paused_binding),
    ] {
        let write = planned(object, policy, Some(binding)).unwrap();
        assert!(only_records(&write), "{write:?}");
        let mut now = patched(binding, Some(write));
        assert_eq!(planned(object, policy, Some(&now)), None);
        let annotations = now["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove(names::ACTIVATED).unwrap();
        assert_eq!(now, *binding);
    }
}

/// A new binding is as Karmada would make it.
#[test]
fn new_binding_matches_karmadas() {
    let reader = fixture(include_str!("../fixtures/clusterpropagationpolicy.json"));
    let role = fixture(include_str!("../fixtures/template-clusterrole.json"));
    let role_binding = fixture(include_str!("../fixtures/clusterresourcebinding.json"));
    for (object, policy, theirs) in [
        (deployment(), web_policy(), web_binding()),
        (role, reader, role_binding),
    ] {
        let write = planned(&object, &policy, None).unwrap();
        let ours = write.body();
        let mut theirs = theirs;
        let spec = theirs["spec"].as_object_mut().unwrap();
        spec.remove("clusters");
        assert_eq!(ours["spec"], theirs["spec"]);
        assert_eq!(ours["apiVersion"], theirs["apiVersion"]);
        assert_eq!(ours["kind"], theirs["kind"]);
        for field in ["name", "namespace", "ownerReferences"] {
            assert_eq!(ours["metadata"][field], theirs["metadata"][field]);
        }
        assert_eq!(
            ours["metadata"]["finalizers"][0],
            theirs["metadata"]["finalizers"][0]
        );
        for map in ["labels", "annotations"] {
            for (key, value) in ours["metadata"][map].as_object().unwrap() {
                if value != "id" && key != names::ACTIVATED {
                    assert_eq!(Some(value), theirs["metadata"][map].get(key), "{key}");
                }
            }
        }
        // We would keep the binding that we create.
        assert_eq!(planned(&object, &policy, Some(ours)), None);
    }
}

/// A placement is replaced whole and keeps fields of later versions.
#[test]
fn placement_is_replaced_whole() {
    let mut policy = web_policy();
    policy["spec"]["placement"] = json!({ "clusterAffinity": { "newer": 1 } });
    let now = patched(
        &web_binding(),
        planned(&deployment(), &policy, Some(&web_binding())),
    );
    assert_eq!(now["spec"]["placement"], policy["spec"]["placement"]);
    assert_eq!(now["spec"]["clusters"], web_binding()["spec"]["clusters"]);
    assert_eq!(now["spec"]["resource"], web_binding()["spec"]["resource"]);
}

/// Nulls and empty lists of a placement are as absent.
#[test]
fn empty_placement_fields_are_absent() {
    let mut policy = web_policy();
    policy["spec"]["placement"]["clusterTolerations"] = json!([]);
    policy["spec"]["placement"]["spreadConstraints"] = json!(null);
    assert_eq!(planned(&deployment(), &policy, Some(&web_binding())), None);
}

/// A new version of the template alone writes nothing.
#[test]
fn template_version_writes_nothing() {
    let mut object = deployment();
    object["metadata"]["resourceVersion"] = json!("999");
    assert_eq!(planned(&object, &web_policy(), Some(&web_binding())), None);
    object["spec"]["replicas"] = json!(6);
    let now = patched(
        &web_binding(),
        planned(&object, &web_policy(), Some(&web_binding())),
    );
    assert_eq!(now["spec"]["replicas"], 6);
    assert_eq!(now["spec"]["resource"]["resourceVersion"], "999");
    object["spec"]["replicas"] = json!(0);
    let now = patched(
        &web_binding(),
        planned(&object, &web_policy(), Some(&web_binding())),
    );
    assert_eq!(now["spec"].get("replicas"), None);
}

/// Cases P28 and P39: a policy that is not followed moves claim and pause only.
#[test]
fn unfollowed_policy_moves_claim() {
    let mut policy = web_policy();
    policy["metadata"]["name"] = json!("other");
    policy["spec"]["placement"] = json!({});
    policy["spec"]["propagateDeps"] = json!(false);
    policy["spec"]["suspension"] = json!({ "dispatching": true });
    let typed: PropagationPolicy = serde_json::from_value(policy).unwrap();
    let claim = Claim::by(&Candidate::from(&typed)).unwrap();
    let record = record(&Candidate::from(&typed), &deployment());
    let source = BindingSource {
        template: &deployment(),
        policy: &typed.spec,
        claim: &claim,
        scheduling: &Scheduling::default(),
        record: &record,
        is_followed: false,
    };
    let before = web_binding();
    let binding: ResourceBinding = serde_json::from_value(before.clone()).unwrap();
    let place = Place::Existing(BindingRef::from(&binding));
    let write = plan(source, place, || unreachable!()).unwrap();
    assert!(!only_records(&write));
    let mut now = patched(&before, Some(write));
    assert_eq!(now.annotation(names::POLICY_NAME), Some("other"));
    assert_eq!(now.annotation(names::ACTIVATED), Some(&*record.to_text()));
    let suspension = now["spec"].as_object_mut().unwrap().remove("suspension");
    assert_eq!(suspension, Some(json!({ "dispatching": true })));
    assert_eq!(now["spec"], before["spec"]);
}

/// An edit without effect on the binding is recorded.
#[test]
fn ineffective_edit_is_recorded() {
    let mut object = deployment();
    object["metadata"]["labels"]["refresh"] = json!("1");
    let before = web_binding();
    let now = patched(&before, planned(&object, &web_policy(), Some(&before)));
    assert_eq!(now["spec"], before["spec"]);
    assert_ne!(
        now["metadata"]["annotations"],
        before["metadata"]["annotations"]
    );
    assert_eq!(planned(&object, &web_policy(), Some(&now)), None);
}

/// A pause comes and goes beside the pause of scheduling.
#[test]
fn pause_spares_scheduling_suspension() {
    let mut policy = web_policy();
    policy["spec"]["suspension"] = json!({ "dispatching": true });
    let mut binding = web_binding();
    let now = patched(&binding, planned(&deployment(), &policy, Some(&binding)));
    assert_eq!(now["spec"]["suspension"], json!({ "dispatching": true }));

    binding["spec"]["suspension"] = json!({ "scheduling": true, "newer": 1 });
    let paused = patched(&binding, planned(&deployment(), &policy, Some(&binding)));
    assert_eq!(
        paused["spec"]["suspension"],
        json!({ "scheduling": true, "newer": 1, "dispatching": true })
    );
    for resumed in [json!(null), json!({})] {
        policy["spec"]["suspension"] = resumed;
        let now = patched(&paused, planned(&deployment(), &policy, Some(&paused)));
        assert_eq!(now["spec"]["suspension"], binding["spec"]["suspension"]);
    }
    policy["spec"]["suspension"] = json!({ "dispatching": false });
    let now = patched(&paused, planned(&deployment(), &policy, Some(&paused)));
    assert_eq!(now["spec"]["suspension"]["dispatching"], false);
}

/// A binding of dependencies becomes one of a policy too.
#[test]
fn attached_binding_gets_policy() {
    let mut policy = web_policy();
    policy["spec"]["resourceSelectors"] = json!([]);
    let settings = fixture(include_str!("../fixtures/template-configmap.json"));
    let attached = fixture(include_str!(
        "../fixtures/resourcebinding-web-settings-configmap.json"
    ));
    let now = patched(&attached, planned(&settings, &policy, Some(&attached)));
    for field in [
        "requiredBy",
        "conflictResolution",
        "preserveResourcesOnDeletion",
    ] {
        assert_eq!(now["spec"][field], attached["spec"][field]);
    }
    assert_eq!(now["spec"]["placement"], policy["spec"]["placement"]);
    let depended = "resourcebinding.karmada.io/depended-by-8546649456";
    let labels = &now["metadata"]["labels"];
    assert_eq!(labels[depended], attached["metadata"]["labels"][depended]);
    assert_eq!(
        labels[names::POLICY_ID],
        policy["metadata"]["labels"][names::POLICY_ID]
    );
    assert_eq!(planned(&settings, &policy, Some(&now)), None);
}

/// A false that a policy states is in the binding and one that others wrote stays.
#[test]
fn stated_false_is_kept() {
    const PRESERVE: &str = "preserveResourcesOnDeletion";
    let mut policy = web_policy();
    policy["spec"][PRESERVE] = json!(false);
    let now = patched(
        &web_binding(),
        planned(&deployment(), &policy, Some(&web_binding())),
    );
    assert_eq!(now["spec"][PRESERVE], false);
    policy["spec"][PRESERVE] = Value::Null;
    let again = planned(&deployment(), &policy, Some(&now));
    assert_eq!(again, None);
}

/// A binding of a former template or that is leaving must go first.
#[test]
fn former_binding_goes_first() {
    let mut former = web_binding();
    former["metadata"]["ownerReferences"][0]["uid"] = json!("former");
    let mut leaving = web_binding();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut policy = web_policy();
    policy["spec"]["placement"] = json!({});
    for binding in [former, leaving] {
        assert_eq!(planned(&deployment(), &policy, Some(&binding)), None);
    }
}

/// Case P111: a policy that asks for another version moves the owner reference with it, also if the rest waits: the garbage
/// collector would not find the template in a version that is not served any more.
#[test]
fn owner_follows_version() {
    let mut former = web_binding();
    let owner = &mut former["metadata"]["ownerReferences"];
    owner[0]["apiVersion"] = json!("apps/v1beta1");
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "o" });
    owner.as_array_mut().unwrap().push(other.clone());
    let write = planned(&deployment(), &web_policy(), Some(&former)).unwrap();
    assert!(!changes_spec(&write));
    let now = patched(&former, Some(write));
    let owners = &now["metadata"]["ownerReferences"];
    assert_eq!(owners[0], web_binding()["metadata"]["ownerReferences"][0]);
    assert_eq!(owners[1], other);
    let again = planned(&deployment(), &web_policy(), Some(&now));
    assert_eq!(again, None);
}

/// A patch fails if the binding has changed.
#[test]
fn stale_patch_fails() {
    let mut bare = web_binding();
    let metadata = bare["metadata"].as_object_mut().unwrap();
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        metadata.remove(field);
    }
    let write = planned(&deployment(), &web_policy(), Some(&bare)).unwrap();
    assert_eq!(write.guard, Guard::Version);
    let now = patched(&bare, Some(write));
    assert_eq!(
        now["metadata"]["finalizers"],
        json!([names::BINDING_FINALIZER])
    );
    assert_eq!(planned(&deployment(), &web_policy(), Some(&now)), None);
}

/// A binding whose labels another writer replaced, and Works that name a binding and its ID.
fn wiped(labels: Value) -> ResourceBinding {
    let mut binding = web_binding();
    binding["metadata"]["labels"] = labels;
    serde_json::from_value(binding).unwrap()
}

fn work_of(binding: &str, id: &str) -> Work {
    let work = json!({
        "metadata": {
            "namespace": "karmada-es-member1",
            "labels": { names::BINDING_ID: id },
            "annotations": { names::BINDING_NAMESPACE: "shop", names::BINDING_NAME: binding },
        },
        "spec": {},
    });
    serde_json::from_value(work).unwrap()
}

/// A binding without id gets that of its works before a new one.
#[test]
fn lost_id_comes_from_works() {
    let (own, other) = (work_of("web-deployment", "own"), work_of("other", "other"));
    let cases = [
        (json!({ names::BINDING_ID: "is" }), vec![&own], None),
        (json!({ "by": "another" }), vec![&other, &own], Some("own")),
        (json!({ "by": "another" }), vec![&other], Some("new")),
        (json!(null), vec![], Some("new")),
    ];
    for (labels, works, expected) in cases {
        let binding = wiped(labels.clone());
        let works: Vec<_> = works.into_iter().cloned().collect();
        let plan = identify(BindingRef::from(&binding), &works, || "new".to_owned());
        let Some(expected) = expected else {
            assert_eq!(plan, None);
            continue;
        };
        let now = patched(&serde_json::to_value(&binding).unwrap(), plan);
        assert_eq!(now["metadata"]["labels"][names::BINDING_ID], expected);
        assert_eq!(now["metadata"]["labels"].get("by"), labels.get("by"));
        let now: ResourceBinding = serde_json::from_value(now).unwrap();
        let again = identify(BindingRef::from(&now), &works, || "new".to_owned());
        assert_eq!(again, None);
    }
}

proptest! {
    /// One patch mends our members, whatever another writer made of them, and them only.
    #[test]
    fn one_patch_settles_a_binding(
        fields in prop::collection::btree_map(
            select(vec!["placement", "replicas", "replicaRequirements", "propagateDeps",
                "schedulerName", "failover", "conflictResolution", "preserveResourcesOnDeletion",
                "suspension"]),
            0_usize..3, 0..9),
        of_policy in prop::collection::btree_map(
            select(vec!["suspension", "failover", "schedulerName", "preserveResourcesOnDeletion",
                "conflictResolution", "propagateDeps"]),
            0_usize..3, 0..6),
    ) {
        let (mut binding, mut policy) = (web_binding(), web_policy());
        for (object, fields) in [(&mut binding, fields), (&mut policy, of_policy)] {
            for (field, n) in fields {
                object["spec"][field] = match field {
                    "replicas" => json!(n),
                    "propagateDeps" | "preserveResourcesOnDeletion" => json!(n == 1),
                    "schedulerName" | "conflictResolution" => json!(["", "Overwrite", "Abort"][n]),
                    "suspension" => [
                        json!({}),
                        json!({ "dispatching": true }),
                        json!({ "dispatchingOnClusters": { "clusterNames": ["m"] } }),
                    ][n].clone(),
                    "replicaRequirements" => json!({ "resourceRequest": { "cpu": n.to_string() } }),
                    _ => json!({ "clusterAffinity": { "clusterNames": [n.to_string()] } }),
                };
            }
        }
        let plan = planned(&deployment(), &policy, Some(&binding));
        if plan.is_some() {
            let now = patched(&binding, plan);
            prop_assert_eq!(planned(&deployment(), &policy, Some(&now)), None);
            prop_assert_eq!(&now["spec"]["clusters"], &binding["spec"]["clusters"]);
            prop_assert_eq!(&now["status"], &binding["status"]);
        }
    }
}
