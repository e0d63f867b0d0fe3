use objects::Metadata;
use proptest::prelude::*;
use serde_json::json;

use super::super::fixtures;
use super::*;

fn stripped(mut object: Value) -> Value {
    strip(&mut object);
    object
}

/// Fields of the control plane's copy are removed.
#[test]
fn control_plane_fields_are_removed() {
    let object =
        |metadata: Value| json!({ "apiVersion": "x/v1", "kind": "X", "metadata": metadata });
    let mut full = object(json!({ "name": "x", "namespace": "ns", "labels": { "a": "1" } }));
    let bare = full.clone();
    for field in OWN_METADATA {
        full["metadata"][field] = json!("anything");
    }
    full["status"] = json!({ "ready": true });
    assert_eq!(stripped(full), bare);
}

/// A sentence, a kind, its object before, and the rest of it.
type Case = (&'static str, (&'static str, &'static str), Value, Value);

fn check(cases: impl IntoIterator<Item = Case>) {
    for (sentence, (api_version, kind), mut before, mut after) in cases {
        for object in [&mut before, &mut after] {
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
        }
        assert_eq!(stripped(before), after, "{sentence}");
    }
}

/// A slice that we collected loses the nodes of its cluster, and one of another program, as Karmada, has them on.
#[test]
fn collected_slice_loses_nodes() {
    let ours = "karmada-rs.io_execution-controller";
    let with_node = json!({ "addresses": ["10.1.0.1"], "nodeName": "n1" });
    let without = json!({ "addresses": ["10.1.0.1"] });
    let cases = [
        ("ours", ours, &with_node, &without),
        ("another's", "other", &with_node, &with_node),
        ("an endpoint that is none", ours, &Value::Null, &Value::Null),
    ];
    check(cases.map(|(sentence, owner, before, after)| {
        let [before, after] = [before, after].map(|endpoint| {
            json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": owner } },
                "endpoints": [endpoint] })
        });
        let kind = ("discovery.k8s.io/v1", "EndpointSlice");
        (sentence, kind, before, after)
    }));
}

fn job(mut spec: Value, selector: &Value, labels: &Value) -> Value {
    spec["selector"] = json!({ "matchLabels": selector });
    spec["template"] = json!({ "metadata": { "labels": labels } });
    json!({ "spec": spec })
}

/// A Job loses the fields that its controller generates.
#[test]
fn generated_job_fields_are_removed() {
    let generated = json!({
        "controller-uid": "u", "batch.kubernetes.io/controller-uid": "u",
        "job-name": "j", "batch.kubernetes.io/job-name": "j", "app": "web",
    });
    let ends = json!({ "ttlSecondsAfterFinished": 5 });
    let own_selector = json!({ "manualSelector": true });
    let mut own_selector_ends = own_selector.clone();
    own_selector_ends["ttlSecondsAfterFinished"] = 5.into();
    check([
        (
            "a generated selector",
            ("batch/v1", "Job"),
            job(ends, &json!({ "controller-uid": "u" }), &generated),
            job(json!({}), &json!({}), &json!({ "app": "web" })),
        ),
        (
            "the end of a Job in another group",
            ("batch.volcano.sh/v1alpha1", "Job"),
            json!({ "spec": { "ttlSecondsAfterFinished": 5, "minAvailable": 1 } }),
            json!({ "spec": { "minAvailable": 1 } }),
        ),
        (
            "a selector of the user's",
            ("batch/v1", "Job"),
            job(own_selector_ends, &generated, &generated),
            job(own_selector, &generated, &generated),
        ),
    ]);
}

fn token(data: &Value, annotations: &Value) -> Value {
    json!({
        "type": SERVICE_ACCOUNT_TOKEN,
        "data": data,
        "metadata": { "annotations": annotations },
    })
}

/// Credentials of a service account are those of each cluster.
#[test]
fn service_account_credentials_stay_local() {
    let opaque = json!({ "type": "Opaque", "data": { "k": "v" } });
    check([
        (
            "generated tokens",
            ("v1", "ServiceAccount"),
            json!({ "metadata": { "name": "a" },
                "secrets": [{ "name": "a-token-x" }, { "name": "b" }] }),
            json!({ "metadata": { "name": "a" }, "secrets": [{ "name": "b" }] }),
        ),
        (
            "the token in a Secret",
            ("v1", "Secret"),
            token(
                &json!({ "token": "t" }),
                &json!({ SERVICE_ACCOUNT_UID_ANNOTATION: "u" }),
            ),
            token(&json!(null), &json!({})),
        ),
        (
            "nothing of another Secret",
            ("v1", "Secret"),
            opaque.clone(),
            opaque,
        ),
    ]);
}

/// Fields that an API server assigns are removed.
#[test]
fn assigned_fields_are_removed() {
    let headless = json!({ "spec": { "clusterIP": "None", "clusterIPs": ["None"] } });
    let addressed = json!({ "spec": { "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"] } });
    check([
        (
            "revisions of a Deployment",
            ("apps/v1", "Deployment"),
            json!({ "metadata": { "annotations": {
                "deployment.kubernetes.io/revision": "3", "a": "b" } } }),
            json!({ "metadata": { "annotations": { "a": "b" } } }),
        ),
        (
            "the address of a Service",
            ("v1", "Service"),
            addressed,
            json!({ "spec": {} }),
        ),
        (
            "no address, by choice",
            ("v1", "Service"),
            headless.clone(),
            headless,
        ),
        (
            "the node of a volume",
            ("v1", "PersistentVolumeClaim"),
            json!({ "metadata": { "annotations": { SELECTED_NODE_ANNOTATION: "n" } } }),
            json!({ "metadata": { "annotations": {} } }),
        ),
    ]);
}

/// An object of any shape is stripped and marked without harm.
#[test]
fn any_shape_is_stripped() {
    let work = Key::new("karmada-es-m", "w");
    let marks = Marks {
        template_uid: "",
        template_generation: Some(0),
        work: &work,
        work_id: "id",
        binding: None,
    };
    for odd in [
        json!(null),
        json!([1]),
        json!({ "metadata": [], "spec": 7 }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "labels": [] }, "secrets": [1] }),
        json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "selector": [] } }),
    ] {
        let mut object = stripped(odd.clone());
        mark(&mut object, &marks);
        let id = object
            .pointer("/metadata/labels")
            .map(|labels| &labels[names::WORK_ID]);
        assert_eq!(id, odd.is_object().then_some(&json!("id")), "{odd}");
        let annotations = object.pointer("/metadata/annotations");
        assert_eq!(
            annotations.and_then(|map| map.get(names::TEMPLATE_GENERATION)),
            None
        );
    }
}

/// The template's own resolution of conflicts wins if it is one.
#[test]
fn templates_conflict_resolution_wins() {
    let template = |value: &str| json!({ "metadata": { "annotations": { names::CONFLICT_RESOLUTION: value } } });
    let cases = [
        (json!({}), None, "abort"),
        (json!({}), Some("Abort"), "abort"),
        (json!({}), Some("Overwrite"), "overwrite"),
        (json!({}), Some("Newer"), "abort"),
        (template("abort"), Some("Overwrite"), "abort"),
        (template("overwrite"), None, "overwrite"),
        (template("Overwrite"), None, "abort"),
    ];
    for (template, in_binding, expected) in cases {
        assert_eq!(
            conflict_resolution(&template, in_binding),
            expected,
            "{template}"
        );
    }
}

/// A claim makes no difference and anything else does.
#[test]
fn claim_makes_no_difference() {
    let work = fixtures::work("member1", "web-56d6c779bb");
    let manifest = &work.spec.workload.manifests[0];
    let unclaimed = without_claim(manifest);
    assert!(is_same(manifest, &unclaimed, true));
    let lists = unclaimed["metadata"]["annotations"].to_string();
    assert!(!lists.contains("propagationpolicy"), "{lists}");
    let mut edited = manifest.clone();
    edited["metadata"]["labels"]["app"] = "other".into();
    assert!(!is_same(manifest, &edited, false));
    let mut edited = manifest.clone();
    edited["spec"]["replicas"] = 3.into();
    assert!(!is_same(manifest, &edited, false));
}

/// The name of another policy makes a difference once the template follows it.
#[test]
fn followed_policy_makes_difference() {
    let work = fixtures::work("member1", "web-56d6c779bb");
    let manifest = &work.spec.workload.manifests[0];
    let mut other = manifest.clone();
    other["metadata"]["labels"][names::POLICY_ID] = "other".into();
    assert!(is_same(manifest, &other, true), "a policy made again");
    other["metadata"]["annotations"][names::POLICY_NAME] = "other".into();
    assert!(is_same(manifest, &other, false));
    assert!(!is_same(manifest, &other, true));
}

/// The form of a manifest is a fixed point.
#[test]
fn manifest_form_is_fixed_point() {
    for work in fixtures::works() {
        let key = Key::of(&work);
        for manifest in &work.spec.workload.manifests {
            let marks = Marks {
                template_uid: manifest.annotation(names::TEMPLATE_UID).unwrap(),
                template_generation: manifest
                    .annotation(names::TEMPLATE_GENERATION)
                    .map(|generation| generation.parse().unwrap()),
                work: &key,
                work_id: manifest.label(names::WORK_ID).unwrap(),
                binding: None,
            };
            let mut again = stripped(manifest.clone());
            mark(&mut again, &marks);
            assert_eq!(again, *manifest, "{key}");
        }
    }
}

proptest! {
    #[test]
    fn marking_twice_is_marking_once(
        labels in prop::collection::btree_map("[a-z/.]{1,9}", "[a-z]{0,3}", 0..4),
        generation in prop::option::of(0_i64..3),
    ) {
        let work = Key::new("karmada-es-m", "w");
        let marks = Marks {
            template_uid: "u",
            template_generation: generation,
            work: &work,
            work_id: "id",
            binding: Some(BindingMarks {
                id_label: names::BINDING_ID,
                id: "b",
                reference: vec![(names::BINDING_NAME, "web-deployment")],
                conflict_resolution: "abort",
            }),
        };
        let mut once = json!({ "metadata": { "labels": labels, "annotations": labels } });
        mark(&mut once, &marks);
        let mut twice = stripped(once.clone());
        mark(&mut twice, &marks);
        prop_assert_eq!(once, twice);
    }
}
