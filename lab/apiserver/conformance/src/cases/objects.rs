//! Creating and reading objects.

use anyhow::Result;
use serde_json::{Value, json};

use crate::server::{Server, YAML, name, version};

pub(super) async fn created_object_gets_metadata(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let widget = server
        .create(
            &path,
            &json!({
                "apiVersion": "conformance.example.com/v1", "kind": "Widget",
                "metadata": { "name": "one", "labels": { "a": "b" } }, "spec": { "color": "red" },
            }),
        )
        .await?;
    let metadata = &widget["metadata"];
    check_eq!(metadata["generation"], 1);
    check_eq!(metadata["namespace"], server.name.as_str());
    check_eq!(metadata["labels"], json!({ "a": "b" }));
    check!(
        metadata["uid"].as_str().is_some_and(|uid| uid.len() == 36),
        metadata
    );
    check!(
        metadata["creationTimestamp"]
            .as_str()
            .is_some_and(|time| time.len() == 20 && time.ends_with('Z')),
        metadata
    );
    check!(
        version(&widget)
            .parse::<u64>()
            .is_ok_and(|version| version > 0),
        metadata
    );
    check_eq!(metadata["managedFields"][0]["operation"], "Update");
    check_eq!(
        server.get(&format!("{path}/one")).await?.expect(200)?,
        widget
    );
    Ok(())
}

/// A kind without status has no generation.
pub(super) async fn statusless_kind_has_no_generation(server: Server) -> Result<()> {
    let (_, map) = server.config_map().await?;
    check_eq!(map["metadata"].get("generation"), None);
    check_eq!(
        (&map["apiVersion"], &map["kind"]),
        (&json!("v1"), &json!("ConfigMap"))
    );
    Ok(())
}

pub(super) async fn a_name_is_taken_once(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one" } });
    server.create(&path, &map).await?;
    let response = server.post(&path, &map).await?;
    check_eq!(
        response.body["details"],
        json!({ "name": "one", "kind": "configmaps" })
    );
    check_eq!(
        response.refused(409, "AlreadyExists")?,
        r#"configmaps "one" already exists"#
    );
    Ok(())
}

pub(super) async fn generated_names_differ(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "generateName": "some-" } });
    let (one, other) = (
        server.create(&path, &map).await?,
        server.create(&path, &map).await?,
    );
    check!(
        name(&one).starts_with("some-") && name(&one).len() == 10,
        name(&one)
    );
    check!(name(&one) != name(&other), name(&other));
    check_eq!(one["metadata"]["generateName"], "some-");
    let both = json!({ "metadata": { "generateName": "some-", "name": "mine" } });
    check_eq!(name(&server.create(&path, &both).await?), "mine");
    let again = server.post(&path, &both).await?;
    check_eq!(again.body["details"]["retryAfterSeconds"], 1);
    check_eq!(
        again.refused(409, "AlreadyExists")?,
        "configmaps \"mine\" already exists, the server was not able to generate a unique name for the object"
    );
    let wrong = json!({ "metadata": { "generateName": "Some_", "name": "other" } });
    let message = server.post(&path, &wrong).await?.refused(422, "Invalid")?;
    check!(
        message.contains("metadata.generateName: Invalid value: \"Some_\": "),
        message
    );
    Ok(())
}

/// An object without a name is refused.
pub(super) async fn unnamed_object_is_refused(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let message = server
        .post(&path, &json!({ "metadata": {} }))
        .await?
        .refused(422, "Invalid")?;
    check_eq!(
        message,
        r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#
    );
    Ok(())
}

pub(super) async fn names_are_those_of_dns(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let long = "a".repeat(254);
    for bad in [
        "Upper",
        "under_score",
        "with\u{7}bell",
        "new\nline",
        "-dash",
        "dot.",
        "sp ace",
        "é",
        &long,
    ] {
        let response = server
            .post(&path, &json!({ "metadata": { "name": bad } }))
            .await?;
        check_eq!(
            response.body["details"]["causes"][0]["field"],
            "metadata.name",
            "{bad:?}"
        );
        let message = response.refused(422, "Invalid")?;
        check!(message.contains("metadata.name: Invalid value: "), message);
    }
    let longest = "a".repeat(253);
    for good in ["a", "0", "a.b", "a-b", &longest] {
        server
            .create(&path, &json!({ "metadata": { "name": good } }))
            .await?;
    }
    Ok(())
}

pub(super) async fn a_name_is_no_path(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    for bad in ["a/b", "a%b", "..", "."] {
        let widget = json!({
            "apiVersion": "conformance.example.com/v1", "kind": "Widget",
            "metadata": { "name": bad }, "spec": {},
        });
        server.post(&path, &widget).await?.refused(422, "Invalid")?;
    }
    Ok(())
}

/// The names of services are labels of DNS.
pub(super) async fn service_names_are_dns_labels(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "services").await?;
    let service = json!({ "metadata": { "name": "9a" }, "spec": { "ports": [{ "port": 80 }] } });
    server.create(&path, &service).await?;
    for bad in ["a.b", "A", "-a"] {
        let service = json!({ "metadata": { "name": bad }, "spec": { "ports": [{ "port": 80 }] } });
        server
            .post(&path, &service)
            .await?
            .refused(422, "Invalid")?;
    }
    let namespace = json!({ "metadata": { "name": "a.b" } });
    let message = server
        .post("/api/v1/namespaces", &namespace)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("metadata.name: Invalid value: \"a.b\": must not contain dots"),
        message
    );
    Ok(())
}

fn owner(kind: &str, uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "name": "y", "uid": uid, "controller": true })
}

pub(super) async fn labels_and_annotations_are_checked(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for (metadata, why) in [
        (
            json!({ "labels": { "a b": "c" } }),
            "metadata.labels: Invalid value: \"a b\": name part must consist of",
        ),
        (
            json!({ "labels": { "a/b/c": "d" } }),
            "metadata.labels: Invalid value: \"a/b/c\": a valid label key must consist of",
        ),
        (
            json!({ "labels": { "a": "b c" } }),
            "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or",
        ),
        (
            json!({ "labels": { "a": "x".repeat(64) } }),
            ": must be no more than 63 bytes",
        ),
        (
            json!({ "annotations": { "a b": "c" } }),
            "metadata.annotations: Invalid value: \"a b\": name part must",
        ),
        (
            json!({ "annotations": { "a": "x".repeat(300_000) } }),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            json!({ "finalizers": ["not qualified"] }),
            "metadata.finalizers: Invalid value: \"not qualified\": ",
        ),
        (
            json!({ "finalizers": ["bare"] }),
            "metadata.finalizers[0]: Invalid value: \"bare\": name is neither a standard finalizer name nor is it fully qualified",
        ),
        (
            json!({ "finalizers": ["orphan", "foregroundDeletion"] }),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and",
        ),
        (
            json!({ "ownerReferences": [owner("ConfigMap", "")] }),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
        (
            json!({ "ownerReferences": [owner("Event", "u")] }),
            ": /v1, Kind=Event is disallowed from being an owner",
        ),
        (
            json!({ "ownerReferences": [owner("ConfigMap", "u"), owner("ConfigMap", "v")] }),
            "Found \"true\" in references for ConfigMap/y and ConfigMap/y",
        ),
    ] {
        let mut map = json!({ "metadata": metadata });
        map["metadata"]["name"] = json!("x");
        let message = server.post(&path, &map).await?.refused(422, "Invalid")?;
        check!(message.contains(why), (why, message));
    }
    Ok(())
}

pub(super) async fn keys_of_data_are_checked(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for (data, why) in [
        (
            json!({ "data": { "a b": "1" } }),
            "data[a b]: Invalid value: \"a b\": a valid config key must consist of",
        ),
        (
            json!({ "binaryData": { "..": "YQ==" } }),
            "binaryData[..]: Invalid value: \"..\": ",
        ),
        (
            json!({ "data": { "a": "1" }, "binaryData": { "a": "YQ==" } }),
            "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
        ),
    ] {
        let mut map = data;
        map["metadata"] = json!({ "name": "x" });
        let message = server.post(&path, &map).await?.refused(422, "Invalid")?;
        check!(message.contains(why), (why, message));
    }
    Ok(())
}

pub(super) async fn a_namespace_must_exist(server: Server) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/configmaps", server.name);
    let response = server
        .post(&path, &json!({ "metadata": { "name": "one" } }))
        .await?;
    let message = response.refused(404, "NotFound")?;
    check_eq!(message, format!("namespaces \"{}\" not found", server.name));
    check_eq!(server.get(&path).await?.expect(200)?["items"], json!([]));
    Ok(())
}

/// The namespace of the object is that of the path.
pub(super) async fn namespace_of_path_must_match(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one", "namespace": "default" } });
    let message = server.post(&path, &map).await?.refused(400, "BadRequest")?;
    check_eq!(
        message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    Ok(())
}

/// The kind of the object is that of the path.
pub(super) async fn kind_of_path_must_match(server: Server) -> Result<()> {
    let maps = server.config_maps().await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "one" } });
    server
        .post(&maps, &secret)
        .await?
        .refused(400, "BadRequest")?;
    let widgets = server.widgets().await?;
    server
        .post(&widgets, &secret)
        .await?
        .refused(400, "BadRequest")?;
    let gadget = json!({ "apiVersion": "conformance.example.com/v1", "kind": "Gadget", "metadata": { "name": "one" }, "spec": {} });
    let message = server
        .post(&widgets, &gadget)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.ends_with("kind: Invalid value: \"Gadget\": must be Widget"),
        message
    );
    let untyped = json!({ "apiVersion": "conformance.example.com/v1", "metadata": { "name": "one" }, "spec": {} });
    let message = server
        .post(&widgets, &untyped)
        .await?
        .refused(400, "BadRequest")?;
    check!(message.contains("Kind"), message);
    Ok(())
}

pub(super) async fn absent_object_is_not_found(server: Server) -> Result<()> {
    let maps = server.config_maps().await?;
    let response = server.get(&format!("{maps}/none")).await?;
    check_eq!(
        response.body["details"],
        json!({ "name": "none", "kind": "configmaps" })
    );
    check_eq!(
        response.refused(404, "NotFound")?,
        r#"configmaps "none" not found"#
    );
    let widgets = server.widgets().await?;
    let response = server.get(&format!("{widgets}/none")).await?;
    check_eq!(
        response.body["details"],
        json!({ "name": "none", "group": "conformance.example.com", "kind": "widgets" })
    );
    check_eq!(
        response.refused(404, "NotFound")?,
        r#"widgets.conformance.example.com "none" not found"#
    );
    Ok(())
}

/// A kind that is not served is not found.
pub(super) async fn unserved_kind_is_not_found(server: Server) -> Result<()> {
    for path in [
        "/apis/conformance.example.com/v1/things",
        "/apis/conformance.example.com/v2/widgets",
        "/apis/other.example.com/v1/widgets",
        "/apis/conformance.example.com/v1/widgets/one",
    ] {
        let response = server.get(path).await?;
        check_eq!(
            (response.code, response.text.as_str()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
    for path in ["/api/v2/configmaps", "/nothing"] {
        check_eq!(server.get(path).await?.code, 404, "{path}");
    }
    for path in ["/api/v1/things", "/apis/apps/v1/things"] {
        let message = server.get(path).await?.refused(404, "NotFound")?;
        check_eq!(message, "the server could not find the requested resource");
    }
    Ok(())
}

/// A method that is not served is not allowed.
pub(super) async fn unserved_method_is_not_allowed(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let message = server
        .put(&path, &json!({}))
        .await?
        .refused(405, "MethodNotAllowed")?;
    check_eq!(
        message,
        "the server does not allow this method on the requested resource"
    );
    let one = format!("{path}/one");
    server
        .post(&one, &json!({}))
        .await?
        .refused(405, "MethodNotAllowed")?;
    check_eq!(
        server.send(http::Method::HEAD, &path, &[], "").await?.code,
        405
    );
    Ok(())
}

pub(super) async fn a_dry_run_stores_nothing(server: Server) -> Result<()> {
    let root = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one" }, "data": { "a": "1" } });
    let tried = server
        .post(&format!("{root}?dryRun=All"), &map)
        .await?
        .expect(201)?;
    check_eq!(name(&tried), "one");
    check_eq!(server.get(&format!("{root}/one")).await?.code, 404);
    let stored = server.create(&root, &map).await?;
    let one = format!("{root}/one");
    let mut changed = stored.clone();
    changed["data"]["a"] = json!("2");
    let tried = server
        .put(&format!("{one}?dryRun=All"), &changed)
        .await?
        .expect(200)?;
    check_eq!(tried["data"]["a"], "2");
    let patch = json!({ "data": { "a": "3" } });
    let tried = server
        .patch(&format!("{one}?dryRun=All"), crate::server::MERGE, &patch)
        .await?
        .expect(200)?;
    check_eq!(tried["data"]["a"], "3");
    server
        .delete(&format!("{one}?dryRun=All"))
        .await?
        .expect(200)?;
    server
        .delete_with(&one, &json!({ "dryRun": ["All"] }))
        .await?
        .expect(200)?;
    check_eq!(server.get(&one).await?.expect(200)?, stored);
    let message = server
        .post(&format!("{root}?dryRun=Some"), &map)
        .await?
        .refused(422, "Invalid")?;
    check!(message.contains("dryRun"), message);
    Ok(())
}

pub(super) async fn bodies_may_be_yaml(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: 'yes'\n";
    let map = server.post_as(&path, YAML, yaml).await?.expect(201)?;
    check_eq!(map["data"], json!({ "a": "yes" }));
    let response = server.post_as(&path, "text/plain", yaml).await?;
    response.refused(415, "UnsupportedMediaType")?;
    Ok(())
}

/// A body without a type is JSON.
pub(super) async fn untyped_body_is_json(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let body = json!({ "metadata": { "name": "one" } }).to_string();
    server
        .send(http::Method::POST, &path, &[], body)
        .await?
        .expect(201)?;
    Ok(())
}

/// Encodes a field of bytes in Protocol Buffers.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap_or_default();
    [&[number << 3 | 2, length], content].concat()
}

/// Bodies of built-in kinds may be protobuf.
pub(super) async fn builtin_bodies_may_be_protobuf(server: Server) -> Result<()> {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let entry = field(2, &[field(1, b"a"), field(2, b"1")].concat());
    let map = [field(1, &field(1, b"one")), entry].concat();
    let types = field(1, &[field(1, b"v1"), field(2, b"ConfigMap")].concat());
    let body = [b"k8s\0".to_vec(), types, field(2, &map)].concat();
    let root = server.config_maps().await?;
    let headers = [("Content-Type", PROTOBUF), ("Accept", "application/json")];
    let response = server
        .send(http::Method::POST, &root, &headers, body.as_slice())
        .await?;
    check_eq!(response.expect(201)?["data"], json!({ "a": "1" }));
    for bad in [&body[..20], &body[4..], b"k8s\0\xff"] {
        let response = server
            .send(http::Method::POST, &root, &headers, bad)
            .await?;
        response.refused(400, "BadRequest")?;
    }
    Ok(())
}
