//! Deletion and garbage collection.

use http::Method;
use serde_json::{Value, json};

use super::{CONFIG_MAPS, REMEDIES, TASKS, config_map, remedy, server, task};
use crate::ApiServer;

const NAMESPACES: &str = "/api/v1/namespaces";

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

fn owned(mut object: Value, owner: &Value, blocks: bool) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }]);
    object
}

async fn release(server: &ApiServer, path: &str) {
    server
        .merge(path, &json!({"metadata": {"finalizers": null}}))
        .await
        .ok();
}

/// An object without finalizers is gone at once.
#[tokio::test]
async fn unfinalized_object_goes_at_once() {
    let server = server();
    server.post(REMEDIES, &remedy("a")).await.ok();
    let response = server.delete(&format!("{REMEDIES}/a")).await.ok();
    assert_eq!(
        (&response["kind"], &response["status"]),
        (&json!("Status"), &json!("Success"))
    );
    assert_eq!(response["details"]["group"], "remedy.example.com");
    server
        .delete(&format!("{REMEDIES}/a"))
        .await
        .fails(404, "NotFound");
}

/// A finalizer holds an object until it is removed.
#[tokio::test]
async fn finalizer_holds_object() {
    let server = server();
    let path = format!("{REMEDIES}/a");
    server.post(REMEDIES, &held(remedy("a"))).await.ok();
    let waiting = server.delete(&path).await.ok();
    assert_eq!(
        waiting["metadata"]["deletionTimestamp"],
        "2026-01-01T00:00:00Z"
    );
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(waiting["metadata"]["generation"], 2);
    assert_eq!(server.delete(&path).await.ok(), waiting);
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    server.merge(&path, &more).await.fails(422, "Invalid");
    release(&server, &path).await;
    server.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn preconditions_guard_a_deletion() {
    let server = server();
    let path = format!("{REMEDIES}/a");
    let made = server.post(REMEDIES, &remedy("a")).await.ok();
    let delete = async |preconditions: Value| {
        let options = json!({"kind": "DeleteOptions", "preconditions": preconditions});
        let type_ = "application/json";
        server
            .request(Method::DELETE, &path, type_, options.to_string())
            .await
    };
    delete(json!({"uid": "other"})).await.fails(409, "Conflict");
    delete(json!({"resourceVersion": "1"}))
        .await
        .fails(409, "Conflict");
    delete(json!({"uid": made["metadata"]["uid"]})).await.ok();
}

#[tokio::test]
async fn namespace_takes_its_contents() {
    let server = server();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}});
    let made = server.post(NAMESPACES, &namespace).await.ok();
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "ns"
    );
    let inside = CONFIG_MAPS.replace("default", "ns");
    server.post(&inside, &config_map("a")).await.ok();
    server.post(&inside, &held(config_map("b"))).await.ok();
    let going = server.delete(&format!("{NAMESPACES}/ns")).await.ok();
    assert_eq!(going["status"]["phase"], "Terminating");
    server
        .get(&format!("{inside}/a"))
        .await
        .fails(404, "NotFound");
    server
        .post(&inside, &config_map("c"))
        .await
        .fails(403, "Forbidden");
    release(&server, &format!("{inside}/b")).await;
    server
        .get(&format!("{NAMESPACES}/ns"))
        .await
        .fails(404, "NotFound");
    server
        .post(&inside, &config_map("c"))
        .await
        .fails(404, "NotFound");
    server
        .delete(&format!("{NAMESPACES}/default"))
        .await
        .fails(403, "Forbidden");
}

#[tokio::test]
async fn definition_takes_its_objects() {
    let server = server();
    server.post(REMEDIES, &held(remedy("a"))).await.ok();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = format!("{definitions}/remedies.remedy.example.com");
    server.delete(&path).await.ok();
    let going = server.get(&path).await.ok();
    assert!(!going["metadata"]["deletionTimestamp"].is_null());
    release(&server, &format!("{REMEDIES}/a")).await;
    server.get(&path).await.fails(404, "NotFound");
    let gone = server.get(REMEDIES).await;
    assert_eq!(
        (gone.code.as_u16(), &gone.body[..]),
        (404, &b"404 page not found\n"[..])
    );
    server.get(TASKS).await.ok();
}

/// What nobody owns any more goes.
#[tokio::test]
async fn unowned_object_is_collected() {
    let server = server();
    let owner = server.post(TASKS, &task("owner")).await.ok();
    let child = server
        .post(CONFIG_MAPS, &owned(config_map("child"), &owner, false))
        .await
        .ok();
    server
        .post(CONFIG_MAPS, &owned(config_map("grandchild"), &child, false))
        .await
        .ok();
    server.delete(&format!("{TASKS}/owner")).await.ok();
    assert_eq!(server.get(CONFIG_MAPS).await.ok()["items"], json!([]));
}

/// An orphan stays and forgets its owner.
#[tokio::test]
async fn orphan_forgets_its_owner() {
    let server = server();
    let owner = server.post(TASKS, &task("owner")).await.ok();
    server
        .post(CONFIG_MAPS, &owned(config_map("child"), &owner, false))
        .await
        .ok();
    server
        .delete(&format!("{TASKS}/owner?propagationPolicy=Orphan"))
        .await
        .ok();
    server
        .get(&format!("{TASKS}/owner"))
        .await
        .fails(404, "NotFound");
    let child = server.get(&format!("{CONFIG_MAPS}/child")).await.ok();
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}

/// An owner deleted in the foreground waits for its dependents.
#[tokio::test]
async fn foreground_owner_waits_for_dependents() {
    let server = server();
    let owner = server.post(TASKS, &task("owner")).await.ok();
    server
        .post(CONFIG_MAPS, &held(owned(config_map("child"), &owner, true)))
        .await
        .ok();
    let path = format!("{TASKS}/owner");
    server
        .delete(&format!("{path}?propagationPolicy=Foreground"))
        .await
        .ok();
    let waiting = server.get(&path).await.ok();
    assert_eq!(
        waiting["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    release(&server, &format!("{CONFIG_MAPS}/child")).await;
    server.get(&path).await.fails(404, "NotFound");
}

/// A collection is deleted as far as it is selected.
#[tokio::test]
async fn collection_deletes_selection() {
    let server = server();
    for name in ["a", "b"] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"name": name});
        server.post(CONFIG_MAPS, &object).await.ok();
    }
    server
        .delete(&format!("{CONFIG_MAPS}?labelSelector=name%3Da"))
        .await
        .ok();
    let left = server.get(CONFIG_MAPS).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
}
