//! Garbage collection, which the server does by itself.

use serde_json::{Value, json};

use super::{CONFIG_MAPS, TASKS, config_map, server, task};
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

/// An object without an owner left goes.
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
