//! Merge, JSON and strategic merge patches.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    definitions::GROUP,
    server::{JSON_PATCH, MERGE, STRATEGIC, Server, text, version},
};

/// Creates a widget, and returns it with its path.
pub(super) async fn widget(server: &Server, spec: Value) -> Result<(String, Value)> {
    let path = server.widgets().await?;
    let widget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "metadata": { "name": "one" }, "spec": spec,
    });
    Ok((format!("{path}/one"), server.create(&path, &widget).await?))
}

/// Creates a gadget with conditions, and returns it with the path of its status.
async fn gadget(server: &Server, conditions: Value) -> Result<(String, Value)> {
    let root = format!("/apis/{GROUP}/v1/gadgets");
    let gadget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": { "name": server.name },
    });
    server.create(&root, &gadget).await?;
    let status = format!("{root}/{}/status", server.name);
    let patch = json!({ "status": { "conditions": conditions } });
    let gadget = server.patch(&status, MERGE, &patch).await?.expect(200)?;
    Ok((status, gadget))
}

pub(super) async fn merge_patch_sets_and_removes(server: Server) -> Result<()> {
    let (one, _) = widget(
        &server,
        json!({ "color": "red", "tags": ["a"], "limits": { "a": "1", "b": "2" } }),
    )
    .await?;
    let patch =
        json!({ "spec": { "color": null, "tags": ["b", "c"], "limits": { "a": null, "c": "3" } } });
    let patched = server.patch(&one, MERGE, &patch).await?.expect(200)?;
    check_eq!(
        patched["spec"],
        json!({ "size": 3, "tags": ["b", "c"], "limits": { "b": "2", "c": "3" } })
    );
    Ok(())
}

/// A patch that changes nothing keeps the version.
pub(super) async fn unchanged_patch_keeps_version(server: Server) -> Result<()> {
    let (one, widget) = widget(&server, json!({ "color": "red" })).await?;
    for (type_, patch) in [
        (MERGE, json!({ "spec": { "color": "red" } })),
        (MERGE, json!({})),
        (JSON_PATCH, json!([])),
        (
            JSON_PATCH,
            json!([{ "op": "replace", "path": "/spec/color", "value": "red" }]),
        ),
    ] {
        let patched = server.patch(&one, type_, &patch).await?.expect(200)?;
        check_eq!(version(&patched), version(&widget), "{patch}");
    }
    let (status, gadget) = gadget(&server, json!([{ "type": "A" }])).await?;
    let same = json!({ "status": { "conditions": [{ "type": "A" }] } });
    let patched = server.patch(&status, MERGE, &same).await?.expect(200)?;
    check_eq!(version(&patched), version(&gadget));
    Ok(())
}

/// A patch of a stale version is a conflict.
pub(super) async fn stale_patch_conflicts(server: Server) -> Result<()> {
    let (one, widget) = widget(&server, json!({})).await?;
    let stale = version(&widget);
    server
        .patch(&one, MERGE, &json!({ "spec": { "color": "red" } }))
        .await?
        .expect(200)?;
    let patch = json!({ "metadata": { "resourceVersion": stale }, "spec": { "color": "blue" } });
    let message = server
        .patch(&one, MERGE, &patch)
        .await?
        .refused(409, "Conflict")?;
    check!(message.contains("the object has been modified"), message);
    let patch = json!([{ "op": "replace", "path": "/metadata/resourceVersion", "value": stale },
                       { "op": "replace", "path": "/spec/color", "value": "blue" }]);
    server
        .patch(&one, JSON_PATCH, &patch)
        .await?
        .refused(409, "Conflict")?;
    check_eq!(server.get(&one).await?.body["spec"]["color"], "red");
    Ok(())
}

/// A JSON patch changes in order.
pub(super) async fn json_patch_runs_in_order(server: Server) -> Result<()> {
    let (one, _) = widget(
        &server,
        json!({ "tags": ["a", "b"], "limits": { "a/b": "1" } }),
    )
    .await?;
    let patch = json!([
        { "op": "test", "path": "/spec/tags/0", "value": "a" },
        { "op": "add", "path": "/spec/tags/1", "value": "between" },
        { "op": "add", "path": "/spec/tags/-", "value": "last" },
        { "op": "remove", "path": "/spec/tags/0" },
        { "op": "replace", "path": "/spec/limits/a~1b", "value": "2" },
        { "op": "copy", "from": "/spec/limits/a~1b", "path": "/spec/limits/c" },
        { "op": "move", "from": "/spec/limits/c", "path": "/spec/limits/d" },
    ]);
    let patched = server.patch(&one, JSON_PATCH, &patch).await?.expect(200)?;
    check_eq!(
        patched["spec"],
        json!({ "size": 3, "tags": ["between", "b", "last"], "limits": { "a/b": "2", "d": "2" } })
    );
    Ok(())
}

pub(super) async fn a_failed_test_is_invalid(server: Server) -> Result<()> {
    let (one, widget) = widget(&server, json!({ "color": "red", "tags": ["a"] })).await?;
    for patch in [
        json!([{ "op": "test", "path": "/spec/color", "value": "blue" }]),
        json!([{ "op": "test", "path": "/metadata/resourceVersion", "value": "1" }]),
        json!([{ "op": "remove", "path": "/spec/on" }]),
        json!([{ "op": "replace", "path": "/spec/tags/7", "value": "x" }]),
        json!([{ "op": "add", "path": "/spec/rules/-", "value": {} }]),
        json!([{ "op": "add", "path": "/spec/a/b/c", "value": {} }]),
        json!([{ "op": "move", "from": "/spec/on", "path": "/spec/off" }]),
    ] {
        let message = server.patch(&one, JSON_PATCH, &patch).await?;
        check_eq!(
            message.refused(422, "Invalid")?,
            "the server rejected our request due to an error in our request",
            "{patch}"
        );
    }
    check_eq!(server.get(&one).await?.expect(200)?, widget);
    Ok(())
}

/// The stored text has `&`, `<` and `>` escaped, as Go's encoder does: a client that does not finds another one.
pub(super) async fn a_test_compares_bytes(server: Server) -> Result<()> {
    for (place, tag) in ["a&b", "a<b", "a>b"].into_iter().enumerate() {
        let path = server.widgets().await?;
        let widget = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": { "name": format!("w{place}") }, "spec": { "tags": [tag] },
        });
        server.create(&path, &widget).await?;
        let one = format!("{path}/w{place}");
        for (path, value) in [("/spec/tags/0", json!(tag)), ("/spec/tags", json!([tag]))] {
            let test = json!([{ "op": "test", "path": path, "value": value }]);
            server
                .patch(&one, JSON_PATCH, &test)
                .await?
                .refused(422, "Invalid")?;
        }
        let replace = json!([{ "op": "replace", "path": "/spec/tags/0", "value": "c&d" }]);
        let answer = server
            .patch(&one, JSON_PATCH, &replace)
            .await?
            .expect(200)?;
        check_eq!(answer["spec"]["tags"][0], "c&d");
    }
    Ok(())
}

/// One condition is replaced if it is as it was read.
pub(super) async fn tested_condition_is_replaced(server: Server) -> Result<()> {
    let (a, b) = (
        json!({ "type": "A", "status": "True" }),
        json!({ "type": "B", "status": "True" }),
    );
    let (status, _) = gadget(&server, json!([a, b])).await?;
    let new = json!({ "type": "B", "status": "False" });
    let patch = json!([{ "op": "test", "path": "/status/conditions/1", "value": b },
                       { "op": "replace", "path": "/status/conditions/1", "value": new }]);
    let patched = server
        .patch(&status, JSON_PATCH, &patch)
        .await?
        .expect(200)?;
    check_eq!(patched["status"]["conditions"], json!([a, new]));
    server
        .patch(&status, JSON_PATCH, &patch)
        .await?
        .refused(422, "Invalid")?;
    let append = json!([{ "op": "add", "path": "/status/conditions/-", "value": { "type": "C" } }]);
    let patched = server
        .patch(&status, JSON_PATCH, &append)
        .await?
        .expect(200)?;
    check_eq!(patched["status"]["conditions"][2], json!({ "type": "C" }));
    Ok(())
}

/// Nothing is appended to a list that is not there.
pub(super) async fn absent_list_takes_no_append(server: Server) -> Result<()> {
    let path = format!("/apis/{GROUP}/v1/gadgets");
    let gadget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": { "name": server.name },
    });
    server.create(&path, &gadget).await?;
    let append = json!([{ "op": "add", "path": "/status/conditions/-", "value": { "type": "C" } }]);
    let status = format!("{path}/{}/status", server.name);
    server
        .patch(&status, JSON_PATCH, &append)
        .await?
        .refused(422, "Invalid")?;
    Ok(())
}

/// Unknown status fields are dropped with a warning.
pub(super) async fn unknown_status_fields_are_dropped(server: Server) -> Result<()> {
    let (status, _) = gadget(&server, json!([])).await?;
    let patch = json!({ "status": { "conditions": [{ "type": "A" }], "novel": 1 } });
    let response = server.patch(&status, MERGE, &patch).await?;
    check_eq!(
        response.warnings(),
        [r#"299 - "unknown field \"status.novel\"""#]
    );
    let strict = server
        .patch(&format!("{status}?fieldValidation=Strict"), MERGE, &patch)
        .await?;
    let message = strict.refused(422, "Invalid")?;
    check!(
        message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"),
        message
    );
    check!(
        message.ends_with("}\": strict decoding error: unknown field \"status.novel\""),
        message
    );
    check_eq!(
        response.expect(200)?["status"],
        json!({ "conditions": [{ "type": "A" }] })
    );
    Ok(())
}

/// A merge patch replaces a list of conditions.
pub(super) async fn merge_patch_replaces_conditions(server: Server) -> Result<()> {
    let (status, _) = gadget(&server, json!([{ "type": "A" }, { "type": "B" }])).await?;
    let patch = json!({ "status": { "conditions": [{ "type": "C" }] } });
    let patched = server.patch(&status, MERGE, &patch).await?.expect(200)?;
    check_eq!(patched["status"]["conditions"], json!([{ "type": "C" }]));
    Ok(())
}

/// Custom resources have no strategic merge.
pub(super) async fn custom_resources_lack_strategic_merge(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    for type_ in [STRATEGIC, "application/octet-stream", "application/json"] {
        let message = server
            .patch(&one, type_, &json!({}))
            .await?
            .refused(415, "UnsupportedMediaType")?;
        check_eq!(
            message,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        );
    }
    Ok(())
}

/// A patch that is none is refused.
pub(super) async fn malformed_patch_is_refused(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    for (type_, patch) in [
        (MERGE, json!([])),
        (MERGE, json!("text")),
        (MERGE, json!(7)),
        (JSON_PATCH, json!({})),
        (JSON_PATCH, json!([1])),
        (JSON_PATCH, json!("text")),
    ] {
        let response = server.patch(&one, type_, &patch).await?;
        check_eq!(response.code, 400, "{type_} {patch}");
        response.refused(400, "BadRequest")?;
    }
    for operation in [
        json!({ "op": "twist", "path": "/spec" }),
        json!({ "path": "/spec" }),
    ] {
        let response = server.patch(&one, JSON_PATCH, &json!([operation])).await?;
        response.refused(422, "Invalid")?;
    }
    for (type_, text) in [(MERGE, "{"), (JSON_PATCH, "["), (MERGE, "")] {
        let response = server
            .send(http::Method::PATCH, &one, &[("Content-Type", type_)], text)
            .await?;
        response.refused(400, "BadRequest")?;
    }
    Ok(())
}

/// A JSON patch knows its operations.
pub(super) async fn unknown_json_operation_is_refused(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    for patch in [
        json!([{ "op": "frobnicate", "path": "/spec/color", "value": "red" }]),
        json!([{ "op": "add", "value": "red" }]),
        json!([{}]),
    ] {
        let response = server.patch(&one, JSON_PATCH, &patch).await?;
        check!(matches!(response.code, 400 | 422), (patch, response));
    }
    Ok(())
}

pub(super) async fn a_patch_needs_its_object(server: Server) -> Result<()> {
    let root = server.widgets().await?;
    for type_ in [MERGE, JSON_PATCH] {
        let patch = if type_ == MERGE { json!({}) } else { json!([]) };
        server
            .patch(&format!("{root}/none"), type_, &patch)
            .await?
            .refused(404, "NotFound")?;
        server
            .patch(&format!("{root}/none/status"), type_, &patch)
            .await?
            .refused(404, "NotFound")?;
    }
    Ok(())
}

pub(super) async fn a_patch_cannot_rename(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    let patch = json!({ "metadata": { "name": "other" } });
    server
        .patch(&one, MERGE, &patch)
        .await?
        .refused(400, "BadRequest")?;
    let patch = json!({ "metadata": { "namespace": "other" } });
    server
        .patch(&one, MERGE, &patch)
        .await?
        .refused(400, "BadRequest")?;
    let patch = json!({ "metadata": { "uid": "11111111-1111-1111-1111-111111111111" } });
    let message = server
        .patch(&one, MERGE, &patch)
        .await?
        .refused(422, "Invalid")?;
    check!(message.contains("metadata.uid: Invalid value"), message);
    let message = server
        .patch(&one, MERGE, &json!({ "metadata": { "name": null } }))
        .await?
        .refused(400, "BadRequest")?;
    check_eq!(
        message,
        "the name of the object (one based on URL) was undeterminable: name must be provided"
    );
    let message = server
        .patch(&one, MERGE, &json!({ "kind": "Gadget" }))
        .await?
        .refused(422, "Invalid")?;
    check_eq!(
        message,
        format!(
            "Gadget.{GROUP} \"one\" is invalid: kind: Invalid value: \"Gadget\": must be Widget"
        )
    );
    let message = server
        .patch(&one, MERGE, &json!({ "apiVersion": "v9" }))
        .await?
        .refused(422, "Invalid")?;
    check_eq!(
        message,
        format!("Widget \"one\" is invalid: apiVersion: Invalid value: \"v9\": must be {GROUP}/v1")
    );
    Ok(())
}

/// A patch of the object leaves its status alone.
pub(super) async fn patch_leaves_status_alone(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({ "color": "red" })).await?;
    let patch = json!({ "spec": { "color": "blue" }, "status": { "ready": true } });
    let patched = server.patch(&one, MERGE, &patch).await?.expect(200)?;
    check_eq!(
        (&patched["spec"]["color"], patched.get("status")),
        (&json!("blue"), None)
    );
    let patch = json!({ "spec": { "color": "green" }, "status": { "ready": true } });
    let patched = server
        .patch(&format!("{one}/status"), MERGE, &patch)
        .await?
        .expect(200)?;
    check_eq!(patched["spec"]["color"], "blue");
    check_eq!(patched["status"], json!({ "ready": true }));
    Ok(())
}

pub(super) async fn a_patched_object_is_validated(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({ "color": "red" })).await?;
    let patch = json!({ "spec": { "color": "pink" } });
    let message = server
        .patch(&one, MERGE, &patch)
        .await?
        .refused(422, "Invalid")?;
    check!(message.contains("Unsupported value: \"pink\""), message);
    Ok(())
}

/// Returns name, port and target of each port of a Service.
fn ports(service: &Value) -> Vec<String> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let ports = ports.map(|port| {
        let name = text(&port["name"]);
        format!("{name}:{}:{}", port["port"], port["targetPort"])
    });
    ports.collect()
}

/// A strategic merge goes by the keys of lists.
pub(super) async fn strategic_merge_uses_list_keys(server: Server) -> Result<()> {
    let root = server.collection("api/v1", "services").await?;
    let service = json!({ "metadata": { "name": "web" }, "spec": { "ports": [
        { "name": "http", "port": 80 }, { "name": "https", "port": 443 }] } });
    server.create(&root, &service).await?;
    let web = format!("{root}/web");
    let patch = json!({ "spec": { "ports": [{ "port": 443, "targetPort": 8443 }] } });
    let patched = server.patch(&web, STRATEGIC, &patch).await?.expect(200)?;
    let mut found = ports(&patched);
    found.sort();
    check_eq!(found, ["http:80:80", "https:443:8443"]);
    let patch = json!({ "spec": { "ports": [{ "name": "dns", "port": 53 }] } });
    let patched = server.patch(&web, STRATEGIC, &patch).await?.expect(200)?;
    check_eq!(ports(&patched).len(), 3);
    let patch = json!({ "spec": { "ports": [{ "port": 53, "$patch": "delete" }] } });
    let patched = server.patch(&web, STRATEGIC, &patch).await?.expect(200)?;
    check_eq!(ports(&patched).len(), 2);
    let patch =
        json!({ "spec": { "ports": [{ "$patch": "replace" }, { "name": "only", "port": 1 }] } });
    let patched = server.patch(&web, STRATEGIC, &patch).await?.expect(200)?;
    check_eq!(ports(&patched), ["only:1:1"]);
    Ok(())
}

pub(super) async fn strategic_merge_sets_and_removes(server: Server) -> Result<()> {
    let root = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one", "finalizers": ["example.com/a"] }, "data": { "a": "1", "b": "2" } });
    server.create(&root, &map).await?;
    let patch = json!({ "metadata": { "labels": { "x": "y" }, "finalizers": ["example.com/b"] }, "data": { "a": null, "c": "3" } });
    let patched = server
        .patch(&format!("{root}/one"), STRATEGIC, &patch)
        .await?
        .expect(200)?;
    check_eq!(patched["data"], json!({ "b": "2", "c": "3" }));
    check_eq!(patched["metadata"]["labels"], json!({ "x": "y" }));
    let finalizers = patched["metadata"]["finalizers"].as_array().map(Vec::len);
    check_eq!(finalizers, Some(2));
    let patch = json!({ "data": { "$patch": "replace", "d": "4" } });
    let patched = server
        .patch(&format!("{root}/one"), STRATEGIC, &patch)
        .await?
        .expect(200)?;
    check_eq!(patched["data"], json!({ "d": "4" }));
    let patch = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["example.com/a"] } });
    let patched = server
        .patch(&format!("{root}/one"), STRATEGIC, &patch)
        .await?
        .expect(200)?;
    check_eq!(patched["metadata"]["finalizers"], json!(["example.com/b"]));
    Ok(())
}

/// A strategic merge of status goes by type.
pub(super) async fn strategic_status_merges_by_type(server: Server) -> Result<()> {
    let node = json!({ "metadata": { "name": server.name } });
    server.create("/api/v1/nodes", &node).await?;
    let status = format!("/api/v1/nodes/{}/status", server.name);
    for (type_, value) in [
        ("Ready", "True"),
        ("DiskPressure", "False"),
        ("Ready", "False"),
    ] {
        let patch = json!({ "status": { "conditions": [{ "type": type_, "status": value }] } });
        server
            .patch(&status, STRATEGIC, &patch)
            .await?
            .expect(200)?;
    }
    let node = server.get(&status).await?.expect(200)?;
    let mut conditions: Vec<_> = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|condition| format!("{}={}", condition["type"], condition["status"]))
        .collect();
    conditions.sort();
    check_eq!(
        conditions,
        [r#""DiskPressure"="False""#, r#""Ready"="False""#]
    );
    Ok(())
}
