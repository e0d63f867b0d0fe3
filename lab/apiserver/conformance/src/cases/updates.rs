//! Replacing objects, and the fields that an update of the object or of its status changes.

use anyhow::Result;
use serde_json::json;

use crate::server::{Server, version};

pub(super) async fn replacing_needs_the_newest_version(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let first = server
        .create(
            &path,
            &json!({ "metadata": { "name": "one" }, "data": { "a": "1" } }),
        )
        .await?;
    let one = format!("{path}/one");
    let mut second = first.clone();
    second["data"]["a"] = json!("2");
    let second = server.put(&one, &second).await?.expect(200)?;
    check!(version(&second) != version(&first), version(&second));
    let response = server.put(&one, &first).await?;
    check_eq!(
        response.refused(409, "Conflict")?,
        "Operation cannot be fulfilled on configmaps \"one\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
    Ok(())
}

/// A `ConfigMap` can be replaced without a version.
pub(super) async fn config_map_needs_no_version(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    server
        .create(
            &path,
            &json!({ "metadata": { "name": "one" }, "data": { "a": "1" } }),
        )
        .await?;
    let map = json!({ "metadata": { "name": "one" }, "data": { "b": "2" } });
    let replaced = server
        .put(&format!("{path}/one"), &map)
        .await?
        .expect(200)?;
    check_eq!(replaced["data"], json!({ "b": "2" }));
    Ok(())
}

/// A custom resource cannot be replaced without a version.
pub(super) async fn custom_resource_needs_its_version(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget",
        "metadata": { "name": "one" }, "spec": {},
    });
    server.create(&path, &widget).await?;
    let message = server
        .put(&format!("{path}/one"), &widget)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("metadata.resourceVersion: Invalid value: 0"),
        message
    );
    check!(message.contains("must be specified for an update"), message);
    Ok(())
}

pub(super) async fn replacing_does_not_create(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one" } });
    server
        .put(&format!("{path}/one"), &map)
        .await?
        .refused(404, "NotFound")?;
    Ok(())
}

/// A replaced object keeps its name and identity.
pub(super) async fn replaced_object_keeps_identity(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let first = server
        .create(&path, &json!({ "metadata": { "name": "one" } }))
        .await?;
    let one = format!("{path}/one");
    let mut renamed = first.clone();
    renamed["metadata"]["name"] = json!("other");
    let message = server
        .put(&one, &renamed)
        .await?
        .refused(400, "BadRequest")?;
    check_eq!(
        message,
        "the name of the object (other) does not match the name on the URL (one)"
    );
    let mut nameless = first.clone();
    nameless["metadata"]["name"] = json!("");
    let message = server
        .put(&one, &nameless)
        .await?
        .refused(400, "BadRequest")?;
    check_eq!(
        message,
        "the name of the object (one based on URL) was undeterminable: name must be provided"
    );
    let mut other = first.clone();
    other["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    let message = server.put(&one, &other).await?.refused(409, "Conflict")?;
    check!(
        message.contains("Precondition failed: UID in precondition: 11111111"),
        message
    );
    let mut older = first.clone();
    older["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    let response = server.put(&one, &older).await?.expect(200)?;
    check_eq!(response["metadata"], first["metadata"]);
    let mut dying = first.clone();
    dying["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let message = server.put(&one, &dying).await?.refused(422, "Invalid")?;
    check!(
        message.contains("metadata.deletionTimestamp: Invalid value"),
        message
    );
    Ok(())
}

/// A write that changes nothing keeps the version.
pub(super) async fn unchanged_write_keeps_version(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let first = server
        .create(
            &path,
            &json!({ "metadata": { "name": "one" }, "data": { "a": "1" } }),
        )
        .await?;
    let again = server
        .put(&format!("{path}/one"), &first)
        .await?
        .expect(200)?;
    check_eq!(version(&again), version(&first));
    let path = server.widgets().await?;
    let first = server
        .create(
            &path,
            &json!({
                "apiVersion": "conformance.example.com/v1", "kind": "Widget",
                "metadata": { "name": "one" }, "spec": { "color": "red" },
            }),
        )
        .await?;
    let again = server
        .put(&format!("{path}/one"), &first)
        .await?
        .expect(200)?;
    check_eq!(version(&again), version(&first));
    Ok(())
}

pub(super) async fn generation_counts_spec_changes(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let mut widget = server
        .create(
            &path,
            &json!({
                "apiVersion": "conformance.example.com/v1", "kind": "Widget",
                "metadata": { "name": "one" }, "spec": { "color": "red" },
            }),
        )
        .await?;
    let one = format!("{path}/one");
    widget["metadata"]["labels"] = json!({ "a": "b" });
    let mut widget = server.put(&one, &widget).await?.expect(200)?;
    check_eq!(widget["metadata"]["generation"], 1);
    widget["spec"]["color"] = json!("green");
    let mut widget = server.put(&one, &widget).await?.expect(200)?;
    check_eq!(widget["metadata"]["generation"], 2);
    widget["status"] = json!({ "ready": true });
    let widget = server
        .put(&format!("{one}/status"), &widget)
        .await?
        .expect(200)?;
    check_eq!(widget["metadata"]["generation"], 2);
    Ok(())
}

/// Status is written only through its own resource.
pub(super) async fn status_needs_its_subresource(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let created = server
        .create(&path, &json!({
            "apiVersion": "conformance.example.com/v1", "kind": "Widget",
            "metadata": { "name": "one" }, "spec": { "color": "red" }, "status": { "ready": true },
        }))
        .await?;
    check_eq!(created.get("status"), None);
    let (one, status) = (format!("{path}/one"), format!("{path}/one/status"));
    let mut changed = created.clone();
    changed["spec"]["color"] = json!("green");
    changed["status"] = json!({ "ready": true });
    let mut changed = server.put(&status, &changed).await?.expect(200)?;
    check_eq!(changed["spec"]["color"], "red");
    check_eq!(changed["status"], json!({ "ready": true }));
    changed["spec"]["color"] = json!("blue");
    changed["status"] = json!({ "ready": false });
    let changed = server.put(&one, &changed).await?.expect(200)?;
    check_eq!(changed["spec"]["color"], "blue");
    check_eq!(changed["status"], json!({ "ready": true }));
    check_eq!(server.get(&status).await?.expect(200)?, changed);
    let maps = server.config_maps().await?;
    server
        .create(&maps, &json!({ "metadata": { "name": "one" } }))
        .await?;
    check_eq!(server.get(&format!("{maps}/one/status")).await?.code, 404);
    Ok(())
}

/// A status write leaves metadata alone.
pub(super) async fn status_write_leaves_metadata(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let mut widget = server
        .create(
            &path,
            &json!({
                "apiVersion": "conformance.example.com/v1", "kind": "Widget",
                "metadata": { "name": "one", "labels": { "a": "1" } }, "spec": {},
            }),
        )
        .await?;
    widget["metadata"]["labels"] = json!({ "a": "2" });
    widget["status"] = json!({ "ready": true });
    let widget = server
        .put(&format!("{path}/one/status"), &widget)
        .await?
        .expect(200)?;
    check_eq!(widget["metadata"]["labels"], json!({ "a": "1" }));
    Ok(())
}

/// Of a Deployment, and of no other kind, new annotations are another generation.
pub(super) async fn annotations_change_a_deployment(server: Server) -> Result<()> {
    let path = server.collection("apis/apps/v1", "deployments").await?;
    let labels = json!({ "app": "one" });
    let mut deployment = json!({ "metadata": { "name": "annotated" }, "spec": {
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] } },
    } });
    let created = server.create(&path, &deployment).await?;
    check_eq!(created["metadata"]["generation"], 1);
    deployment["metadata"]["annotations"] = json!({ "a": "b" });
    let one = format!("{path}/annotated");
    let replaced = server.put(&one, &deployment).await?.expect(200)?;
    check_eq!(replaced["metadata"]["generation"], 2);
    Ok(())
}
