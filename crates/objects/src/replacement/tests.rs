use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Metadata;

fn named(api_version: &str, kind: &str, rest: &Value) -> Value {
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } });
    let fields = rest.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(fields);
    object
}

/// Returns the result of a manifest that replaces an object of the same kind with these fields, without metadata.
fn replaced(manifest: &Value, fields: Value) -> Value {
    let mut object = fields;
    object["metadata"] = json!({ "name": "a", "resourceVersion": "7" });
    let mut body = replacement(manifest, &object, &Written::default());
    assert_eq!(body["metadata"]["resourceVersion"], "7");
    for name in ["apiVersion", "kind", "metadata"] {
        body.as_object_mut().unwrap().remove(name);
    }
    body
}

/// Labels that we wrote go with the manifest; those of others stay, and so do the guards of the object.
#[test]
fn foreign_metadata_stays() {
    let object = json!({ "metadata": {
        "name": "web", "uid": "u", "resourceVersion": "7", "finalizers": ["x/y"],
        "labels": { "ours": "1", "theirs": "2" },
    }, "status": { "phase": "Active" }, "data": { "a": "b" } });
    let body = json!({ "metadata": { "name": "web", "labels": { "new": "3" } } });
    let expected = json!({ "metadata": {
        "name": "web", "uid": "u", "resourceVersion": "7", "finalizers": ["x/y"],
        "labels": { "new": "3", "theirs": "2" }, "annotations": {},
    }, "status": { "phase": "Active" } });
    let written = Written {
        labels: BTreeSet::from(["ours".to_owned()]),
        ..Written::default()
    };
    let replaced = replacement(&body, &object, &written);
    assert_eq!(replaced, expected);
    assert!(!has_same_metadata(&object, &replaced));
    let bare = json!({ "metadata": { "labels": null } });
    assert!(has_same_metadata(
        &bare,
        &json!({ "metadata": { "annotations": {} } })
    ));
}

/// Case P97: the API counts the changes of a `DaemonSet`'s template in its cluster: it is no difference that it has counted
/// others elsewhere.
#[test]
fn daemon_set_counts_for_itself() {
    let [wanted, present] = ["1", "3"].map(|count| {
        named(
            "apps/v1",
            "DaemonSet",
            &json!({ "metadata": { "name": "a",
            "annotations": { TEMPLATE_GENERATION: count } } }),
        )
    });
    let written = Written {
        annotations: BTreeSet::from([TEMPLATE_GENERATION.to_owned()]),
        ..Written::default()
    };
    let body = replacement(&wanted, &present, &written);
    assert!(has_same_metadata(&body, &present), "{body}");
    let created = without_generated(&wanted);
    assert_eq!(created["metadata"]["annotations"], json!({}));
}

/// Case P118: a Secret that the manifest had leaves with it, and one of the cluster stays. Where nothing says whose they are,
/// all do.
#[test]
fn own_secrets_leave() {
    for (list, annotation) in SECRETS {
        let account = |names: &[&str]| {
            let secrets = names.iter().map(|name| json!({ "name": name }));
            let fields = json!({ (list): secrets.collect::<Vec<_>>() });
            named("v1", "ServiceAccount", &fields)
        };
        let manifest = account(&["new"]);
        let silent = account(&["old", "new", "cluster"]);
        let body = replacement(&manifest, &silent, &Written::default());
        assert_eq!(body[list], silent[list]);

        let mut written = silent;
        note_secrets(&mut written, &account(&["old", "new"]));
        let mut body = replacement(&manifest, &written, &Written::default());
        assert_eq!(body[list], account(&["new", "cluster"])[list]);
        assert!(has_same_metadata(&body, &written));
        note_secrets(&mut body, &manifest);
        assert_eq!(body.annotation(annotation), Some("new"));
        let none = account(&[]);
        let mut body = replacement(&none, &body, &Written::default());
        note_secrets(&mut body, &none);
        assert_eq!(body[list], account(&["cluster"])[list]);
        assert_eq!(body.annotation(annotation), None);
    }
}

/// A manifest that was copied from a member has the notes of that copy. They do not make a difference.
#[test]
fn copied_note_is_ignored() {
    for (_, annotation) in SECRETS {
        let fields = json!({ "metadata": { "name": "a", "annotations": { annotation: "old" } } });
        let manifest = named("v1", "ServiceAccount", &fields);
        let mut object = manifest.clone();
        note_secrets(&mut object, &manifest);
        assert_eq!(object.annotation(annotation), None);
        let body = replacement(&manifest, &object, &Written::default());
        assert!(has_same_metadata(&body, &object));
    }
}

fn service(ports: &Value) -> Value {
    named("v1", "Service", &json!({ "spec": { "ports": ports } }))
}

/// An open field is kept of the same port only.
#[test]
fn same_port_is_kept() {
    let mut body = service(&json!([{ "port": 80 }, { "port": 81 }, { "port": 82, "nodePort": 1 }]));
    let other = json!([{ "port": 80, "nodePort": 2 }, { "port": 9, "nodePort": 3 }, { "port": 82, "nodePort": 4 }]);
    keep_allocated(&mut body, &service(&other));
    let kept =
        json!([{ "port": 80, "nodePort": 2 }, { "port": 81 }, { "port": 82, "nodePort": 1 }]);
    assert_eq!(body, service(&kept));
}

/// The node ports of a Service are known by the names of its ports, of which a single one needs none.
#[test]
fn node_ports_have_names() {
    let several = service(&json!([
        { "name": "http", "port": 80, "nodePort": 30080 },
        { "name": "quic", "port": 80, "protocol": "UDP", "nodePort": 30080 },
        { "name": "open", "port": 81 },
        { "name": "zero", "port": 82, "nodePort": 0 } ]));
    assert_eq!(
        node_ports(&several),
        [("http", 30_080), ("quic", 30_080)].into()
    );
    let single = service(&json!([{ "port": 80, "nodePort": 30080 }]));
    assert_eq!(node_ports(&single), [("", 30_080)].into());
    assert_eq!(node_ports(&service(&json!(null))), [].into());
    assert_eq!(node_ports(&json!({})), [].into());
}

/// Of a Service the addresses stay that its type has, and the node ports that are left open, by name or by number.
#[test]
fn service_keeps_addresses() {
    let observed = json!({ "spec": { "type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "healthCheckNodePort": 30009, "ports": [
            { "name": "http", "port": 80, "nodePort": 30001 },
            { "name": "https", "port": 443, "nodePort": 30002 },
            { "name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30003 } ] } });
    let ports = json!([
        { "name": "http", "port": 8080 },
        { "name": "tls", "port": 443, "protocol": "TCP" },
        { "name": "dns-tcp", "port": 53 },
        { "name": "dns", "port": 53, "protocol": "UDP", "nodePort": 31000 } ]);
    let with_type = |type_: &str| {
        let spec = json!({ "spec": { "type": type_, "ports": ports } });
        replaced(&named("v1", "Service", &spec), observed.clone())["spec"].clone()
    };
    let spec = with_type("NodePort");
    let node_ports = spec["ports"].as_array().unwrap().iter();
    let node_ports: Vec<_> = node_ports
        .map(|port| port.get("nodePort").cloned())
        .collect();
    assert_eq!(
        node_ports,
        [
            Some(json!(30001)),
            Some(json!(30002)),
            None,
            Some(json!(31000))
        ]
    );
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(spec[field], observed["spec"][field]);
        assert_eq!(with_type("ExternalName").get(field), None);
    }
    assert_eq!(spec.get("healthCheckNodePort"), None);
    assert_eq!(with_type("ClusterIP")["ports"], ports);
}

/// A field that the cluster has filled in stays, of kinds that would be refused, or would lose it, without.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn filled_fields_stay() {
    let selector = json!({ "matchLabels": { "controller-uid": "u" } });
    for (manifest, observed, expected) in [
        (
            named(
                "v1",
                "PersistentVolumeClaim",
                &json!({ "spec": { "storageClassName": null } }),
            ),
            json!({ "spec": { "volumeName": "pv", "storageClassName": "fast" } }),
            json!({ "spec": { "volumeName": "pv", "storageClassName": "fast" } }),
        ),
        (
            named(
                "v1",
                "PersistentVolume",
                &json!({ "spec": { "claimRef": { "name": "c" } } }),
            ),
            json!({ "spec": { "claimRef": { "name": "c", "uid": "u" } } }),
            json!({ "spec": { "claimRef": { "name": "c", "uid": "u" } } }),
        ),
        (
            named(
                "v1",
                "ServiceAccount",
                &json!({ "secrets": [{ "name": "a" }, { "name": "b" }] }),
            ),
            json!({ "secrets": [{ "name": "t" }, { "name": "b" }], "imagePullSecrets": [{ "name": "p" }] }),
            json!({ "secrets": [{ "name": "t" }, { "name": "b" }, { "name": "a" }],
                "imagePullSecrets": [{ "name": "p" }] }),
        ),
        (
            named(
                "v1",
                "Secret",
                &json!({ "type": "kubernetes.io/service-account-token", "data": null }),
            ),
            json!({ "data": { "token": "x" } }),
            json!({ "type": "kubernetes.io/service-account-token", "data": { "token": "x" } }),
        ),
        // A key that was taken out of another Secret is gone.
        (
            named("v1", "Secret", &json!({ "type": "Opaque" })),
            json!({ "data": { "password": "x" } }),
            json!({ "type": "Opaque" }),
        ),
        (
            named(
                "batch/v1",
                "Job",
                &json!({ "spec": { "selector": {}, "template": { "spec": {} } } }),
            ),
            json!({ "spec": { "selector": selector, "template": {
                "metadata": { "labels": { "job-name": "a", "more": "x" } } } } }),
            json!({ "spec": { "selector": selector, "template": { "spec": {},
                "metadata": { "labels": { "job-name": "a" } } } } }),
        ),
        (
            named(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                &json!({ "aggregationRule": {}, "rules": null }),
            ),
            json!({ "rules": [{ "verbs": ["get"] }] }),
            json!({ "aggregationRule": {}, "rules": [{ "verbs": ["get"] }] }),
        ),
        (
            named("networking.k8s.io/v1", "Ingress", &json!({ "spec": {} })),
            json!({ "spec": { "ingressClassName": "nginx" } }),
            json!({ "spec": { "ingressClassName": "nginx" } }),
        ),
        (
            named(
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
                &json!({ "webhooks": [{ "name": "a", "clientConfig": { "caBundle": "Cg==" } },
                    { "name": "b", "clientConfig": { "caBundle": "own" } }] }),
            ),
            json!({ "webhooks": [{ "name": "b", "clientConfig": { "caBundle": "x" } },
                { "name": "a", "clientConfig": { "caBundle": "y" } }] }),
            json!({ "webhooks": [{ "name": "a", "clientConfig": { "caBundle": "y" } },
                { "name": "b", "clientConfig": { "caBundle": "own" } }] }),
        ),
        (
            named(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                &json!({ "spec": { "conversion": { "webhook": { "clientConfig": {} } } } }),
            ),
            json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": "y" } } } } }),
            json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": "y" } } } } }),
        ),
        (
            named("example.com/v1", "Widget", &json!({ "spec": {} })),
            json!({ "spec": { "size": 1 }, "status": { "ready": true } }),
            json!({ "spec": {}, "status": { "ready": true } }),
        ),
    ] {
        assert_eq!(
            replaced(&manifest, observed),
            expected,
            "{}",
            manifest["kind"]
        );
    }
}

/// A Pod keeps whatever its manifest leaves open, for nothing of it can be taken away: in its own order.
#[test]
fn pod_keeps_what_was_injected() {
    let manifest = named(
        "v1",
        "Pod",
        &json!({ "spec": { "containers": [
        { "name": "app", "image": "app:2", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] } ] } }),
    );
    let token = json!({ "name": "token", "mountPath": "/var/run/secrets" });
    let observed = json!({ "spec": { "nodeName": "n1", "serviceAccountName": "default", "containers": [
        { "name": "proxy", "image": "proxy:1" },
        { "name": "app", "image": "app:1", "volumeMounts": [{ "name": "data", "mountPath": "/data" }, token] } ] } });
    let mut expected = observed.clone();
    expected["spec"]["containers"][1]["image"] = json!("app:2");
    assert_eq!(replaced(&manifest, observed), expected);
}

/// With the label that retains them, replicas are those of the object.
#[test]
fn replicas_stay() {
    let mut body = json!({ "spec": { "replicas": 2 } });
    keep_replicas(&mut body, &json!({ "spec": { "replicas": 5 } }));
    assert_eq!(body["spec"]["replicas"], 5);
    keep_replicas(&mut body, &json!({ "spec": {} }));
    assert_eq!(body["spec"]["replicas"], 5);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-c]".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = "spec|metadata|labels|ports|containers|template|name|webhooks|clientConfig|type|selector";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// No object, however odd, stops a replacement; and a replaced object is replaced by itself.
    #[test]
    fn replacing_twice_changes_nothing_more(manifest in values(), object in values(), kind in prop::sample::select(vec![
        ("v1", "Service"), ("v1", "Pod"), ("v1", "ServiceAccount"), ("batch/v1", "Job"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"), ("apps/v1", "Deployment"),
    ])) {
        let mut manifest = manifest;
        if let Some(map) = manifest.as_object_mut() {
            map.insert("apiVersion".to_owned(), kind.0.into());
            map.insert("kind".to_owned(), kind.1.into());
        }
        let once = replacement(&manifest, &object, &Written::default());
        prop_assert_eq!(replacement(&manifest, &once, &Written::default()), once);
    }
}
