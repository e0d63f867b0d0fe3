//! Custom resources, which follow their definition.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    definitions::{DEFINITIONS, GROUP, definition, serve},
    server::{MERGE, Server},
};

fn widget(spec: &Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": { "name": "one" }, "spec": spec })
}

pub(super) async fn defaults_are_filled_in(server: Server) -> Result<()> {
    let root = server.widgets().await?;
    let created = server
        .create(
            &root,
            &widget(&json!({ "parts": [{ "name": "a" }], "size": null })),
        )
        .await?;
    check_eq!(
        created["spec"],
        json!({ "size": 3, "parts": [{ "name": "a", "count": 1 }] })
    );
    let patch = json!({ "spec": { "size": null } });
    let patched = server
        .patch(&format!("{root}/one"), MERGE, &patch)
        .await?
        .expect(200)?;
    check_eq!(patched["spec"]["size"], 3);
    Ok(())
}

/// Unknown fields are dropped with a warning.
pub(super) async fn unknown_fields_warn(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let with_unknown = widget(
        &json!({ "color": "red", "novel": 1, "parts": [{ "name": "a", "weight": 1 }], "free": { "any": { "thing": 1 } } }),
    );
    let response = server
        .post(&format!("{path}?dryRun=All"), &with_unknown)
        .await?;
    check_eq!(
        response.warnings(),
        [
            r#"299 - "unknown field \"spec.novel\"""#,
            r#"299 - "unknown field \"spec.parts[0].weight\"""#
        ]
    );
    let kept = json!({ "color": "red", "size": 3, "parts": [{ "name": "a", "count": 1 }], "free": { "any": { "thing": 1 } } });
    check_eq!(response.expect(201)?["spec"], kept);
    let response = server
        .post(
            &format!("{path}?fieldValidation=Ignore&dryRun=All"),
            &with_unknown,
        )
        .await?;
    check_eq!(response.warnings(), Vec::<&str>::new());
    let strict = server
        .post(&format!("{path}?fieldValidation=Strict"), &with_unknown)
        .await?;
    check_eq!(
        strict.refused(400, "BadRequest")?,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: \
         unknown field \"spec.novel\", unknown field \"spec.parts[0].weight\""
    );
    let wrong = "dryRun=Some&fieldValidation=Sometimes&fieldManager=a%07b";
    let message = server
        .post(&format!("{path}?{wrong}"), &with_unknown)
        .await?
        .refused(422, "Invalid")?;
    for part in [
        "fieldManager: Invalid value: \"a\\",
        "invalid character U+0007 (at position 1)",
        "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
        "fieldValidation: Unsupported value: \"Sometimes\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
    ] {
        check!(message.contains(part), (part, message));
    }
    let refused = server
        .post(&path, &widget(&json!({ "novel": 1, "size": 0 })))
        .await?;
    check_eq!(
        refused.warnings(),
        [r#"299 - "unknown field \"spec.novel\"""#]
    );
    refused.refused(422, "Invalid")?;
    Ok(())
}

/// Unknown fields of built-in kinds too.
pub(super) async fn unknown_builtin_fields_warn(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one", "novel": 1 }, "datum": { "a": "b" } });
    let response = server.post(&format!("{path}?dryRun=All"), &map).await?;
    check_eq!(
        response.warnings(),
        [
            r#"299 - "unknown field \"datum\"""#,
            r#"299 - "unknown field \"metadata.novel\"""#
        ]
    );
    let strict = server
        .post(&format!("{path}?fieldValidation=Strict"), &map)
        .await?;
    check_eq!(
        strict.refused(400, "BadRequest")?,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
         unknown field \"datum\", unknown field \"metadata.novel\""
    );
    Ok(())
}

pub(super) async fn values_are_checked(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    for (spec, message) in [
        (
            json!({ "size": 0 }),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({ "size": 101 }),
            "spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100",
        ),
        (
            json!({ "size": "a" }),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({ "color": "pink" }),
            "spec.color: Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\"",
        ),
        (
            json!({ "label": "abcdefghijk" }),
            "spec.label: Too long: may not be more than 10 bytes",
        ),
        (
            json!({ "label": "ABC" }),
            "spec.label: Invalid value: \"ABC\": spec.label in body should match '^[a-z]*$'",
        ),
        (
            json!({ "parts": [{}] }),
            "spec.parts[0].name: Required value",
        ),
        (
            json!({ "parts": [{ "name": "a" }, { "name": "a" }] }),
            "spec.parts[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            json!({ "unique": ["a", "b", "a"] }),
            "spec.unique[2]: Duplicate value: \"a\"",
        ),
        (
            json!({ "limits": { "a": 1 } }),
            "spec.limits.a: Invalid value: \"integer\": spec.limits.a in body must be of type string: \"integer\"",
        ),
        (
            json!({ "port": true }),
            "spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
        ),
        (
            json!({ "started": "yesterday" }),
            "spec.started: Invalid value: \"yesterday\": spec.started in body must be of type date-time: \"yesterday\"",
        ),
    ] {
        let response = server.post(&path, &widget(&spec)).await?;
        let expected = format!("Widget.{GROUP} \"one\" is invalid: {message}");
        check_eq!(response.refused(422, "Invalid")?, expected, "{spec}");
    }
    Ok(())
}

pub(super) async fn all_errors_are_reported(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let wrong = widget(&json!({ "size": 0, "color": "pink" }));
    let response = server.post(&path, &wrong).await?;
    let causes = response.body["details"]["causes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut fields: Vec<_> = causes
        .iter()
        .map(|cause| (cause["field"].clone(), cause["reason"].clone()))
        .collect();
    fields.sort_by_key(|(field, _)| field.to_string());
    check_eq!(
        fields,
        [
            (json!("spec.color"), json!("FieldValueNotSupported")),
            (json!("spec.size"), json!("FieldValueInvalid"))
        ]
    );
    let details = &response.body["details"];
    check_eq!(
        (&details["name"], &details["group"], &details["kind"]),
        (&json!("one"), &json!(GROUP), &json!("Widget"))
    );
    let message = response.refused(422, "Invalid")?;
    check!(message.contains("is invalid: ["), message);
    for small in [i64::from(i32::MAX) + 1, i64::from(i32::MIN) - 1] {
        server
            .post(&path, &widget(&json!({ "small": small })))
            .await?
            .refused(422, "Invalid")?;
    }
    let mut missing = widget(&json!({}));
    missing["spec"] = Value::Null;
    let message = server
        .post(&path, &missing)
        .await?
        .refused(422, "Invalid")?;
    check!(message.ends_with("spec: Required value"), message);
    Ok(())
}

/// Fields that a schema allows are kept.
pub(super) async fn allowed_unknowns_are_kept(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let spec = json!({
        "size": 100, "share": 1.5, "on": false, "port": "http", "label": "", "maybe": null, "tags": [], "limits": {},
        "started": "2026-01-02T03:04:05Z",
    });
    let created = server.create(&path, &widget(&spec)).await?;
    check_eq!(created["spec"], spec);
    let patched = server
        .patch(
            &format!("{path}/one"),
            MERGE,
            &json!({ "spec": { "port": 80, "share": 2 } }),
        )
        .await?
        .expect(200)?;
    check_eq!(
        (&patched["spec"]["port"], &patched["spec"]["share"]),
        (&json!(80), &json!(2))
    );
    Ok(())
}

/// Nulls are dropped where they may not be.
pub(super) async fn forbidden_nulls_are_dropped(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let created = server
        .create(
            &path,
            &widget(&json!({ "color": null, "tags": null, "maybe": null })),
        )
        .await?;
    check_eq!(created["spec"], json!({ "size": 3, "maybe": null }));
    Ok(())
}

pub(super) async fn status_is_checked_too(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    server.create(&path, &widget(&json!({}))).await?;
    let status = format!("{path}/one/status");
    let wrong = json!({ "status": { "ready": "yes" } });
    server
        .patch(&status, MERGE, &wrong)
        .await?
        .refused(422, "Invalid")?;
    let twice = json!({ "status": { "conditions": [{ "type": "A", "status": "True" }, { "type": "A", "status": "False" }] } });
    server
        .patch(&status, MERGE, &twice)
        .await?
        .refused(422, "Invalid")?;
    Ok(())
}

/// Returns a minimal version of a CRD.
fn version() -> Value {
    json!({
        "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
    })
}

pub(super) async fn a_definition_is_established(server: Server) -> Result<()> {
    let crd = definition("Cluster", "sprockets", "Sprocket", &version());
    serve(&server, &crd).await?;
    let stored = server
        .get(&format!("{DEFINITIONS}/sprockets.{GROUP}"))
        .await?
        .expect(200)?;
    check_eq!(
        stored["status"]["acceptedNames"],
        json!({ "plural": "sprockets", "singular": "sprocket", "kind": "Sprocket", "listKind": "SprocketList" })
    );
    check_eq!(stored["status"]["storedVersions"], json!(["v1"]));
    check_eq!(stored["spec"]["names"]["listKind"], "SprocketList");
    check_eq!(stored["spec"]["conversion"], json!({ "strategy": "None" }));
    let conditions = stored["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut types: Vec<_> = conditions
        .filter(|condition| condition["status"] == "True")
        .map(|condition| condition["type"].to_string())
        .collect();
    types.sort();
    check_eq!(types, [r#""Established""#, r#""NamesAccepted""#]);
    Ok(())
}

pub(super) async fn definition_takes_its_objects(server: Server) -> Result<()> {
    let crd = definition("Cluster", "cogs", "Cog", &version());
    serve(&server, &crd).await?;
    let path = format!("/apis/{GROUP}/v1/cogs");
    let cog = |name: &str, finalizer: &str| {
        let metadata = json!({ "name": name, "finalizers": [finalizer] });
        json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Cog", "metadata": metadata })
    };
    let held = server.post(&path, &cog("one", "hold")).await?;
    let why = "metadata.finalizers: \\\"hold\\\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
    check_eq!(held.warnings(), [format!("299 - \"{why}\"")]);
    held.expect(201)?;
    let definition_path = format!("{DEFINITIONS}/cogs.{GROUP}");
    server.delete(&definition_path).await?.expect(200)?;
    let refused = "create not allowed while custom resource definition is terminating";
    let tried = format!("{path}?dryRun=All");
    let two = cog("two", "example.com/hold").to_string();
    let response = server
        .send_until(http::Method::POST, &tried, &two, |response| {
            response.code != 201
        })
        .await?;
    let message = response.refused(403, "Forbidden")?;
    check_eq!(
        message,
        format!("cogs.{GROUP} \"two\" is forbidden: {refused}")
    );
    let release = json!({ "metadata": { "finalizers": null } });
    server
        .patch(&format!("{path}/one"), MERGE, &release)
        .await?
        .expect(200)?;
    server
        .until(&definition_path, |response| response.code == 404)
        .await?;
    server.until(&path, |response| response.code == 404).await?;
    serve(&server, &crd).await?;
    check_eq!(server.get(&path).await?.expect(200)?["items"], json!([]));
    Ok(())
}

pub(super) async fn a_definition_can_change(server: Server) -> Result<()> {
    let crd = definition("Cluster", "levers", "Lever", &version());
    serve(&server, &crd).await?;
    let path = format!("/apis/{GROUP}/v1/levers");
    server.create(&path, &json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Lever", "metadata": { "name": "one" }, "spec": { "novel": 1 } })).await?;
    let stricter = json!([{ "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value":
        { "type": "object", "properties": { "spec": { "type": "object", "properties": { "known": { "type": "string" } } } } } }]);
    server
        .patch(
            &format!("{DEFINITIONS}/levers.{GROUP}"),
            crate::server::JSON_PATCH,
            &stricter,
        )
        .await?
        .expect(200)?;
    let lever = server
        .until(&format!("{path}/one"), |response| {
            response.body["spec"].get("novel").is_none()
        })
        .await?
        .expect(200)?;
    check_eq!(lever["spec"], json!({}));
    Ok(())
}

/// Returns a definition with a change.
fn with(change: fn(&mut Value)) -> Value {
    let mut crd = definition("Cluster", "bads", "Bad", &version());
    change(&mut crd);
    crd
}

/// A definition that cannot be is refused.
pub(super) async fn impossible_definition_is_refused(server: Server) -> Result<()> {
    for (bad, part) in [
        (
            with(|crd| crd["metadata"]["name"] = json!("other")),
            "metadata.name",
        ),
        (
            with(|crd| crd["spec"]["scope"] = json!("Galaxy")),
            "spec.scope",
        ),
        (
            with(|crd| crd["spec"]["versions"] = json!([])),
            "spec.versions",
        ),
        (
            with(|crd| crd["spec"]["versions"][0]["storage"] = json!(false)),
            "spec.versions",
        ),
        (
            with(|crd| crd["spec"]["versions"][0]["schema"] = Value::Null),
            "schema",
        ),
        (
            with(|crd| {
                crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
                    json!({ "type": "array", "items": { "type": "string" } });
            }),
            "type",
        ),
        (
            with(|crd| {
                crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
                    json!({ "type": "object", "properties": { "spec": {} } });
            }),
            "properties[spec].type: ",
        ),
        (
            with(|crd| crd["spec"]["names"]["plural"] = json!("Bads")),
            "spec.names.plural",
        ),
        (with(|crd| crd["spec"]["group"] = json!("")), "spec.group"),
    ] {
        let message = server
            .post(DEFINITIONS, &bad)
            .await?
            .refused(422, "Invalid")?;
        check!(message.contains(part), (part, message));
    }
    Ok(())
}
