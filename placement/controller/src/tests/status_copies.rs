//! Statuses of placements that can be read in the namespaces that they place.

use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

const COPY: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/application-1/clusterresourceplacementstatuses/crp-all";

/// Places the namespace, with a status that its users can read.
async fn place_accessible(stage: &Stage) {
    let mut new = placement("crp-all", "application-1", &json!(null));
    new["spec"]["statusReportingScope"] = json!("NamespaceAccessible");
    stage.send("POST", PLACEMENTS, &new).await;
    stage.settle().await;
}

/// A hub with the namespace, its placement, and one cluster that has it.
async fn placed() -> Stage {
    let stage = Stage::with_clusters(&["m1"]).await;
    stage.create_namespace("application-1").await;
    stage.create(&map()).await;
    place_accessible(&stage).await;
    stage.agents().await;
    stage
}

async fn status(stage: &Stage) -> Value {
    stage.get(&format!("{PLACEMENTS}/crp-all")).await["status"].clone()
}

/// Checks that the copy has the status of the placement, but for whether there is a copy.
async fn is_copied(stage: &Stage) {
    let mut said = status(stage).await;
    let last = said["conditions"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(last["type"], "ClusterResourcePlacementStatusSynced");
    assert_eq!(last["reason"], "StatusSyncSucceeded");
    assert_eq!(stage.get(COPY).await["sourceStatus"], said);
}

/// Case F116: users of the namespace read there the status of the placement; a copy that somebody deletes or edits is as before,
/// and at rest nothing is written.
#[tokio::test(start_paused = true)]
async fn namespace_has_the_status() {
    let mut stage = placed().await;
    is_copied(&stage).await;
    let owner = stage.get(COPY).await["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["kind"], "ClusterResourcePlacement");
    stage.change("DELETE", COPY, &json!({})).await;
    is_copied(&stage).await;
    let wrong = json!({ "sourceStatus": { "observedResourceIndex": "9" } });
    stage.change("PATCH", COPY, &wrong).await;
    is_copied(&stage).await;
    let edit = json!({ "data": { "key": "new" } });
    stage.change("PATCH", MAP, &edit).await;
    stage.agents().await;
    is_copied(&stage).await;
    assert_eq!(
        stage.get(COPY).await["sourceStatus"]["observedResourceIndex"],
        "1"
    );
    stage.writes();
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Case F116: without the namespace the placement says that nobody can read it there, and as soon as it is there, that it can.
#[tokio::test(start_paused = true)]
async fn absent_namespace_is_told() {
    let stage = Stage::with_clusters(&["m1"]).await;
    place_accessible(&stage).await;
    let last = conditions(&status(&stage).await).pop().unwrap();
    assert_eq!(last, "StatusSynced False StatusSyncFailed");
    stage.create_namespace("application-1").await;
    stage.settle().await;
    stage.agents().await;
    is_copied(&stage).await;
}

/// Case F116: another namespace is refused in the words that its users read where they were.
#[tokio::test(start_paused = true)]
async fn other_namespace_is_refused() {
    let stage = placed().await;
    stage.create_namespace("application-2").await;
    let selector =
        json!({ "group": "", "version": "v1", "kind": "Namespace", "name": "application-2" });
    let other = json!({ "spec": { "resourceSelectors": [selector] } });
    let path = format!("{PLACEMENTS}/crp-all");
    stage.change("PATCH", &path, &other).await;
    let first = conditions(&status(&stage).await).swap_remove(0);
    assert_eq!(first, "Scheduled False InvalidResourceSelectors");
    is_copied(&stage).await;
    let copies = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacementstatuses";
    let all = stage.list(copies).await;
    let namespaces: Vec<_> = all.iter().map(Metadata::namespace).collect();
    assert_eq!(namespaces, ["application-1"]);
}

/// Case F116: the program may die at any write.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    for allowed in 0.. {
        let mut stage = Stage::with_clusters(&["m1"]).await;
        stage.create_namespace("application-1").await;
        stage.create(&map()).await;
        stage.limit_writes(allowed);
        place_accessible(&stage).await;
        let is_whole = stage.outlive().await;
        is_copied(&stage).await;
        stage.writes();
        stage.settle().await;
        assert_eq!(stage.written(), [""; 0], "{allowed}");
        if is_whole {
            return;
        }
    }
}
