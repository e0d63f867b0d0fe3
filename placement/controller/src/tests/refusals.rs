//! The demands that a placement may not make: they are told, and nothing is made of them.

use embedded_apiserver::{Fault, Injection, Verb};
use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

/// A hub with the namespace `shop`.
async fn hub() -> Stage {
    let stage = Stage::with_clusters(&[]).await;
    stage.create_namespace("shop").await;
    stage
}

async fn names(stage: &Stage, path: &str) -> Vec<String> {
    let items = stage.list(path).await;
    items.iter().map(|item| item.name().to_owned()).collect()
}

/// Returns the first condition of a placement, and its message.
async fn told(stage: &Stage, name: &str) -> (String, String) {
    let stored = stage.get(&format!("{PLACEMENTS}/{name}")).await;
    let message = stored["status"]["conditions"][0]["message"].as_str();
    let first = conditions(&stored["status"]).swap_remove(0);
    (first, message.unwrap().to_owned())
}

fn fixed(names: &[&str]) -> Value {
    json!({ "placementType": "PickFixed", "clusterNames": names })
}

/// Case F98: an edit of the policy and a wrong selector in one: no cluster loses anything before the selector is mended.
#[tokio::test(start_paused = true)]
async fn wrong_selector_moves_nobody() {
    let stage = Stage::with_clusters(&["c1", "c2"]).await;
    place(&stage, &fixed(&["c1", "c2"])).await;
    let path = format!("{PLACEMENTS}/crp-all");
    let before = bindings(&stage).await;
    assert_eq!(before.len(), 2);
    let selectors = stage.get(&path).await["spec"]["resourceSelectors"].clone();
    let twice = json!([selectors[0], selectors[0]]);
    let wrong = json!({ "spec": { "policy": fixed(&["c2"]), "resourceSelectors": twice } });
    stage.change("PATCH", &path, &wrong).await;
    let told = told(&stage, "crp-all").await.0;
    assert_eq!(told, "Scheduled False InvalidResourceSelectors");
    assert_eq!(names(&stage, POLICIES).await, ["crp-all-0"]);
    assert_eq!(bindings(&stage).await, before);

    let mended = json!({ "spec": { "resourceSelectors": selectors } });
    stage.change("PATCH", &path, &mended).await;
    assert_eq!(names(&stage, POLICIES).await, ["crp-all-0", "crp-all-1"]);
    // Nobody is left in the end.
    let nobody = json!({ "spec": { "policy": fixed(&[]) } });
    stage.change("PATCH", &path, &nobody).await;
    stage.settle().await;
    assert_eq!(bindings(&stage).await, [""; 0]);
}

/// A kind that the controller may not list is named: as long as it may not, each placed object of it would look as if it
/// were deleted. Once it may, it is placed.
#[tokio::test(start_paused = true)]
async fn forbidden_kind_is_named() {
    let stage = hub().await;
    let forbidden = Fault::Forbidden
        .kind("secrets")
        .verbs([Verb::List, Verb::Watch]);
    let fault = stage.server.faults().inject(forbidden);
    let placed = placement("shop", "shop", &json!(null));
    stage.change("POST", PLACEMENTS, &placed).await;
    let (first, message) = told(&stage, "shop").await;
    assert_eq!(first, "Scheduled False InvalidResourceSelectors");
    assert!(message.contains("may not list Secret"), "{message}");
    assert_eq!(names(&stage, SNAPSHOTS).await, [""; 0]);
    stage.server.faults().remove(fault);
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert_eq!(names(&stage, SNAPSHOTS).await, ["shop-0-snapshot"]);
}

/// Case F104: a group that does not answer, and a kind whose list always fails, are named, and hold up nobody but a placement
/// that has something of them: that would look as if it were deleted.
#[tokio::test(start_paused = true)]
async fn dead_group_holds_its_own() {
    let group = Fault::Unavailable.object("test.io");
    dead_part_holds_its_own(group, "the API group test.io").await;
    let kind = Fault::InternalError
        .kind("puppets")
        .verbs([Verb::List, Verb::Watch]);
    dead_part_holds_its_own(kind, "Puppet of test.io/v1").await;
}

async fn dead_part_holds_its_own(fault: Injection, part: &str) {
    let mut stage = Stage::with_clusters(&["c1"]).await;
    let mut puppets = puppets();
    puppets["spec"]["scope"] = json!("Namespaced");
    stage.install([puppets]);
    for namespace in ["shop", "stage"] {
        stage.create_namespace(namespace).await;
    }
    let puppet = json!({ "apiVersion": "test.io/v1", "kind": "Puppet",
        "metadata": { "name": "kasper", "namespace": "stage" } });
    stage.create(&puppet).await;
    for name in ["shop", "stage"] {
        let new = placement(name, name, &json!(null));
        stage.change("POST", PLACEMENTS, &new).await;
    }
    stage.kill().await;
    let dead = stage.server.faults().inject(fault);
    stage.start(&[]).await;
    for namespace in ["shop", "stage"] {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "page", "namespace": namespace } });
        stage.create(&map).await;
    }
    // A list that fails is tried for a while before it is told.
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    let latest = async |name: &str| {
        let snapshots = names(&stage, SNAPSHOTS).await;
        let of_it = snapshots.into_iter().filter(|one| one.starts_with(name));
        of_it.max().unwrap()
    };
    assert_eq!(latest("shop").await, "shop-1-snapshot");
    let (first, message) = told(&stage, "shop").await;
    assert_eq!(first, "Scheduled True SchedulingPolicyFulfilled");
    let told_of = format!("does not answer about {part}");
    assert!(message.contains(&told_of), "{message}");
    assert_eq!(latest("stage").await, "stage-0-snapshot");
    let (first, message) = told(&stage, "stage").await;
    assert_eq!(first, "Scheduled False InvalidResourceSelectors");
    assert!(message.contains(&told_of), "{message}");

    stage.server.faults().remove(dead);
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert_eq!(latest("stage").await, "stage-1-snapshot");
    let snapshot = stage.get(&format!("{SNAPSHOTS}/stage-1-snapshot")).await;
    let selected = snapshot["spec"]["selectedResources"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(selected, 3);
}

/// Case F106: a selector that selects nothing is named, in the condition and by an Event, and no rollout is
/// announced.
#[tokio::test(start_paused = true)]
async fn idle_selector_is_told() {
    let stage = Stage::with_clusters(&["c1"]).await;
    stage.create_namespace("storefront").await;
    let new = placement("shop", "storefrnt", &json!(null));
    stage.change("POST", PLACEMENTS, &new).await;
    stage.agents().await;
    let (first, message) = told(&stage, "shop").await;
    assert_eq!(first, "Scheduled True SchedulingPolicyFulfilled");
    let idle = "nothing is selected by Namespace \"storefrnt\"";
    assert!(message.ends_with(idle), "{message}");
    let events = stage.events().await;
    let of = |reason: &str| {
        let mut events = events.iter();
        events.find(|event| event.reason.as_deref() == Some(reason))
    };
    let told = of("PlacementSelectsNothing").unwrap();
    assert_eq!(told.note.as_deref(), Some(idle));
    assert!(of("PlacementRolloutCompleted").is_none());
}

/// Cases F9 and F10: a kind that the hub does not serve is named; once it does, it is placed.
#[tokio::test(start_paused = true)]
async fn unknown_kind_is_named() {
    let stage = hub().await;
    let mut toys = placement("toys", "shop", &json!(null));
    toys["spec"]["resourceSelectors"] =
        json!([{ "group": "test.io", "version": "v1", "kind": "Puppet" }]);
    stage.change("POST", PLACEMENTS, &toys).await;
    let (first, message) = told(&stage, "toys").await;
    assert_eq!(first, "Scheduled False InvalidResourceSelectors");
    assert!(message.contains("Puppet of test.io/v1"), "{message}");
    stage.install([puppets()]);
    stage.settle().await;
    stage.settle().await;
    assert_eq!(names(&stage, SNAPSHOTS).await, ["toys-0-snapshot"]);
}

fn puppets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "puppets.test.io" },
        "spec": {
            "group": "test.io", "scope": "Cluster",
            "names": { "kind": "Puppet", "plural": "puppets", "singular": "puppet" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    })
}

/// Case F25: without admission, a toleration can be taken away: nothing is done about that, and it is told.
#[tokio::test(start_paused = true)]
async fn tolerations_are_only_added() {
    let stage = hub().await;
    let taint = json!({ "key": "k", "operator": "Exists" });
    let policy = json!({ "placementType": "PickAll", "tolerations": [taint] });
    let new = placement("crp", "shop", &policy);
    stage.change("POST", PLACEMENTS, &new).await;
    let less = json!({ "spec": { "policy": { "tolerations": null } } });
    let path = format!("{PLACEMENTS}/crp");
    stage.change("PATCH", &path, &less).await;
    assert_eq!(names(&stage, POLICIES).await, ["crp-0"]);
    let (first, message) = told(&stage, "crp").await;
    assert_eq!(first, "Scheduled False PlacementRefused");
    assert!(message.contains("spec.policy.tolerations"), "{message}");
}
