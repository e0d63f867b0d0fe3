//! Server-side apply and field ownership.

use anyhow::Result;
use serde_json::{Value, json};

use super::patches::widget;
use crate::{
    definitions::GROUP,
    server::{APPLY, MERGE, Server, text, version},
};

fn configuration(spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "metadata": { "name": "one" }, "spec": spec,
    })
}

/// Returns the managers of an object with operation and subresource, sorted.
fn managers(object: &Value) -> Vec<String> {
    let fields = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    let mut managers: Vec<_> = fields
        .map(|entry| {
            format!(
                "{} {} {}",
                text(&entry["manager"]),
                text(&entry["operation"]),
                text(&entry["subresource"])
            )
        })
        .map(|manager| manager.trim_end().to_owned())
        .collect();
    managers.sort();
    managers
}

async fn apply(server: &Server, path: &str, manager: &str, spec: Value) -> Result<Value> {
    let path = format!("{path}?fieldManager={manager}");
    let response = server.patch(&path, APPLY, &configuration(&spec)).await?;
    if response.code == 201 {
        response.expect(201)
    } else {
        response.expect(200)
    }
}

/// An apply creates an absent object.
pub(super) async fn apply_creates(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    let path = format!("{one}?fieldManager=me");
    let created = server
        .patch(&path, APPLY, &configuration(&json!({ "color": "red" })))
        .await?
        .expect(201)?;
    check_eq!(created["spec"], json!({ "color": "red", "size": 3 }));
    check_eq!(managers(&created), ["me Apply"]);
    check_eq!(
        created["metadata"]["managedFields"][0]["fieldsV1"],
        json!({ "f:spec": { "f:color": {} } })
    );
    let again = server
        .patch(&path, APPLY, &configuration(&json!({ "color": "red" })))
        .await?
        .expect(200)?;
    check_eq!(version(&again), version(&created));
    Ok(())
}

/// An apply removes the fields that it no longer contains.
pub(super) async fn apply_removes_dropped_fields(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    apply(
        &server,
        &one,
        "me",
        json!({ "color": "red", "tags": ["a"], "limits": { "a": "1", "b": "2" } }),
    )
    .await?;
    let applied = apply(
        &server,
        &one,
        "me",
        json!({ "color": "red", "limits": { "b": "2" } }),
    )
    .await?;
    check_eq!(
        applied["spec"],
        json!({ "color": "red", "size": 3, "limits": { "b": "2" } })
    );
    Ok(())
}

/// An apply leaves the fields of others alone.
pub(super) async fn apply_leaves_foreign_fields(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    apply(
        &server,
        &one,
        "me",
        json!({ "color": "red", "limits": { "a": "1" } }),
    )
    .await?;
    apply(
        &server,
        &one,
        "you",
        json!({ "size": 7, "limits": { "b": "2" } }),
    )
    .await?;
    let applied = apply(&server, &one, "me", json!({})).await?;
    check_eq!(
        applied["spec"],
        json!({ "size": 7, "limits": { "b": "2" } })
    );
    check_eq!(managers(&applied), ["me Apply", "you Apply"]);
    Ok(())
}

/// A field of two owners stays until both are done.
pub(super) async fn shared_field_outlives_one_owner(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    apply(&server, &one, "me", json!({ "color": "red" })).await?;
    apply(&server, &one, "you", json!({ "color": "red" })).await?;
    let applied = apply(&server, &one, "me", json!({})).await?;
    check_eq!(applied["spec"]["color"], "red");
    let applied = apply(&server, &one, "you", json!({})).await?;
    check_eq!(applied["spec"].get("color"), None);
    Ok(())
}

/// A field of another is a conflict.
pub(super) async fn foreign_field_conflicts(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    apply(&server, &one, "me", json!({ "color": "red" })).await?;
    let wanted = configuration(&json!({ "color": "blue" }));
    let response = server
        .patch(&format!("{one}?fieldManager=you"), APPLY, &wanted)
        .await?;
    check_eq!(
        response.body["details"]["causes"],
        json!([{ "reason": "FieldManagerConflict", "message": "conflict with \"me\"", "field": ".spec.color" }])
    );
    check_eq!(
        response.refused(409, "Conflict")?,
        "Apply failed with 1 conflict: conflict with \"me\": .spec.color"
    );
    let forced = format!("{one}?fieldManager=you&force=true");
    let applied = server.patch(&forced, APPLY, &wanted).await?.expect(200)?;
    check_eq!(applied["spec"]["color"], "blue");
    let response = server
        .patch(
            &format!("{one}?fieldManager=me"),
            APPLY,
            &configuration(&json!({ "color": "red" })),
        )
        .await?;
    response.refused(409, "Conflict")?;
    Ok(())
}

pub(super) async fn several_conflicts_are_listed(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    apply(&server, &one, "me", json!({ "color": "red" })).await?;
    server
        .patch(
            &format!("{one}?fieldManager=tool"),
            MERGE,
            &json!({ "spec": { "size": 9 } }),
        )
        .await?
        .expect(200)?;
    let wanted = configuration(&json!({ "color": "blue", "size": 1 }));
    let response = server
        .patch(&format!("{one}?fieldManager=you"), APPLY, &wanted)
        .await?;
    check_eq!(
        response.body["details"]["causes"].as_array().map(Vec::len),
        Some(2)
    );
    let message = response.refused(409, "Conflict")?;
    check!(
        message.starts_with("Apply failed with 2 conflicts: "),
        message
    );
    check!(
        message.contains("conflicts with \"tool\" using conformance.example.com/v1")
            || message.contains("conflict with \"tool\""),
        message
    );
    Ok(())
}

pub(super) async fn apply_merges_lists_by_key(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    apply(
        &server,
        &one,
        "me",
        json!({ "parts": [{ "name": "a", "count": 5 }], "unique": ["a"], "tags": ["a"] }),
    )
    .await?;
    let applied = apply(
        &server,
        &one,
        "you",
        json!({ "parts": [{ "name": "b" }], "unique": ["b"] }),
    )
    .await?;
    check_eq!(
        applied["spec"]["parts"],
        json!([{ "name": "a", "count": 5 }, { "name": "b", "count": 1 }])
    );
    check_eq!(applied["spec"]["unique"], json!(["a", "b"]));
    let response = server
        .patch(
            &format!("{one}?fieldManager=you"),
            APPLY,
            &configuration(&json!({ "tags": ["b"] })),
        )
        .await?;
    check_eq!(response.body["details"]["causes"][0]["field"], ".spec.tags");
    response.refused(409, "Conflict")?;
    let applied = apply(&server, &one, "me", json!({ "tags": ["c"] })).await?;
    check_eq!(
        applied["spec"]["parts"],
        json!([{ "name": "b", "count": 1 }])
    );
    check_eq!(applied["spec"]["unique"], json!(["b"]));
    check_eq!(applied["spec"]["tags"], json!(["c"]));
    Ok(())
}

/// An atomic list of conditions is taken whole.
pub(super) async fn atomic_conditions_are_taken_whole(server: Server) -> Result<()> {
    let path = format!("/apis/{GROUP}/v1/gadgets");
    let gadget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": { "name": server.name },
    });
    server.create(&path, &gadget).await?;
    let status = format!("{path}/{}/status", server.name);
    let [mine, yours] = ["A", "B"].map(|type_| {
        let mut gadget = gadget.clone();
        gadget["status"] = json!({ "conditions": [{ "type": type_ }] });
        gadget
    });
    let applied = server
        .patch(&format!("{status}?fieldManager=me"), APPLY, &mine)
        .await?
        .expect(200)?;
    check_eq!(
        managers(&applied).contains(&"me Apply status".to_owned()),
        true
    );
    server
        .patch(&format!("{status}?fieldManager=you"), APPLY, &yours)
        .await?
        .refused(409, "Conflict")?;
    let forced = format!("{status}?fieldManager=you&force=true");
    let applied = server.patch(&forced, APPLY, &yours).await?.expect(200)?;
    check_eq!(applied["status"]["conditions"], json!([{ "type": "B" }]));
    Ok(())
}

/// Conditions with keys are owned one by one.
pub(super) async fn keyed_conditions_are_owned_singly(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    let [mine, yours] = ["A", "B"].map(|type_| {
        let mut widget = configuration(&json!({}));
        widget["status"] = json!({ "conditions": [{ "type": type_, "status": "True" }] });
        widget
    });
    server
        .patch(&format!("{one}/status?fieldManager=me"), APPLY, &mine)
        .await?
        .expect(200)?;
    let both = server
        .patch(&format!("{one}/status?fieldManager=you"), APPLY, &yours)
        .await?
        .expect(200)?;
    check_eq!(
        both["status"]["conditions"].as_array().map(Vec::len),
        Some(2)
    );
    Ok(())
}

pub(super) async fn status_apply_does_not_create(server: Server) -> Result<()> {
    let path = format!("{}/one/status?fieldManager=me", server.widgets().await?);
    server
        .patch(&path, APPLY, &configuration(&json!({})))
        .await?
        .refused(404, "NotFound")?;
    Ok(())
}

pub(super) async fn an_apply_names_its_manager(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    let wanted = configuration(&json!({}));
    let message = server
        .patch(&one, APPLY, &wanted)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("fieldManager: Required value: is required for apply patch"),
        message
    );
    let forced = format!("{one}?fieldManager=me&force=true");
    let message = server
        .patch(&forced, MERGE, &json!({}))
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("force: Forbidden: may not be specified for non-apply patch"),
        message
    );
    Ok(())
}

/// An apply needs a type and the name in the path.
pub(super) async fn apply_needs_type_and_name(server: Server) -> Result<()> {
    let one = format!("{}/one?fieldManager=me", server.widgets().await?);
    let mut untyped = configuration(&json!({}));
    untyped["kind"] = Value::Null;
    server
        .patch(&one, APPLY, &untyped)
        .await?
        .refused(400, "BadRequest")?;
    let mut managed = configuration(&json!({}));
    managed["metadata"]["managedFields"] = json!([{ "manager": "me", "operation": "Apply" }]);
    let message = server
        .patch(&one, APPLY, &managed)
        .await?
        .refused(400, "BadRequest")?;
    check!(
        message.contains("metadata.managedFields must be nil"),
        message
    );
    let mut other = configuration(&json!({}));
    other["metadata"]["name"] = json!("other");
    server
        .patch(&one, APPLY, &other)
        .await?
        .refused(400, "BadRequest")?;
    Ok(())
}

/// An apply of a stale version is a conflict.
pub(super) async fn stale_apply_conflicts(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    let created = apply(&server, &one, "me", json!({ "color": "red" })).await?;
    apply(&server, &one, "me", json!({ "color": "blue" })).await?;
    let mut stale = configuration(&json!({ "color": "green" }));
    stale["metadata"]["resourceVersion"] = json!(version(&created));
    server
        .patch(&format!("{one}?fieldManager=me"), APPLY, &stale)
        .await?
        .refused(409, "Conflict")?;
    Ok(())
}

pub(super) async fn an_apply_may_be_yaml(server: Server) -> Result<()> {
    let one = format!("{}/one?fieldManager=me", server.widgets().await?);
    let yaml = format!(
        "apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: one}}\nspec:\n  color: red\n"
    );
    let created = server
        .send(http::Method::PATCH, &one, &[("Content-Type", APPLY)], yaml)
        .await?
        .expect(201)?;
    check_eq!(created["spec"]["color"], "red");
    Ok(())
}

/// An applied configuration is YAML, even if it looks like JSON: YAML folds the separators that JSON keeps,
/// unless they are escaped.
pub(super) async fn yaml_folds_line_separators(server: Server) -> Result<()> {
    let one = format!("{}/one?fieldManager=me", server.config_maps().await?);
    let body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"},\"data\":{\
        \"a\":\"x \u{2028} y\",\"b\":\"x \u{85} y\",\"c\":\"\u{85}\u{85}x\",\"d\":\"x \\u2028 y\\u007f\"}}";
    let headers = [("Content-Type", APPLY)];
    let created = server.send(http::Method::PATCH, &one, &headers, body);
    let read = json!({ "a": "x\u{2028}y", "b": "x y", "c": "\nx", "d": "x \u{2028} y\u{7f}" });
    check_eq!(created.await?.expect(201)?["data"], read);

    let path = server.config_maps().await?;
    let again = body.replace("one", "two");
    let created = server.post_as(&path, "application/yaml", &again).await?;
    check_eq!(created.expect(201)?["data"], read);
    Ok(())
}

pub(super) async fn yaml_refuses_control_characters(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for letter in ['\u{7f}', '\u{80}', '\u{9f}', '\u{fffe}', '\u{ffff}'] {
        let body = format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"one\"}},\
             \"data\":{{\"a\":\"x{letter}y\"}}}}"
        );
        let one = format!("{path}/one?fieldManager=me");
        let headers = [("Content-Type", APPLY)];
        let response = server.send(http::Method::PATCH, &one, &headers, body.clone());
        response.await?.refused(400, "BadRequest")?;
        let response = server.post_as(&path, "application/yaml", &body).await?;
        response.refused(400, "BadRequest")?;
    }
    Ok(())
}

/// A character beyond U+FFFF is itself in YAML, or refused: YAML does not know the escape of JSON.
pub(super) async fn yaml_refuses_surrogates(server: Server) -> Result<()> {
    let one = format!("{}/one?fieldManager=me", server.config_maps().await?);
    let headers = [("Content-Type", APPLY)];
    let body = |text: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"one\"}},\
             \"data\":{{\"a\":\"{text}\"}}}}"
        )
    };
    let escaped = server.send(http::Method::PATCH, &one, &headers, body("\\ud83d\\ude00"));
    escaped.await?.refused(400, "BadRequest")?;
    let raw = server.send(
        http::Method::PATCH,
        &one,
        &headers,
        body("\u{1f600}\u{feff}"),
    );
    check_eq!(raw.await?.expect(201)?["data"]["a"], "\u{1f600}\u{feff}");
    Ok(())
}

/// JSON keeps every text, in a create and in a patch.
pub(super) async fn json_keeps_every_text(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let texts = json!({ "a": "x \u{2028} y \u{2029}", "b": "\u{85}\u{7f}\u{9f}", "c": "\u{fffe}\u{ffff}\u{1}\0" });
    let named = json!({ "metadata": { "name": "one" }, "data": texts });
    let created = server.create(&path, &named).await?;
    check_eq!(created["data"], texts);
    let named = json!({ "metadata": { "name": "two" } });
    server.create(&path, &named).await?;
    let change = json!({ "data": texts });
    let patched = server.patch(&format!("{path}/two"), MERGE, &change).await?;
    check_eq!(patched.expect(200)?["data"], texts);
    Ok(())
}

pub(super) async fn an_apply_is_validated(server: Server) -> Result<()> {
    let one = format!("{}/one", server.widgets().await?);
    let wrong = configuration(&json!({ "color": "pink" }));
    server
        .patch(&format!("{one}?fieldManager=me"), APPLY, &wrong)
        .await?
        .refused(422, "Invalid")?;
    check_eq!(server.get(&one).await?.code, 404);
    Ok(())
}

/// Built-in kinds are applied too.
pub(super) async fn builtin_kinds_can_be_applied(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "services").await?;
    let [mine, yours] = [80, 81].map(|port| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "ports": [{ "name": format!("p{port}"), "port": port }] },
        })
    });
    let web = format!("{path}/web");
    server
        .patch(&format!("{web}?fieldManager=me"), APPLY, &mine)
        .await?
        .expect(201)?;
    let both = server
        .patch(&format!("{web}?fieldManager=you"), APPLY, &yours)
        .await?
        .expect(200)?;
    check_eq!(both["spec"]["ports"].as_array().map(Vec::len), Some(2));
    check_eq!(managers(&both), ["me Apply", "you Apply"]);
    Ok(())
}

pub(super) async fn who_wrote_what_is_remembered(server: Server) -> Result<()> {
    let root = server.config_maps().await?;
    let map =
        json!({ "metadata": { "name": "one", "labels": { "l": "1" } }, "data": { "a": "1" } });
    let created = server
        .post(&format!("{root}?fieldManager=maker"), &map)
        .await?
        .expect(201)?;
    let entry = &created["metadata"]["managedFields"][0];
    check_eq!(entry["manager"], "maker");
    check_eq!(entry["apiVersion"], "v1");
    check_eq!(entry["fieldsType"], "FieldsV1");
    check_eq!(
        entry["fieldsV1"],
        json!({
            "f:data": { ".": {}, "f:a": {} },
            "f:metadata": { "f:labels": { ".": {}, "f:l": {} } },
        })
    );
    let patch = json!({ "data": { "a": "2" } });
    let patched = server
        .patch(&format!("{root}/one?fieldManager=changer"), MERGE, &patch)
        .await?
        .expect(200)?;
    check_eq!(managers(&patched), ["changer Update", "maker Update"]);
    let changer = patched["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["manager"] == "changer");
    check_eq!(
        changer.map(|entry| entry["fieldsV1"].clone()),
        Some(json!({ "f:data": { "f:a": {} } }))
    );
    Ok(())
}

pub(super) async fn status_write_has_own_manager(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    let patch = json!({ "status": { "ready": true } });
    let patched = server
        .patch(
            &format!("{one}/status?fieldManager=reporter"),
            MERGE,
            &patch,
        )
        .await?
        .expect(200)?;
    check!(
        managers(&patched).contains(&"reporter Update status".to_owned()),
        managers(&patched)
    );
    Ok(())
}
