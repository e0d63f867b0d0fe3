//! Every request gets a response, and every failure a `Status`.

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{CONFIG_MAPS, REMEDIES, config_map, remedy, server};
use crate::ApiServer;

const TYPES: [&str; 7] = [
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
];

/// Generates text that parsers trip over.
fn noise() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9./%=,!()<> -]{0,12}",
        "%[0-9a-fA-F]{2}(%[0-9a-f]{2}){0,3}",
        Just("default".to_owned()),
        Just("configmaps".to_owned()),
        Just("remedies".to_owned()),
        Just("a".to_owned()),
        Just("status".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just("-1".to_owned()),
        any::<String>(),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        noise().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        let key = prop_oneof![
            noise(),
            prop::sample::select(
                &[
                    "apiVersion",
                    "kind",
                    "metadata",
                    "name",
                    "namespace",
                    "labels",
                    "annotations",
                    "finalizers",
                    "ownerReferences",
                    "managedFields",
                    "uid",
                    "spec",
                    "status",
                    "data",
                    "op",
                    "path",
                    "value",
                    "from",
                    "resourceVersion",
                    "generateName",
                    "$patch",
                    "creationTimestamp",
                    "generation",
                    "size",
                    "versions",
                    "names",
                    "ports",
                ][..]
            )
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

/// Generates bodies that are well-formed except in some place.
fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        noise().prop_map(String::into_bytes),
        json_value().prop_map(|value| value.to_string().into_bytes()),
        (prop::sample::select(vec![config_map("a"), remedy("a"), service(), definition()]),
         prop::sample::select(&[
            "/metadata", "/metadata/name", "/metadata/labels", "/metadata/finalizers", "/spec",
            "/spec/ports", "/spec/names", "/spec/versions", "/spec/versions/0/schema", "/status",
            "/spec/clusterIP", "/data", "/kind", "/apiVersion", "/metadata/ownerReferences",
         ][..]),
         json_value())
            .prop_map(|(mut object, place, value)| {
                let (parent, field) = place.rsplit_once('/').unwrap();
                if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
                    parent.insert(field.to_owned(), value);
                }
                object.to_string().into_bytes()
            }),
        prop::collection::vec(
            (prop::sample::select(&["add", "replace", "remove", "test", "move", "copy"][..]),
             prop::sample::select(&["", "/spec", "/metadata", "/metadata/labels/a", "/status/x",
                                    "/spec/size", "/kind", "/metadata/name", "/a/b/c", "x"][..]),
             json_value()),
            0..4,
        )
        .prop_map(|operations| {
            let operations: Vec<Value> = operations
                .into_iter()
                .map(|(op, path, value)| json!({"op": op, "path": path, "from": path, "value": value}))
                .collect();
            json!(operations).to_string().into_bytes()
        }),
    ]
}

fn service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
           "spec": {"ports": [{"port": 80}]}})
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"kind": "A", "plural": "as"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

fn path() -> impl Strategy<Value = String> {
    let known = vec![
        CONFIG_MAPS.to_owned(),
        format!("{CONFIG_MAPS}/a"),
        REMEDIES.to_owned(),
        format!("{REMEDIES}/a"),
        format!("{REMEDIES}/a/status"),
        CONFIG_MAPS.replace("configmaps", "services"),
        CONFIG_MAPS.replace("configmaps", "events"),
        CONFIG_MAPS.replace("configmaps", "secrets"),
        "/api/v1/namespaces".to_owned(),
        "/api/v1/namespaces/default".to_owned(),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/a".to_owned(),
    ];
    let parts =
        || prop::collection::vec(noise(), 0..8).prop_map(|parts| format!("/{}", parts.join("/")));
    prop_oneof![
        4 => prop::sample::select(known),
        1 => parts(),
        1 => parts().prop_map(|parts| format!("/api/v1{parts}")),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let names = [
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "timeoutSeconds",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "propagationPolicy",
        "watch",
        "includeObject",
    ];
    prop::collection::vec((prop::sample::select(names.to_vec()), noise()), 0..4).prop_map(|pairs| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs);
        query.finish()
    })
}

/// Sends a request and fails unless the response is a success or a `Status`.
async fn send_checked(server: &ApiServer, request: Request<Full<Bytes>>) {
    let requested = format!("{request:?}");
    let response = server.service().oneshot(request).await.unwrap();
    let code = response.status();
    if code.is_success() {
        // The body of a watch has no end.
        return;
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["kind"], "Status", "{requested}: {status}");
    assert_eq!(status["code"], code.as_u16(), "{requested}: {status}");
    // Some errors of kube-apiserver have no reason, but `InternalError` would be a bug of ours.
    assert_ne!(status["reason"], "InternalError", "{requested}: {status}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn garbage_gets_a_status(
        requests in prop::collection::vec(
            (prop::sample::select(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "BREW"][..]),
             path(), query(), prop::sample::select(&TYPES[..]), body()),
            1..4,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = server();
            server.post(CONFIG_MAPS, &config_map("a")).await.ok();
            server.post(REMEDIES, &remedy("a")).await.ok();
            for (method, path, query, content_type, body) in requests {
                let Ok(uri) = format!("{path}?{query}").parse::<Uri>() else { continue };
                let method: Method = method.parse().unwrap();
                let request = Request::builder().method(method).uri(uri)
                    .header("content-type", content_type).body(Full::from(body)).unwrap();
                send_checked(&server, request).await;
            }
            for path in [CONFIG_MAPS, REMEDIES, "/apis"] {
                let response = server.get(path).await;
                // A request may have deleted the definition.
                prop_assert!(response.code == 200 || path == REMEDIES, "{path}: {response:?}");
                serde_json::from_slice::<Value>(&response.body).unwrap();
            }
            Ok(())
        })?;
    }
}

/// A body nested too deep is refused.
#[tokio::test]
async fn deep_body_is_refused() {
    let server = server();
    for depth in [200, 100_000] {
        let body = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for type_ in TYPES {
            let posted = server
                .request(Method::POST, REMEDIES, type_, body.clone())
                .await;
            assert!(posted.code.is_client_error(), "{type_}: {}", posted.code);
            let path = format!("{REMEDIES}/a");
            let patched = server
                .request(Method::PATCH, &path, type_, body.clone())
                .await;
            assert!(patched.code.is_client_error(), "{type_}: {}", patched.code);
        }
    }
}

/// Patches cannot make an object that cannot be read.
#[tokio::test]
async fn patches_keep_objects_readable() {
    let server = server();
    let mut object = remedy("a");
    object["status"] = json!({});
    server.post(REMEDIES, &object).await.ok();
    let path = format!("{REMEDIES}/a/status");
    server
        .merge(&path, &json!({"status": {"a": {}}}))
        .await
        .ok();
    // Each operation copies the status into itself: the first patch nests it deeper and deeper, the
    // second doubles its size every time.
    let type_ = "application/json-patch+json";
    let copy = |to: String| json!({"op": "copy", "from": "/status", "path": to});
    let deeper: Vec<Value> = (0..30).map(|_| copy("/status/a".to_owned())).collect();
    let mut refused = 0;
    for _ in 0..6 {
        let response = server
            .request(Method::PATCH, &path, type_, json!(deeper).to_string())
            .await;
        if response.code != 200 {
            response.fails(422, "Invalid");
            refused += 1;
        }
        server.get(REMEDIES).await.ok();
        server
            .merge(&path, &json!({"status": {"b": refused}}))
            .await
            .ok();
    }
    assert!(refused > 0);
    let larger: Vec<Value> = (0..40).map(|n| copy(format!("/status/{n}"))).collect();
    let response = server
        .request(Method::PATCH, &path, type_, json!(larger).to_string())
        .await;
    response.fails(422, "Invalid");
    let many: Vec<Value> = (0..10_001).map(|_| copy("/status/a".to_owned())).collect();
    let response = server
        .request(Method::PATCH, &path, type_, json!(many).to_string())
        .await;
    response.fails(413, "RequestEntityTooLarge");
}
