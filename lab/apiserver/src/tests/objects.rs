//! Objects, as no API need treat them, or none but a rare client sees them; `api_conformance` has the rest.

use serde_json::json;

use super::{CONFIG_MAPS, REMEDIES, config_map, remedy, server};

/// Metadata that cannot be read is a bad request.
#[tokio::test]
async fn unreadable_metadata_is_refused() {
    let server = server();
    for metadata in [
        json!([]),
        json!("text"),
        json!({"name": 7}),
        json!({"name": "a", "labels": []}),
        json!({"name": "a", "labels": {"a": 1}}),
        json!({"name": "a", "finalizers": "x"}),
        json!({"name": "a", "ownerReferences": [1]}),
    ] {
        for (path, mut object) in [(REMEDIES, remedy("a")), (CONFIG_MAPS, config_map("a"))] {
            object["metadata"] = metadata.clone();
            let response = server.post(path, &object).await;
            assert_eq!(response.code, 400, "{metadata}: {response:?}");
        }
    }
}

/// An object with a version cannot be new.
#[tokio::test]
async fn versioned_object_cannot_be_created() {
    let server = server();
    let made = server.post(REMEDIES, &remedy("a")).await.ok();
    server.delete(&format!("{REMEDIES}/a")).await.ok();
    assert_eq!(server.post(REMEDIES, &made).await.failure().0, 500);
}

/// A page whose first one is of before the history says so, with a token by which the rest is listed as it is now.
#[tokio::test]
async fn late_page_is_expired() {
    let server = server();
    for name in ["a", "b", "c"] {
        server.post(CONFIG_MAPS, &config_map(name)).await.ok();
    }
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    server.post(CONFIG_MAPS, &config_map("ca")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    for n in 0..1_100 {
        let patch = json!({"data": {"n": n.to_string()}});
        server.merge(&format!("{CONFIG_MAPS}/a"), &patch).await.ok();
    }
    let late = server.get(&format!("{CONFIG_MAPS}?continue={token}")).await;
    late.fails(410, "Expired");
    let late = late.json();
    let token = late["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await
        .ok();
    let items = rest["items"].as_array().unwrap().iter();
    let names: Vec<_> = items.map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["c", "ca"]);
}

/// A definition warns of features that are not supported.
#[tokio::test]
async fn definition_warns_of_unsupported_features() {
    let server = server();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "ruled.example.com" },
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": { "plural": "ruled", "kind": "Ruled" },
            "conversion": { "strategy": "Webhook" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "x-kubernetes-validations": [{ "rule": "has(self.a)" }, { "rule": "size(self) > 0" }],
                } },
            } } }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = server.post(definitions, &definition).await;
    let warnings: Vec<_> = made.headers.get_all("warning").iter().collect();
    assert_eq!(
        warnings,
        [
            r#"299 - "spec.conversion: this server calls no webhook""#,
            r#"299 - "spec.versions[0].schema: this server does not evaluate all x-kubernetes-validations""#,
        ]
    );
    definition = made.ok();
    definition["metadata"]["labels"] = json!({ "a": "b" });
    let again = server
        .put(&format!("{definitions}/ruled.example.com"), &definition)
        .await;
    assert_eq!(again.headers.get("warning"), None);
    again.ok();
}

/// A list cannot be of a version that there is not yet.
#[tokio::test]
async fn future_list_times_out() {
    let future = format!("{CONFIG_MAPS}?resourceVersion=1000");
    server().get(&future).await.fails(504, "Timeout");
}

/// Events of the newer group are selected by that group's names of fields.
#[tokio::test]
async fn newer_fields_select_events() {
    let server = server();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "me",
        "reportingInstance": "me-1", "action": "Act", "reason": "Why", "type": "Normal",
        "note": "hello", "regarding": {"kind": "Remedy", "name": "r"},
    });
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    server.post(path, &event).await.ok();
    let selected = format!("{path}?fieldSelector=regarding.name%3Dr,type%3DNormal");
    let selected = server.get(&selected).await.ok();
    assert_eq!(selected["items"].as_array().map(Vec::len), Some(1));
}

/// Services get the first addresses that are free, in their order, so that a run can be repeated.
#[tokio::test]
async fn first_free_address_is_given() {
    let server = server();
    let services = CONFIG_MAPS.replace("configmaps", "services");
    let mut given = Vec::new();
    for name in ["one", "two", "three"] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}]},
        });
        let mut made = server.post(&services, &service).await.ok();
        given.push(made["spec"]["clusterIP"].take());
        if name == "two" {
            server.delete(&format!("{services}/one")).await.ok();
        }
    }
    assert_eq!(given, ["10.96.0.2", "10.96.0.3", "10.96.0.2"]);
}
