//! Creating, reading and changing objects.

use http::Method;
use serde_json::json;

use super::{CONFIG_MAPS, REMEDIES, TASKS, config_map, remedy, server, task};

#[tokio::test]
async fn created_object_can_be_read() {
    let server = server();
    let made = server.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(made.code, 201);
    let made = made.json();
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(
        made["metadata"]["creationTimestamp"],
        "2026-01-01T00:00:00Z"
    );
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.ok(), made);
    let list = server.get(CONFIG_MAPS).await.ok();
    assert_eq!(list["kind"], "ConfigMapList");
    // The items of a list of a built-in kind have no types of their own.
    assert_eq!(list["items"], json!([{"metadata": made["metadata"]}]));
    assert_eq!(
        list["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    server
        .post(CONFIG_MAPS, &config_map("a"))
        .await
        .fails(409, "AlreadyExists");
    server
        .get(&format!("{CONFIG_MAPS}/b"))
        .await
        .fails(404, "NotFound");
}

/// A custom object is pruned and gets its defaults.
#[tokio::test]
async fn custom_object_is_pruned_defaulted() {
    let server = server();
    let mut object = remedy("a");
    object["spec"]["unknown"] = json!(1);
    object["status"] = json!({"x": 1});
    let strict = format!("{REMEDIES}?fieldValidation=Strict");
    server.post(&strict, &object).await.fails(400, "BadRequest");
    let made = server.post(REMEDIES, &object).await;
    let warning = made.headers.get("warning").unwrap().to_str().unwrap();
    assert_eq!(warning, r#"299 - "unknown field \"spec.unknown\"""#);
    let made = made.ok();
    assert_eq!(made["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made.get("status"), None);
    object["spec"] = json!({"size": "big"});
    object["metadata"]["name"] = json!("b");
    server.post(REMEDIES, &object).await.fails(422, "Invalid");
}

/// A change of nothing keeps the version.
#[tokio::test]
async fn unchanged_object_keeps_version() {
    let server = server();
    let path = format!("{REMEDIES}/a");
    let made = server.post(REMEDIES, &remedy("a")).await.ok();
    let same = server
        .merge(&path, &json!({"spec": {"size": 1}}))
        .await
        .ok();
    assert_eq!(made, same);
    let changed = server
        .merge(&path, &json!({"spec": {"size": 2}}))
        .await
        .ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    assert_ne!(
        changed["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    let labelled = server
        .merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .ok();
    assert_eq!(labelled["metadata"]["generation"], 2);
}

/// Status and the rest are written apart.
#[tokio::test]
async fn status_is_written_apart() {
    let server = server();
    server.post(REMEDIES, &remedy("a")).await.ok();
    let path = format!("{REMEDIES}/a");
    let both = json!({"spec": {"size": 9}, "status": {"x": 1}});
    let changed = server.merge(&format!("{path}/status"), &both).await.ok();
    assert_eq!(changed["spec"]["size"], 1);
    assert_eq!(changed["status"]["x"], 1);
    assert_eq!(changed["metadata"]["generation"], 1);
    let both = json!({"spec": {"size": 9}, "status": {"x": 2}});
    let changed = server.merge(&path, &both).await.ok();
    assert_eq!(
        (&changed["spec"]["size"], &changed["status"]["x"]),
        (&json!(9), &json!(1))
    );
    server
        .get(&format!("{TASKS}/a/status"))
        .await
        .fails(404, "NotFound");
}

/// A write of what has changed since is refused.
#[tokio::test]
async fn stale_write_is_refused() {
    let server = server();
    let path = format!("{REMEDIES}/a");
    let old = server.post(REMEDIES, &remedy("a")).await.ok();
    server
        .merge(&path, &json!({"spec": {"size": 2}}))
        .await
        .ok();
    server.put(&path, &old).await.fails(409, "Conflict");
    let version = &old["metadata"]["resourceVersion"];
    let stale = json!({"metadata": {"resourceVersion": version}, "spec": {"size": 3}});
    server.merge(&path, &stale).await.fails(409, "Conflict");
    server.put(&path, &remedy("a")).await.fails(422, "Invalid");
    // A `ConfigMap` may be replaced without a version.
    server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    server
        .put(&format!("{CONFIG_MAPS}/a"), &config_map("a"))
        .await
        .ok();
    let test = json!([{"op": "test", "path": "/spec/size", "value": 7}]);
    let type_ = "application/json-patch+json";
    let failed = server
        .request(Method::PATCH, &path, type_, test.to_string())
        .await;
    failed.fails(422, "Invalid");
    let type_ = "application/strategic-merge-patch+json";
    let failed = server.request(Method::PATCH, &path, type_, "{}").await;
    failed.fails(415, "UnsupportedMediaType");
}

/// A dry run responds and stores nothing.
#[tokio::test]
async fn dry_run_stores_nothing() {
    let server = server();
    let made = server
        .post(&format!("{REMEDIES}?dryRun=All"), &remedy("a"))
        .await;
    assert_eq!(made.code, 201);
    server
        .get(&format!("{REMEDIES}/a"))
        .await
        .fails(404, "NotFound");
    server.post(REMEDIES, &remedy("a")).await.ok();
    let path = format!("{REMEDIES}/a?dryRun=All");
    let changed = server
        .merge(&path, &json!({"spec": {"size": 2}}))
        .await
        .ok();
    assert_eq!(changed["spec"]["size"], 2);
    server.delete(&path).await.ok();
    assert_eq!(
        server.get(&format!("{REMEDIES}/a")).await.ok()["spec"]["size"],
        1
    );
    server
        .post(&format!("{REMEDIES}?dryRun=Some"), &remedy("b"))
        .await
        .fails(422, "Invalid");
}

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

#[tokio::test]
async fn names_are_generated_and_checked() {
    let server = server();
    let mut object = config_map("");
    object["metadata"] = json!({"generateName": "a-"});
    let made = server.post(CONFIG_MAPS, &object).await.ok();
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("a-") && name.len() == 7, "{name}");
    for bad in ["", "A", "a b", "a/b", "-a", "a\u{7}", "é"] {
        server
            .post(CONFIG_MAPS, &config_map(bad))
            .await
            .fails(422, "Invalid");
    }
}

#[tokio::test]
async fn body_must_fit_path() {
    let server = server();
    server
        .post(CONFIG_MAPS, &remedy("a"))
        .await
        .fails(400, "BadRequest");
    server
        .post(REMEDIES, &config_map("a"))
        .await
        .fails(400, "BadRequest");
    server
        .put(&format!("{CONFIG_MAPS}/b"), &config_map("a"))
        .await
        .fails(400, "BadRequest");
    let mut elsewhere = config_map("a");
    elsewhere["metadata"]["namespace"] = json!("other");
    server
        .post(CONFIG_MAPS, &elsewhere)
        .await
        .fails(400, "BadRequest");
    let nowhere = CONFIG_MAPS.replace("default", "nowhere");
    server
        .post(&nowhere, &config_map("a"))
        .await
        .fails(404, "NotFound");
    server
        .post("/api/v1/configmaps", &config_map("a"))
        .await
        .fails(405, "MethodNotAllowed");
    server.get("/api/v1/nothings").await.fails(404, "NotFound");
    server.get("/nothing").await.fails(404, "NotFound");
}

/// A body may be YAML and must be something.
#[tokio::test]
async fn body_may_be_yaml() {
    let server = server();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  key: value\n";
    let made = server
        .request(Method::POST, CONFIG_MAPS, "application/yaml", yaml)
        .await
        .ok();
    assert_eq!(made["data"]["key"], "value");
    for (type_, body) in [
        ("application/json", "{"),
        ("application/json", "[]"),
        ("application/json", ""),
        ("application/yaml", "a: b: c"),
    ] {
        server
            .request(Method::POST, CONFIG_MAPS, type_, body)
            .await
            .fails(400, "BadRequest");
    }
    // kube-apiserver decodes `null` and an empty body as an empty object.
    for (type_, body) in [("application/json", "null"), ("application/yaml", "")] {
        server
            .request(Method::POST, CONFIG_MAPS, type_, body)
            .await
            .fails(422, "Invalid");
    }
    let unknown = server
        .request(Method::POST, CONFIG_MAPS, "text/plain", "{}")
        .await;
    unknown.fails(415, "UnsupportedMediaType");
    let large = vec![b' '; 3 * 1024 * 1024 + 1];
    let large = server
        .request(Method::POST, CONFIG_MAPS, "application/json", large)
        .await;
    large.fails(413, "RequestEntityTooLarge");
    let mut large = task("large");
    large["status"] = json!({"key": "x".repeat(1_600_000)});
    assert_eq!(server.post(TASKS, &large).await.failure().0, 500);
}

/// A list is selected by labels and fields.
#[tokio::test]
async fn labels_and_fields_select() {
    let server = server();
    for (name, label, color) in [("a", "1", "red"), ("b", "2", "blue"), ("c", "3", "red")] {
        let mut object = task(name);
        object["metadata"]["labels"] = json!({"n": label});
        object["spec"]["color"] = json!(color);
        server.post(TASKS, &object).await.ok();
    }
    for (query, expected) in [
        ("labelSelector=n", "abc"),
        ("labelSelector=!n", ""),
        ("labelSelector=n%3D1", "a"),
        ("labelSelector=n%21%3D1", "bc"),
        ("labelSelector=n+in+(1,2)", "ab"),
        ("labelSelector=n+notin+(1,2),n", "c"),
        ("labelSelector=n%3E1,n%3C3", "b"),
        ("fieldSelector=metadata.name%3Da", "a"),
        ("fieldSelector=metadata.name%21%3Da", "bc"),
        ("fieldSelector=spec.color%3Dred", "ac"),
        ("fieldSelector=metadata.namespace%3Ddefault", "abc"),
        ("fieldSelector=metadata.namespace%3Dother", ""),
    ] {
        let list = server.get(&format!("{TASKS}?{query}")).await.ok();
        let items = list["items"].as_array().unwrap().iter();
        let names: String = items
            .map(|item| item["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{query}");
    }
    for query in [
        "labelSelector=n+in+1",
        "labelSelector=n+in+(1",
        "labelSelector=%3D",
        "labelSelector=a+b",
        "labelSelector=n%3Exyz",
        "fieldSelector=spec.size%3D1",
        "fieldSelector=metadata.name",
        "limit=many",
    ] {
        server
            .get(&format!("{TASKS}?{query}"))
            .await
            .fails(400, "BadRequest");
    }
}

/// A list in pages shows one version.
#[tokio::test]
async fn pages_show_one_version() {
    let server = server();
    for name in ["a", "b", "c", "d", "e"] {
        server.post(CONFIG_MAPS, &config_map(name)).await.ok();
    }
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    server.delete(&format!("{CONFIG_MAPS}/d")).await.ok();
    server.post(CONFIG_MAPS, &config_map("ca")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get(&format!("{CONFIG_MAPS}?limit=10&continue={token}"))
        .await
        .ok();
    let items = rest["items"].as_array().unwrap().iter();
    let names: String = items
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, "cde");
    assert_eq!(
        rest["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    assert_eq!(rest["metadata"].get("continue"), None);
    server
        .get(&format!("{CONFIG_MAPS}?continue=x"))
        .await
        .fails(400, "BadRequest");
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

/// A list can be of the past and not of the future.
#[tokio::test]
async fn list_may_be_past() {
    let server = server();
    let made = server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    server.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let items = &server.get(&exact).await.ok()["items"];
    assert_eq!(*items, json!([{"metadata": made["metadata"]}]));
    let newer = format!("{CONFIG_MAPS}?resourceVersion={version}");
    assert_eq!(server.get(&newer).await.ok()["items"], json!([]));
    let future = format!("{CONFIG_MAPS}?resourceVersion=1000");
    server.get(&future).await.fails(504, "Timeout");
    server
        .get(&format!("{CONFIG_MAPS}?resourceVersion=x"))
        .await
        .fails(400, "BadRequest");
}

/// An event is served in both groups.
#[tokio::test]
async fn event_is_in_both_groups() {
    let server = server();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "me",
        "reportingInstance": "me-1", "action": "Act", "reason": "Why", "type": "Normal",
        "note": "hello", "regarding": {"kind": "Remedy", "name": "r"},
    });
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let old = "/api/v1/namespaces/default/events";
    server.post(new, &event).await.ok();
    let read = server.get(&format!("{old}/a")).await.ok();
    assert_eq!(read["apiVersion"], "v1");
    assert_eq!(
        (&read["message"], &read["reportingComponent"]),
        (&json!("hello"), &json!("me"))
    );
    assert_eq!(read["involvedObject"]["name"], "r");
    for selector in [
        format!("{old}?fieldSelector=involvedObject.name%3Dr,reason%3DWhy"),
        format!("{new}?fieldSelector=regarding.name%3Dr,type%3DNormal"),
    ] {
        assert_eq!(
            server.get(&selector).await.ok()["items"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }
    let read = server.get(&format!("{new}/a")).await.ok();
    assert_eq!(
        (&read["apiVersion"], &read["note"]),
        (&json!("events.k8s.io/v1"), &json!("hello"))
    );
}

#[tokio::test]
async fn service_gets_own_address() {
    let server = server();
    let services = CONFIG_MAPS.replace("configmaps", "services");
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}]},
        })
    };
    let one = server.post(&services, &service("one")).await.ok();
    let two = server.post(&services, &service("two")).await.ok();
    assert_eq!(one["spec"]["clusterIP"], "10.96.0.2");
    assert_eq!(two["spec"]["clusterIPs"], json!(["10.96.0.3"]));
    assert_eq!(
        one["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "targetPort": 80}])
    );
    let kept = server
        .put(&format!("{services}/one"), &service("one"))
        .await
        .ok();
    assert_eq!(kept["spec"]["clusterIP"], "10.96.0.2");
    let mut headless = service("three");
    headless["spec"]["clusterIP"] = json!("None");
    let headless = server.post(&services, &headless).await.ok();
    assert_eq!(headless["spec"]["clusterIP"], "None");
    server.delete(&format!("{services}/one")).await.ok();
    let four = server.post(&services, &service("four")).await.ok();
    assert_eq!(four["spec"]["clusterIP"], "10.96.0.2");
}
