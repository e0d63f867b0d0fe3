//! Deletion: immediate, with finalizers, with preconditions, and its order.

use anyhow::Result;
use serde_json::{Value, json};

use crate::server::{MERGE, Server, names, version};

/// Creates a `ConfigMap` with a finalizer, and returns it with its path.
async fn held(server: &Server) -> Result<(String, Value)> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one", "finalizers": ["example.com/hold"] } });
    Ok((format!("{path}/one"), server.create(&path, &map).await?))
}

pub(super) async fn what_is_deleted_is_gone(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = server
        .create(&path, &json!({ "metadata": { "name": "one" } }))
        .await?;
    let one = format!("{path}/one");
    let status = server.delete(&one).await?.expect(200)?;
    check_eq!(
        (&status["kind"], &status["status"]),
        (&json!("Status"), &json!("Success"))
    );
    check_eq!(
        status["details"],
        json!({ "name": "one", "kind": "configmaps", "uid": map["metadata"]["uid"] })
    );
    server.get(&one).await?.refused(404, "NotFound")?;
    server.delete(&one).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(super) async fn finalizer_holds_deleted_object(server: Server) -> Result<()> {
    let (one, created) = held(&server).await?;
    let tried = server
        .delete(&format!("{one}?dryRun=All"))
        .await?
        .expect(200)?;
    check!(tried["metadata"]["deletionTimestamp"].is_string(), tried);
    check_eq!(server.get(&one).await?.expect(200)?, created);
    let deleting = server.delete(&one).await?.expect(200)?;
    check_eq!(deleting["kind"], "ConfigMap");
    let again = json!({ "metadata": { "name": "one" } });
    let message = server
        .post(&server.config_maps().await?, &again)
        .await?
        .refused(409, "AlreadyExists")?;
    check_eq!(
        message,
        "object is being deleted: configmaps \"one\" already exists"
    );
    check!(
        deleting["metadata"]["deletionTimestamp"].is_string(),
        deleting
    );
    check_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 0);
    check!(version(&deleting) != version(&created), version(&deleting));
    let again = server.delete(&one).await?.expect(200)?;
    check_eq!(version(&again), version(&deleting));
    let held = server.get(&one).await?.expect(200)?;
    check_eq!(
        held["metadata"]["deletionTimestamp"],
        deleting["metadata"]["deletionTimestamp"]
    );
    let release = json!({ "metadata": { "finalizers": null } });
    server.patch(&one, MERGE, &release).await?.expect(200)?;
    server.get(&one).await?.refused(404, "NotFound")?;
    Ok(())
}

fn finalizers(list: &[&str]) -> Value {
    json!({ "metadata": { "finalizers": list } })
}

/// One of two finalizers still holds.
pub(super) async fn remaining_finalizer_still_holds(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let one = format!("{path}/one");
    let map =
        json!({ "metadata": { "name": "one", "finalizers": ["example.com/a", "example.com/b"] } });
    server.create(&path, &map).await?;
    server.delete(&one).await?.expect(200)?;
    server
        .patch(&one, MERGE, &finalizers(&["example.com/b"]))
        .await?
        .expect(200)?;
    server.get(&one).await?.expect(200)?;
    let message = server
        .patch(
            &one,
            MERGE,
            &finalizers(&["example.com/b", "example.com/c"]),
        )
        .await?
        .refused(422, "Invalid")?;
    check!(message.contains("metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted"), message);
    server
        .patch(&one, MERGE, &finalizers(&[]))
        .await?
        .expect(200)?;
    server.get(&one).await?.refused(404, "NotFound")?;
    Ok(())
}

/// A terminating object can still change.
pub(super) async fn terminating_object_can_change(server: Server) -> Result<()> {
    let (one, _) = held(&server).await?;
    server.delete(&one).await?.expect(200)?;
    let patched = server
        .patch(&one, MERGE, &json!({ "data": { "a": "b" } }))
        .await?
        .expect(200)?;
    check_eq!(patched["data"], json!({ "a": "b" }));
    let undead = json!({ "metadata": { "deletionTimestamp": null } });
    let patched = server.patch(&one, MERGE, &undead).await?.expect(200)?;
    check!(
        patched["metadata"]["deletionTimestamp"].is_string(),
        patched
    );
    Ok(())
}

/// A custom resource with a finalizer gets a new generation.
pub(super) async fn finalized_deletion_changes_generation(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget",
        "metadata": { "name": "one", "finalizers": ["example.com/hold"] }, "spec": {},
    });
    server.create(&path, &widget).await?;
    let deleting = server.delete(&format!("{path}/one")).await?.expect(200)?;
    check_eq!(deleting["metadata"]["generation"], 2);
    Ok(())
}

pub(super) async fn a_deletion_can_have_preconditions(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = server
        .create(&path, &json!({ "metadata": { "name": "one" } }))
        .await?;
    let one = format!("{path}/one");
    for preconditions in [json!({ "uid": "other" }), json!({ "resourceVersion": "1" })] {
        let options = json!({ "preconditions": preconditions });
        let message = server
            .delete_with(&one, &options)
            .await?
            .refused(409, "Conflict")?;
        check!(
            message.starts_with("Operation cannot be fulfilled on ConfigMap \"one\": the "),
            message
        );
        check!(message.contains(" in the precondition "), message);
    }
    let right = json!({ "uid": map["metadata"]["uid"], "resourceVersion": version(&map) });
    server
        .delete_with(&one, &json!({ "preconditions": right }))
        .await?
        .expect(200)?;
    server.get(&one).await?.refused(404, "NotFound")?;
    Ok(())
}

/// A collection is deleted by selection.
pub(super) async fn collection_deletes_selection(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let map = json!({ "metadata": { "name": name, "labels": { "l": label } } });
        server.create(&path, &map).await?;
    }
    let list = server
        .delete(&format!("{path}?labelSelector=l%3Dx"))
        .await?
        .expect(200)?;
    check_eq!(list["kind"], "ConfigMapList");
    check_eq!(list["items"][0].get("kind"), None);
    check_eq!(names(&server.get(&path).await?.body), ["c"]);
    server
        .create(&path, &json!({ "metadata": { "name": "d" } }))
        .await?;
    let page = server
        .delete(&format!("{path}?limit=1"))
        .await?
        .expect(200)?;
    check_eq!(
        (names(&page), &page["metadata"]["remainingItemCount"]),
        (vec!["c"], &json!(1))
    );
    check_eq!(names(&server.get(&path).await?.body), ["d"]);
    server
        .delete(&format!("{path}?resourceVersion=abc"))
        .await?
        .refused(400, "BadRequest")?;
    server.delete(&path).await?.expect(200)?;
    check_eq!(server.get(&path).await?.body["items"], json!([]));
    Ok(())
}

/// Dependents are waited for or orphaned by a finalizer.
pub(super) async fn propagation_policy_adds_finalizer(server: Server) -> Result<()> {
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let (one, _) = held(&server).await?;
        let deleting = server
            .delete(&format!("{one}?propagationPolicy={policy}"))
            .await?
            .expect(200)?;
        let finalizers = deleting["metadata"]["finalizers"].as_array();
        check!(
            finalizers.is_some_and(|list| list.iter().any(|one| one == finalizer)),
            deleting
        );
        let release = json!({ "metadata": { "finalizers": null } });
        server.patch(&one, MERGE, &release).await?.expect(200)?;
        server.until(&one, |response| response.code == 404).await?;
    }
    let (one, _) = held(&server).await?;
    server
        .delete(&format!("{one}?propagationPolicy=Sometimes"))
        .await?
        .refused(422, "Invalid")?;
    server
        .delete(&format!("{one}?gracePeriodSeconds=x"))
        .await?
        .refused(400, "BadRequest")?;
    server
        .delete_with(&one, &json!({ "gracePeriodSeconds": "x" }))
        .await?
        .refused(400, "BadRequest")?;
    Ok(())
}

/// Nothing is made in a namespace that ends.
pub(super) async fn terminating_namespace_takes_nothing(server: Server) -> Result<()> {
    let (one, _) = held(&server).await?;
    let namespace = format!("/api/v1/namespaces/{}", server.name);
    let deleting = server.delete(&namespace).await?.expect(200)?;
    check_eq!(deleting["status"]["phase"], "Terminating");
    check!(
        deleting["metadata"]["deletionTimestamp"].is_string(),
        deleting
    );
    let maps = format!("{namespace}/configmaps");
    let response = server
        .post(&maps, &json!({ "metadata": { "name": "two" } }))
        .await?;
    check_eq!(
        response.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    let message = response.refused(403, "Forbidden")?;
    check_eq!(
        message,
        format!(
            "configmaps \"two\" is forbidden: unable to create new content in namespace {} because it is being terminated",
            server.name
        )
    );
    server.get(&one).await?.expect(200)?;
    Ok(())
}

pub(super) async fn some_namespaces_stay(server: Server) -> Result<()> {
    for name in ["default", "kube-system", "kube-public"] {
        let response = server.delete(&format!("/api/v1/namespaces/{name}")).await?;
        let message = response.refused(403, "Forbidden")?;
        check!(
            message.contains("this namespace may not be deleted"),
            message
        );
    }
    Ok(())
}
