//! Watches.

use anyhow::Result;
use serde_json::{Value, json};

use crate::server::{MERGE, Server, name, version};

/// Creates a `ConfigMap` with a label.
async fn map(server: &Server, path: &str, name: &str, label: &str) -> Result<Value> {
    let map = json!({ "metadata": { "name": name, "labels": { "l": label } } });
    server.create(path, &map).await
}

/// A watch goes on from a version.
pub(super) async fn watch_resumes_from_version(server: Server) -> Result<()> {
    let root = server.config_maps().await?;
    map(&server, &root, "before", "x").await?;
    let list = server.get(&root).await?.expect(200)?;
    let mut watch = server
        .watch(&format!(
            "{root}?watch=true&resourceVersion={}",
            version(&list)
        ))
        .await?;
    let created = map(&server, &root, "one", "x").await?;
    check_eq!(watch.expect("ADDED").await?, created);
    let patch = json!({ "data": { "a": "b" } });
    let patched = server
        .patch(&format!("{root}/one"), MERGE, &patch)
        .await?
        .expect(200)?;
    check_eq!(watch.expect("MODIFIED").await?, patched);
    server.delete(&format!("{root}/one")).await?.expect(200)?;
    let deleted = watch.expect("DELETED").await?;
    check_eq!(deleted["data"], json!({ "a": "b" }));
    check!(
        version(&deleted).parse::<u64>()? > version(&patched).parse::<u64>()?,
        version(&deleted)
    );
    Ok(())
}

/// A watch without a version begins with the present objects.
pub(super) async fn unversioned_watch_begins_with_all(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    map(&server, &path, "a", "x").await?;
    map(&server, &path, "b", "x").await?;
    for query in [
        "watch=true",
        "watch=1&resourceVersion=0",
        "watch=true&resourceVersion=",
    ] {
        let mut watch = server.watch(&format!("{path}?{query}")).await?;
        let mut found = [watch.expect("ADDED").await?, watch.expect("ADDED").await?];
        found.sort_by(|a, b| name(a).cmp(name(b)));
        check_eq!(found.each_ref().map(name), ["a", "b"]);
    }
    Ok(())
}

/// A write that changes nothing is no event.
pub(super) async fn unchanged_write_is_no_event(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let created = map(&server, &path, "one", "x").await?;
    let mut watch = server
        .watch(&format!(
            "{path}?watch=true&resourceVersion={}",
            version(&created)
        ))
        .await?;
    server
        .put(&format!("{path}/one"), &created)
        .await?
        .expect(200)?;
    let same = json!({ "metadata": { "labels": { "l": "x" } } });
    server
        .patch(&format!("{path}/one"), MERGE, &same)
        .await?
        .expect(200)?;
    map(&server, &path, "two", "x").await?;
    check_eq!(name(&watch.expect("ADDED").await?), "two");
    Ok(())
}

/// An object that leaves a selection is deleted from it.
pub(super) async fn deselected_object_is_deleted(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    map(&server, &path, "one", "in").await?;
    let mut watch = server
        .watch(&format!("{path}?watch=true&labelSelector=l%3Din"))
        .await?;
    check_eq!(name(&watch.expect("ADDED").await?), "one");
    map(&server, &path, "other", "out").await?;
    let [into, out_of] =
        ["in", "out"].map(|label| json!({ "metadata": { "labels": { "l": label } } }));
    let out = server
        .patch(&format!("{path}/one"), MERGE, &out_of)
        .await?
        .expect(200)?;
    let deleted = watch.expect("DELETED").await?;
    check_eq!(deleted["metadata"]["labels"]["l"], "in");
    check_eq!(version(&deleted), version(&out));
    server
        .patch(&format!("{path}/one"), MERGE, &into)
        .await?
        .expect(200)?;
    check_eq!(
        watch.expect("ADDED").await?["metadata"]["labels"]["l"],
        "in"
    );
    Ok(())
}

/// One object is watched by name.
pub(super) async fn name_selects_watched_object(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let mut watch = server
        .watch(&format!(
            "{path}?watch=true&fieldSelector=metadata.name%3Dtwo"
        ))
        .await?;
    map(&server, &path, "one", "x").await?;
    map(&server, &path, "two", "x").await?;
    check_eq!(name(&watch.expect("ADDED").await?), "two");
    Ok(())
}

/// A watch of all namespaces sees each.
pub(super) async fn cluster_watch_sees_every_namespace(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let label = server.name.as_str();
    let mut watch = server
        .watch(&format!(
            "/api/v1/configmaps?watch=true&labelSelector=l%3D{label}"
        ))
        .await?;
    map(&server, &path, "one", label).await?;
    check_eq!(
        watch.expect("ADDED").await?["metadata"]["namespace"],
        server.name.as_str()
    );
    Ok(())
}

pub(super) async fn initial_events_end_with_bookmark(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    map(&server, &path, "one", "x").await?;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{path}?{query}")).await?;
    check_eq!(name(&watch.expect("ADDED").await?), "one");
    let bookmark = watch.expect("BOOKMARK").await?;
    check_eq!(bookmark["kind"], "ConfigMap");
    check_eq!(
        bookmark["metadata"]["annotations"],
        json!({ "k8s.io/initial-events-end": "true" })
    );
    check!(version(&bookmark).parse::<u64>().is_ok(), bookmark);
    map(&server, &path, "two", "x").await?;
    check_eq!(name(&watch.change("ADDED").await?), "two");
    Ok(())
}

/// Initial events of nothing are a bookmark.
pub(super) async fn no_initial_events_one_bookmark(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{path}?{query}")).await?;
    let bookmark = watch.expect("BOOKMARK").await?;
    check_eq!(
        bookmark["metadata"]["annotations"],
        json!({ "k8s.io/initial-events-end": "true" })
    );
    check_eq!(bookmark["kind"], "Widget");
    Ok(())
}

pub(super) async fn initial_events_need_valid_request(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for query in [
        "watch=true&sendInitialEvents=true",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact",
        "watch=true&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true",
    ] {
        server
            .get(&format!("{path}?{query}"))
            .await?
            .refused(422, "Invalid")?;
    }
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999999";
    let mut watch = server.watch(&format!("{path}?{query}")).await?;
    let status = watch.expect("ERROR").await?;
    check_eq!(
        (&status["code"], &status["details"]["retryAfterSeconds"]),
        (&json!(504), &json!(1))
    );
    Ok(())
}

/// A watch ends after its time.
pub(super) async fn watch_ends_after_timeout(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    map(&server, &path, "one", "x").await?;
    let mut watch = server
        .watch(&format!("{path}?watch=true&timeoutSeconds=1"))
        .await?;
    check_eq!(name(&watch.expect("ADDED").await?), "one");
    check_eq!(watch.next().await?, None);
    Ok(())
}

/// A version from before the history has expired.
pub(super) async fn version_before_history_is_expired(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let mut watch = server
        .watch(&format!("{path}?watch=true&resourceVersion=1"))
        .await?;
    let status = watch.expect("ERROR").await?;
    check_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(410), &json!("Expired"))
    );
    check!(
        status["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("too old resource version: 1 (")),
        status
    );
    check_eq!(watch.next().await?, None);
    Ok(())
}

/// A watch from a version that is none is refused.
pub(super) async fn malformed_watch_version_is_refused(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    check_eq!(
        server
            .get(&format!("{path}?watch=true&resourceVersion=abc"))
            .await?
            .code,
        500
    );
    server
        .get(&format!("{path}?watch=true&continue=x"))
        .await?
        .refused(422, "Invalid")?;
    server
        .get(&format!("{path}?watch=true&labelSelector=a+b"))
        .await?
        .refused(400, "BadRequest")?;
    Ok(())
}

pub(super) async fn event_type_comes_first(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    map(&server, &path, "one", "x").await?;
    let response = server
        .get(&format!("{path}?watch=true&timeoutSeconds=1"))
        .await?;
    check!(
        response.text.starts_with(r#"{"type":"ADDED","object":{"#),
        response.text
    );
    check!(response.text.ends_with("}\n"), response.text);
    Ok(())
}

/// One object can be watched at its path.
pub(super) async fn path_selects_watched_object(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    map(&server, &path, "one", "x").await?;
    map(&server, &path, "two", "x").await?;
    let response = server
        .get(&format!("{path}/two?watch=true&timeoutSeconds=1"))
        .await?;
    check_eq!(response.body["metadata"]["name"], "two");
    Ok(())
}

pub(super) async fn finalizer_shows_deletion_as_change(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let finalized = json!({ "metadata": { "name": "one", "finalizers": ["example.com/hold"] } });
    let created = server.create(&path, &finalized).await?;
    let mut watch = server
        .watch(&format!(
            "{path}?watch=true&resourceVersion={}",
            version(&created)
        ))
        .await?;
    server.delete(&format!("{path}/one")).await?.expect(200)?;
    let deleting = watch.expect("MODIFIED").await?;
    check!(
        deleting["metadata"]["deletionTimestamp"].is_string(),
        deleting
    );
    let release = json!({ "metadata": { "finalizers": null } });
    server
        .patch(&format!("{path}/one"), MERGE, &release)
        .await?
        .expect(200)?;
    check_eq!(name(&watch.expect("DELETED").await?), "one");
    Ok(())
}
