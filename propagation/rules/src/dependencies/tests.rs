use karmada_api::{ResourceBinding, ResourceBindingSpec, TargetCluster};
use objects::Key;
use objects::write::Action;
use proptest::prelude::*;
use serde_json::{from_value, json};

use super::super::activation::Record;
use super::super::binding::{self, BindingSource, Place};
use super::super::claim::Claim;
use super::super::fixtures;
use super::*;

/// Returns the references as `Kind name`.
fn found(template: &Value) -> Vec<String> {
    let references = references(template).into_iter();
    references
        .map(|found| {
            assert_eq!(
                (&*found.api_version, &*found.namespace),
                ("v1", "shop"),
                "{found:?}"
            );
            format!("{} {}", found.kind, found.name)
        })
        .collect()
}

fn template(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "namespace": "shop", "name": "web" }, "spec": spec,
    })
}

/// The references of a container are found wherever they are.
#[test]
fn container_references_are_found() {
    let container = |env: Value| json!([{ "name": "a", "env": [env] }]);
    let secret_key =
        |name: &str| json!({ "name": "X", "valueFrom": { "secretKeyRef": { "name": name } } });
    for (pod, expected) in [
        (
            json!({ "containers": container(secret_key("a")), "initContainers": container(secret_key("b")),
                "ephemeralContainers": container(secret_key("c")) }),
            vec!["Secret a", "Secret b", "Secret c"],
        ),
        (
            json!({ "containers": [{ "env": [
                { "valueFrom": { "configMapKeyRef": { "name": "a", "optional": true } } }, { "value": "plain" },
            ], "envFrom": [
                { "configMapRef": { "name": "b" } }, { "secretRef": { "name": "c" } }, { "prefix": "x" },
            ] }] }),
            vec!["ConfigMap a", "ConfigMap b", "Secret c"],
        ),
    ] {
        assert_eq!(found(&template("v1", "Pod", &pod)), expected, "{pod}");
    }
}

/// The references of a pod and its volumes are found.
#[test]
fn pod_references_are_found() {
    for (volume, expected) in [
        (json!({ "configMap": { "name": "a" } }), vec!["ConfigMap a"]),
        (json!({ "secret": { "secretName": "a" } }), vec!["Secret a"]),
        (
            json!({ "projected": { "sources": [
                { "configMap": { "name": "a" } }, { "secret": { "name": "b" } },
                { "serviceAccountToken": { "path": "t" } },
            ] } }),
            vec!["ConfigMap a", "Secret b"],
        ),
        (
            json!({ "persistentVolumeClaim": { "claimName": "a" } }),
            vec!["PersistentVolumeClaim a"],
        ),
        (
            json!({ "azureFile": { "secretName": "a" } }),
            vec!["Secret a"],
        ),
        (
            json!({ "csi": { "nodePublishSecretRef": { "name": "a" } } }),
            vec!["Secret a"],
        ),
        (
            json!({ "rbd": { "secretRef": { "name": "a" } } }),
            vec!["Secret a"],
        ),
        (json!({ "emptyDir": {} }), vec![]),
    ] {
        let pod = json!({ "volumes": [volume] });
        assert_eq!(found(&template("v1", "Pod", &pod)), expected, "{pod}");
    }
    for (pod, expected) in [
        (
            json!({ "imagePullSecrets": [{ "name": "a" }, { "name": "a" }, {}] }),
            vec!["Secret a"],
        ),
        (
            json!({ "serviceAccountName": "a" }),
            vec!["ServiceAccount a"],
        ),
        (json!({ "serviceAccountName": "default" }), vec![]),
        (json!({ "serviceAccountName": "" }), vec![]),
    ] {
        assert_eq!(found(&template("v1", "Pod", &pod)), expected, "{pod}");
    }
}

/// The pods of every workload of Karmada's list are looked at.
#[test]
fn every_workload_is_searched() {
    let pod = json!({ "imagePullSecrets": [{ "name": "a" }] });
    let of = json!({ "template": { "spec": pod } });
    let cron = json!({ "jobTemplate": { "spec": of } });
    for (api_version, kind, spec, expected) in [
        ("apps/v1", "Deployment", &of, 1),
        ("apps/v1", "ReplicaSet", &of, 0),
        ("apps/v1", "StatefulSet", &of, 1),
        ("apps/v1", "DaemonSet", &of, 1),
        ("batch/v1", "Job", &of, 1),
        ("batch/v1", "CronJob", &cron, 1),
        ("v1", "Pod", &pod, 1),
        ("v1", "Service", &of, 0),
        ("example.com/v1", "Deployment", &of, 0),
    ] {
        let found = found(&template(api_version, kind, spec));
        assert_eq!(found.len(), expected, "{kind}");
    }
    let ingress =
        json!({ "tls": [{ "secretName": "a" }, { "hosts": ["h"] }, { "secretName": "b" }] });
    assert_eq!(
        found(&template("networking.k8s.io/v1", "Ingress", &ingress)),
        ["Secret a", "Secret b"]
    );
}

/// Claims that a stateful set makes are no dependencies.
#[test]
fn stateful_set_claims_are_skipped() {
    let spec = json!({
        "volumeClaimTemplates": [{ "metadata": { "name": "data" } }, {}],
        "template": { "spec": { "volumes": [
            { "persistentVolumeClaim": { "claimName": "data" } },
            { "persistentVolumeClaim": { "claimName": "shared" } }, { "secret": { "secretName": "data" } },
        ] } },
    });
    assert_eq!(
        found(&template("apps/v1", "StatefulSet", &spec)),
        ["PersistentVolumeClaim shared", "Secret data"]
    );
}

/// A template of any shape is read without harm.
#[test]
fn any_shape_is_read() {
    for spec in [
        json!(null),
        json!([]),
        json!({ "template": 1 }),
        json!({ "template": { "spec": [] } }),
        json!({ "template": { "spec": { "containers": {}, "volumes": [1, null, { "secret": "x" }],
            "imagePullSecrets": [{ "name": 5 }], "serviceAccountName": {} } } }),
    ] {
        let found = found(&template("apps/v1", "Deployment", &spec));
        assert_eq!(found, [""; 0], "{spec}");
    }
    assert_eq!(references(&json!(null)), BTreeSet::new());
}

fn patched(object: &ResourceBinding, write: Option<Write>) -> ResourceBinding {
    let Some(Action::Json(patch)) = write.map(|write| write.action) else {
        panic!("not patched");
    };
    let mut object = serde_json::to_value(object).unwrap();
    json_patch::patch(&mut object, patch.operations()).unwrap();
    from_value(object).unwrap()
}

/// Returns the recorded Deployment's binding, and the `ConfigMap` with its attached binding.
fn recorded() -> (ResourceBinding, Value, ResourceBinding) {
    let mut bound = fixtures::bound();
    let (map, attached) = bound.remove(2);
    (bound.remove(0).1, map, attached)
}

fn need(referrer: &ResourceBinding) -> Need<'_> {
    let referrer = BindingRef::from(referrer);
    Need {
        referrer,
        clusters: needed_clusters(referrer, None, None),
    }
}

fn attached(
    map: &Value,
    referrer: &ResourceBinding,
    existing: Option<&ResourceBinding>,
    referrers: &Referrers<'_>,
) -> Option<Write> {
    attached_beside(map, referrer, existing, referrers, "")
}

/// As [`attached`], where the API does not serve the version `dropped`.
fn attached_beside(
    map: &Value,
    referrer: &ResourceBinding,
    existing: Option<&ResourceBinding>,
    referrers: &Referrers<'_>,
    dropped: &str,
) -> Option<Write> {
    let name = names::binding(objects::kind(map), map.name());
    let key = Key::new(map.namespace(), name);
    let place = existing.map_or(Place::New(key), |existing| Place::Existing(existing.into()));
    attach(
        map,
        &need(referrer),
        place,
        referrers,
        |kind| kind.version != dropped,
        || "id".to_owned(),
    )
}

/// A binding that Karmada attached is left as it is.
#[test]
fn karmadas_attached_bindings_stay() {
    let (web, map, binding) = recorded();
    let referrers = Referrers::from([(Key::new("shop", "web-deployment"), &web.spec)]);
    assert_eq!(attached(&map, &web, Some(&binding), &referrers), None);
    for (template, binding) in fixtures::bound() {
        let binding = BindingRef::from(&binding);
        assert_eq!(list(binding, &references(&template)), None);
    }
    let mut none = web;
    let annotations = none.metadata.annotations.get_or_insert_default();
    annotations.insert(names::DEPENDENCIES.into(), "null".into());
    assert_eq!(list(BindingRef::from(&none), &BTreeSet::new()), None);
}

/// Case P111: an attached object is kept in the newest version in which it is asked for, so that an older one may go; who asks
/// for an older one does not turn it back while the newer is served, and a policy that has it decides for itself.
#[test]
fn newest_version_is_attached() {
    let (web, mut map, binding) = recorded();
    let referrers = Referrers::from([(Key::new("shop", "web-deployment"), &web.spec)]);
    let older = |claimed: bool| {
        let mut binding = binding.clone();
        binding.spec.resource.api_version = "v1beta1".into();
        for owner in binding.metadata.owner_references.iter_mut().flatten() {
            owner.api_version = "v1beta1".into();
        }
        if claimed {
            let labels = binding.metadata.labels.get_or_insert_default();
            labels.insert(names::POLICY_ID.into(), "id".into());
            let annotations = binding.metadata.annotations.get_or_insert_default();
            annotations.insert(names::POLICY_NAMESPACE.into(), "shop".into());
            annotations.insert(names::POLICY_NAME.into(), "pp".into());
        }
        binding
    };
    let plan = attached(&map, &web, Some(&older(false)), &referrers);
    let [now, wanted] = [&patched(&older(false), plan), &binding].map(|binding| json!(binding));
    assert_eq!(now, wanted);
    for (version, binding) in [("v1alpha1", older(false)), ("v1", older(true))] {
        map["apiVersion"] = version.into();
        let plan = attached(&map, &web, Some(&binding), &referrers);
        assert_eq!(plan, None, "{version}");
    }
    // One that is not served any more is left for any that is.
    map["apiVersion"] = "v1alpha1".into();
    for (binding, moves) in [(older(false), true), (older(true), false)] {
        let plan = attached_beside(&map, &web, Some(&binding), &referrers, "v1beta1");
        if moves {
            let now = patched(&binding, plan);
            assert_eq!(now.spec.resource.api_version, "v1alpha1");
        } else {
            assert_eq!(plan, None);
        }
    }
}

/// Case P115: a service import lists its service and the slices of that as Karmada does, in the version that newer APIs
/// prefer, too.
#[test]
fn service_import_lists_slices() {
    let [import, newer] = ["v1alpha1", "v1beta1"].map(|version| {
        let api_version = format!("multicluster.x-k8s.io/{version}");
        template(&api_version, "ServiceImport", &json!({}))
    });
    let wanted = references(&import);
    assert_eq!(references(&newer), wanted);
    // As the annotation of Karmada has them, whose lists are in this order of fields.
    let slices = concat!(
        r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","namespace":"shop","#,
        r#""labelSelector":{"matchLabels":{"kubernetes.io/service-name":"derived-web"}}}"#
    );
    let service = r#"{"apiVersion":"v1","kind":"Service","namespace":"shop","name":"derived-web"}"#;
    let text = format!("[{slices},{service}]");
    assert_eq!(serde_json::to_string(&wanted).unwrap(), text);
    let (mut web, ..) = recorded();
    let annotations = web.metadata.annotations.get_or_insert_default();
    annotations.insert(names::DEPENDENCIES.into(), text);
    assert_eq!(listed(&web.metadata), wanted);
}

fn slice(service: &str) -> Value {
    json!({ "metadata": {
        "namespace": "shop", "name": "a", "labels": { "kubernetes.io/service-name": service },
    } })
}

/// A binding stays selected until the labels of its template are known to differ.
#[test]
fn unknown_labels_keep_selection() {
    const SLICES: (&str, &str) = ("discovery.k8s.io/v1", "EndpointSlice");
    const SERVICES: (&str, &str) = ("v1", "Service");
    let import = template(
        "multicluster.x-k8s.io/v1alpha1",
        "ServiceImport",
        &json!({}),
    );
    let wanted = references(&import);
    let (derived, other) = (slice("derived-web"), slice("web"));
    let (_, _, binding) = recorded();
    for ((api_version, kind), namespace, name, template, expected) in [
        (SLICES, "shop", "a", Some(&derived), true),
        (SLICES, "shop", "a", None, true),
        (SLICES, "shop", "a", Some(&other), false),
        (SLICES, "else", "a", Some(&derived), false),
        (SERVICES, "shop", "derived-web", Some(&other), true),
        (SERVICES, "shop", "web", None, false),
        (("v1", "Secret"), "shop", "derived-web", None, false),
        // That of another group is another object.
        (
            ("serving.knative.dev/v1", "Service"),
            "shop",
            "derived-web",
            None,
            false,
        ),
    ] {
        let mut binding = binding.clone();
        binding.spec.resource.api_version = api_version.to_owned();
        binding.spec.resource.kind = kind.to_owned();
        binding.spec.resource.namespace = Some(namespace.to_owned());
        binding.spec.resource.name = name.to_owned();
        let mut wanted = wanted.iter();
        let binding = BindingRef::from(&binding);
        let has = wanted.any(|dependency| dependency.has(binding, template));
        assert_eq!(
            has, expected,
            "{api_version} {kind} {namespace}/{name} {template:?}"
        );
    }
}

/// Attached bindings and lists are as Karmada would write them.
#[test]
fn attached_binding_matches_karmadas() {
    let (mut web, map, theirs) = recorded();
    let write = attached(&map, &web, None, &Referrers::new()).unwrap();
    let mut ours = write.body().clone();
    let theirs = serde_json::to_value(&theirs).unwrap();
    assert_eq!(ours["spec"], theirs["spec"]);
    ours["metadata"]["labels"][names::BINDING_ID] =
        theirs["metadata"]["labels"][names::BINDING_ID].clone();
    for field in [
        "name",
        "namespace",
        "labels",
        "finalizers",
        "ownerReferences",
    ] {
        assert_eq!(
            ours["metadata"][field], theirs["metadata"][field],
            "{field}"
        );
    }
    assert_eq!(ours["metadata"].get("annotations"), None);

    let before = web.metadata.annotations.clone();
    let annotations = web.metadata.annotations.get_or_insert_default();
    annotations.remove(names::DEPENDENCIES);
    let finalizers = web.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|finalizer| finalizer != names::DEPENDENCIES_FINALIZER);
    let wanted = references(&fixtures::deployment().0);
    let listed = patched(&web, list(BindingRef::from(&web), &wanted));
    assert_eq!(listed.metadata.annotations, before);
    assert_eq!(
        listed.metadata.finalizers.as_deref(),
        Some(&[names::BINDING_FINALIZER, names::DEPENDENCIES_FINALIZER].map(str::to_owned)[..])
    );
    let released = patched(&listed, release(BindingRef::from(&listed)));
    assert_eq!(released.metadata.finalizers, web.metadata.finalizers);
    assert_eq!(released.metadata.annotations, web.metadata.annotations);
    assert_eq!(release(BindingRef::from(&released)), None);
}

fn on(names: &[&str]) -> Vec<TargetCluster> {
    let targets = names.iter();
    let targets = targets.map(|name| from_value(json!({ "name": name })).unwrap());
    targets.collect()
}

/// A copy is needed where the referrer runs or may still run.
#[test]
fn copies_follow_referrers_clusters() {
    let (mut web, _, mut attached) = recorded();
    web.spec.clusters = Some(on(&["m2"]));
    attached.spec.required_by = from_value(json!([
        { "namespace": "shop", "name": "other", "clusters": on(&["m9"]) },
        { "namespace": "shop", "name": "web-deployment", "clusters": on(&["m1", "m2"]) },
    ]))
    .unwrap();
    let task =
        |mode: &str| from_value(json!([{ "fromCluster": "m3", "purgeMode": mode }])).unwrap();
    for (mode, suspension, expected) in [
        ("Directly", json!(null), &["m2"][..]),
        ("Gracefully", json!(null), &["m2", "m3"]),
        ("Directly", json!({ "dispatching": true }), &["m2", "m1"]),
        (
            "Directly",
            json!({ "dispatchingOnClusters": { "clusterNames": ["m2"] } }),
            &["m2", "m1"],
        ),
        ("Directly", json!({ "dispatching": false }), &["m2"]),
        ("Directly", json!({ "scheduling": true }), &["m2"]),
    ] {
        web.spec.graceful_eviction_tasks = task(mode);
        web.spec.suspension = from_value(suspension.clone()).unwrap();
        let attached = Some(BindingRef::from(&attached));
        let needed = needed_clusters(BindingRef::from(&web), attached, None);
        assert_eq!(needed, on(expected), "{mode} {suspension}");
    }
    web.spec.suspension = None;
    let of_policy = from_value(json!({ "dispatching": true })).unwrap();
    assert!(is_paused(BindingRef::from(&web), Some(&of_policy)));
}

/// The bindings that require another decide about foreign and about left objects.
#[test]
fn referrers_decide_conflicts() {
    let (web, map, binding) = recorded();
    let mut other = web.clone();
    other.metadata.name = Some("api-deployment".into());
    other.spec.conflict_resolution = Some("Overwrite".into());
    let web_key = Key::new("shop", "web-deployment");
    let other_key = Key::new("shop", "api-deployment");
    let of_web = Referrers::from([(web_key.clone(), &web.spec)]);
    let both = Referrers::from([
        (web_key.clone(), &web.spec),
        (other_key.clone(), &other.spec),
    ]);
    let shared = patched(&binding, attached(&map, &other, Some(&binding), &of_web));
    assert_eq!(
        shared.spec.conflict_resolution.as_deref(),
        Some("Overwrite")
    );
    assert_eq!(shared.spec.preserve_resources_on_deletion, Some(false));
    assert_eq!(
        conflict(BindingRef::from(&shared), &both).as_deref(),
        Some(
            "Dependency policy conflict detected: ConflictResolution conflicted (Overwrite vs Abort)"
        )
    );
    assert_eq!(conflict(BindingRef::from(&shared), &of_web), None);

    // One goes, and the other alone decides; the last one leaves nothing but the object's own binding.
    let alone = patched(
        &shared,
        detach(&other_key, BindingRef::from(&shared), &both),
    );
    assert_eq!(alone.spec, binding.spec);
    assert_eq!(alone.metadata.labels, binding.metadata.labels);
    let none = patched(&alone, detach(&web_key, BindingRef::from(&alone), &of_web));
    assert_eq!(none.spec.required_by, None);
    assert!(!is_attached(BindingRef::from(&none), &web_key));
    assert_eq!(
        detach(&web_key, BindingRef::from(&none), &Referrers::new()),
        None
    );
    let policy_less = patched(&none, attached(&map, &web, Some(&none), &Referrers::new()));
    assert_eq!(policy_less.spec, binding.spec);
}

/// A former binding must go first.
#[test]
fn former_binding_goes_first() {
    let (mut web, mut map, mut binding) = recorded();
    web.spec.clusters = None;
    let deleting = json!("2026-11-22T00:00:00Z");
    binding.metadata.deletion_timestamp = from_value(deleting.clone()).unwrap();
    let none = Referrers::new();
    assert_eq!(attached(&map, &web, Some(&binding), &none), None);
    let key = Key::new("shop", "web-deployment");
    assert_eq!(detach(&key, BindingRef::from(&binding), &none), None);
    binding.metadata.deletion_timestamp = None;
    map["metadata"]["uid"] = json!("made-anew");
    assert_eq!(attached(&map, &web, Some(&binding), &none), None);
    map["metadata"]["deletionTimestamp"] = deleting;
    assert_eq!(attached(&map, &web, None, &none), None);
}

/// Returns the binding as the map's own policy would have it.
fn with_policy(map: &Value, binding: &ResourceBinding) -> Option<Write> {
    let policy = from_value(json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }],
        "placement": { "clusterAffinity": { "clusterNames": ["m9"] } },
        "conflictResolution": "Overwrite",
    }))
    .unwrap();
    let claim = Claim {
        id: "own".into(),
        namespace: Some("shop".into()),
        name: "own".into(),
    };
    let source = BindingSource {
        template: map,
        policy: &policy,
        claim: &claim,
        scheduling: &binding::Scheduling::default(),
        record: &Record::default(),
        is_followed: true,
    };
    binding::plan(source, Place::Existing(BindingRef::from(binding)), || {
        "id".into()
    })
}

/// Neither its own policy nor the bindings that require it erase the part of the other.
#[test]
fn policy_and_referrers_coexist() {
    let (web, map, binding) = recorded();
    let key = Key::new("shop", "web-deployment");
    let referrers = Referrers::from([(key.clone(), &web.spec)]);
    let both = patched(&binding, with_policy(&map, &binding));
    assert_eq!(both.spec.required_by, binding.spec.required_by);
    assert!(is_attached(BindingRef::from(&both), &key));
    assert_eq!(both.spec.conflict_resolution.as_deref(), Some("Overwrite"));
    assert_eq!(attached(&map, &web, Some(&both), &referrers), None);
    assert_eq!(with_policy(&map, &both), None);

    let own = patched(&both, detach(&key, BindingRef::from(&both), &referrers));
    assert_eq!(own.spec.required_by, None);
    assert_eq!(own.spec.placement, both.spec.placement);
    assert_eq!(own.spec.conflict_resolution, both.spec.conflict_resolution);
    let again = patched(&own, attached(&map, &web, Some(&own), &Referrers::new()));
    assert_eq!(again.spec, both.spec);
    assert_eq!(with_policy(&map, &own), None);
}

proptest! {
    /// Whoever comes and goes the binding is required by those that are there.
    #[test]
    fn required_by_matches_referrers(
        steps in prop::collection::vec((0..4_usize, prop::collection::btree_set(0..3_u8, 0..3)), 1..12)
    ) {
        let (web, map, mut binding) = recorded();
        let mut present = BTreeMap::<Key, ResourceBindingSpec>::new();
        present.insert(Key::new("shop", "web-deployment"), web.spec.clone());
        for (number, clusters) in steps {
            let mut referrer = web.clone();
            referrer.metadata.name = Some(format!("r{number}"));
            let on = clusters.iter().map(|n| TargetCluster { name: format!("m{n}"), ..TargetCluster::default() });
            referrer.spec.clusters = Some(on.collect());
            let key = Key::new("shop", format!("r{number}"));
            let referrers = present.iter().map(|(key, spec)| (key.clone(), spec)).collect();
            let plan = if clusters.is_empty() {
                detach(&key, BindingRef::from(&binding), &referrers)
            } else {
                attached(&map, &referrer, Some(&binding), &referrers)
            };
            if plan.is_some() {
                binding = patched(&binding, plan);
            }
            if clusters.is_empty() {
                present.remove(&key);
            } else {
                let clusters = need(&referrer).clusters;
                let snapshots = binding.spec.required_by.iter().flatten();
                let mut own = snapshots.filter(|by| by.name.as_ref() == Some(&key.name));
                prop_assert_eq!(own.next().and_then(|own| own.clusters.clone()), Some(clusters));
                prop_assert_eq!(own.next(), None);
                present.insert(key.clone(), referrer.spec.clone());
            }
            let required: BTreeSet<_> = binding.spec.required_by.iter().flatten()
                .filter_map(|by| by.name.clone()).collect();
            prop_assert_eq!(required, present.keys().map(|key| key.name.clone()).collect());
            for key in present.keys() {
                prop_assert!(is_attached(BindingRef::from(&binding), key));
            }
        }
    }
}
