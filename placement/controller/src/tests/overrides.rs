//! The differences between clusters.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use fleet_api::definitions;
use fleet_api::names::{OVERRIDE_FINALIZER, PARENT_BINDING, PARENT_PLACEMENT};
use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

const OVERRIDE: &str = "own-value";

/// Returns an override of the placed object, with these rules.
fn of_map(placement: Option<&str>, rules: &Value) -> Value {
    let mut new = json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourceOverride",
        "metadata": { "name": OVERRIDE, "namespace": "application-1" },
        "spec": {
            "resourceSelectors": [
                { "group": "", "version": "v1", "kind": "ConfigMap", "name": "app-config-1" }],
            "policy": { "overrideRules": rules },
        },
    });
    if let Some(placement) = placement {
        new["spec"]["placement"] = json!({ "name": placement });
    }
    new
}

/// Returns a rule by which every cluster has this value.
fn value(value: &str) -> Value {
    json!([{ "clusterSelector": { "clusterSelectorTerms": [] },
        "jsonPatchOverrides": [{ "op": "replace", "path": "/data/key", "value": value }] }])
}

fn edit(rules: &Value) -> Value {
    json!({ "spec": { "policy": { "overrideRules": rules } } })
}

fn path() -> String {
    format!("{OVERRIDES}/{OVERRIDE}")
}

async fn placed(clusters: &[&str]) -> Stage {
    let stage = Stage::with_clusters(clusters).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    stage
}

/// Lets the time pass within which an override and a placement are taken for written together.
async fn minute_passes() {
    tokio::time::sleep(Duration::from_secs(70)).await;
}

async fn status(stage: &Stage) -> Value {
    stage.get(&format!("{PLACEMENTS}/crp-all")).await["status"].clone()
}

async fn names(stage: &Stage, path: &str) -> Vec<String> {
    let items = stage.list(path).await;
    items.iter().map(|item| item.name().to_owned()).collect()
}

/// Returns the reasons of the Events about the override.
async fn told(stage: &Stage) -> Vec<String> {
    let events = stage.events().await.into_iter();
    let about = events.filter(|event| {
        let regarding = event.regarding.clone().unwrap_or_default();
        regarding.kind.as_deref() == Some("ResourceOverride")
    });
    about.filter_map(|event| event.reason).collect()
}

/// Case F36: by the recorded overrides the clusters get the Works that they had there, and the placement says the same.
#[tokio::test(start_paused = true)]
async fn recorded_overrides_are_applied() {
    let mut stage = recorded_fleet().await;
    fill_overridden(&stage).await;
    for (path, recorded) in [
        (
            CLUSTER_OVERRIDES,
            recorded!("crp-over-clusterresourceoverride"),
        ),
        (
            &*OVERRIDES.replace("application-1", "app-6"),
            recorded!("crp-over-resourceoverride"),
        ),
    ] {
        let mut new = timeless(recorded);
        new["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("finalizers");
        stage.send("POST", path, &new).await;
    }
    let mut new = timeless(recorded!("crp-over-available"));
    new.as_object_mut().unwrap().remove("status");
    stage.send("POST", PLACEMENTS, &new).await;
    stage.settle().await;
    stage.agents().await;
    for recorded in recorded!("crp-over-works")["items"].as_array().unwrap() {
        let path = work_path(recorded.namespace(), recorded.name());
        let stored = stage.get(&path).await;
        assert_eq!(stored["spec"], recorded["spec"], "{path}");
        assert_eq!(
            stored["metadata"]["annotations"],
            recorded["metadata"]["annotations"]
        );
        assert!(stored.label(PARENT_BINDING).is_some());
    }
    let stored = stage.get(&format!("{PLACEMENTS}/crp-over")).await["status"].clone();
    assert_eq!(
        timeless(stored),
        timeless(recorded!("crp-over-available")["status"].clone())
    );
    // Neither time nor a restart is a reason to write.
    stage.writes();
    stage.settle().await;
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Case F36: a change of an override that names its placement goes out in waves; deleted, it is taken back.
#[tokio::test(start_paused = true)]
async fn named_override_rolls_out() {
    let stage = placed(&["m1", "m2", "m3"]).await;
    let new = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    let mut first = values(&stage).await;
    first.sort();
    assert_eq!(first, ["own", "value", "value"]);
    let held = conditions(&status(&stage).await);
    assert_eq!(held[1], "RolloutStarted False RolloutNotStartedYet");
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"; 3]);
    let told_of = status(&stage).await;
    assert_eq!(
        conditions(&told_of)[2],
        "Overridden True OverriddenSucceeded"
    );
    let applied = &told_of["placementStatuses"][0]["applicableResourceOverrides"];
    assert_eq!(
        *applied,
        json!([{ "name": "own-value-0", "namespace": "application-1" }])
    );

    stage.change("PATCH", &path(), &edit(&value("other"))).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["other"; 3]);
    let snapshots = ["own-value-0", "own-value-1"];
    assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, snapshots);

    stage.change("DELETE", &path(), &json!({})).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value"; 3]);
    assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, [""; 0]);
    assert!(stage.find(&path()).await.is_none());
    assert_eq!(told(&stage).await, [""; 0]);
}

/// Case F36: an override that names no placement says so, and goes out with the next change of something else.
#[tokio::test(start_paused = true)]
async fn unnamed_override_waits() {
    let stage = placed(&["m1"]).await;
    minute_passes().await;
    let wrote = stage
        .change("POST", OVERRIDES, &of_map(None, &value("own")))
        .await;
    let expected = [
        format!("PATCH {}", path()),
        format!("POST {OVERRIDE_SNAPSHOTS}"),
    ];
    assert_eq!(wrote, expected);
    assert_eq!(values(&stage).await, ["value"]);
    assert_eq!(told(&stage).await, ["OverrideWaitsForRollout"]);
    let more = json!({ "data": { "more": "x" } });
    stage.change("PATCH", MAP, &more).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"]);
    stage.join("m2", &json!({})).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"; 2]);
}

/// Case F36: objects that are written together arrive together: no cluster has the object without its override.
#[tokio::test(start_paused = true)]
async fn new_placement_waits_for_override() {
    let stage = Stage::with_clusters(&["m1"]).await;
    stage.create_namespace("application-1").await;
    stage.create(&map()).await;
    stage.writes();
    let new = of_map(Some("crp-all"), &value("own"));
    stage.send("POST", OVERRIDES, &new).await;
    let new = placement("crp-all", "application-1", &json!(null));
    stage.send("POST", PLACEMENTS, &new).await;
    stage.settle().await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"]);
    let wrote = stage.written();
    let works: Vec<_> = wrote
        .iter()
        .filter(|call| call.contains("/works"))
        .collect();
    assert_eq!(works.len(), 1, "{works:?}");
}

/// Case F36: where an override cannot be applied, the cluster keeps its version and is named, and others go on.
#[tokio::test(start_paused = true)]
async fn failure_names_its_cluster() {
    let stage = Stage::with_clusters(&[]).await;
    stage.join("m1", &json!({ "region": "east" })).await;
    stage.join("m2", &json!({})).await;
    place(&stage, &json!({ "placementType": "PickAll" })).await;
    stage.agents().await;
    let region = value("${MEMBER-CLUSTER-LABEL-KEY-region}");
    stage
        .change("POST", OVERRIDES, &of_map(Some("crp-all"), &region))
        .await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["east", "value"]);
    let told_of = status(&stage).await;
    assert_eq!(conditions(&told_of)[2], "Overridden False OverriddenFailed");
    let clusters = told_of["placementStatuses"].as_array().unwrap();
    let failed = clusters
        .iter()
        .find(|one| one["clusterName"] == "m2")
        .unwrap();
    let message = &failed["conditions"].as_array().unwrap().last().unwrap()["message"];
    let expected = "Failed to apply the override rules on the resources: rule 1 of ResourceOverride \
                    application-1/own-value cannot be applied to ConfigMap application-1/app-config-1 for m2: replace \
                    /data/key: the cluster has no label region";
    assert_eq!(*message, expected);
    // The label was missing.
    let label = json!({ "metadata": { "labels": { "region": "west" } } });
    stage
        .change("PATCH", &format!("{CLUSTERS}/m2"), &label)
        .await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["east", "west"]);
    let last = conditions(&status(&stage).await).pop();
    assert_eq!(last.as_deref(), Some("Available True ResourceAvailable"));
}

/// Case F61: where admission does not refuse it, an override that may not be is told of; its content before goes on.
#[tokio::test(start_paused = true)]
async fn refused_override_is_told() {
    let stage = placed(&["m1"]).await;
    let new = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    let mut rules = value("other");
    rules[0]["jsonPatchOverrides"][0]["path"] = json!("/metadata/name");
    stage.change("PATCH", &path(), &edit(&rules)).await;
    // The placement goes on meanwhile.
    let more = json!({ "data": { "more": "x" } });
    stage.change("PATCH", MAP, &more).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"]);
    assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, ["own-value-0"]);
    assert_eq!(told(&stage).await, ["OverrideRefused"]);
    stage
        .change("PATCH", &path(), &edit(&value("mended")))
        .await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["mended"]);
}

/// Case F61: an object is in one override, and in the next once that lets it go.
#[tokio::test(start_paused = true)]
async fn object_has_one_override() {
    let stage = placed(&["m1"]).await;
    let first = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &first).await;
    let mut second = of_map(Some("crp-all"), &value("second"));
    second["metadata"]["name"] = json!("second");
    stage.change("POST", OVERRIDES, &second).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"]);
    assert_eq!(told(&stage).await, ["OverrideRefused"]);
    stage.change("DELETE", &path(), &json!({})).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["second"]);
}

/// Case F36: an override of a name that was there before is another one: it does not go past the rollout.
#[tokio::test(start_paused = true)]
async fn successor_rolls_out() {
    let stage = placed(&["m1", "m2", "m3"]).await;
    let new = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    stage.agents().await;
    stage.change("DELETE", &path(), &json!({})).await;
    let next = of_map(Some("crp-all"), &value("next"));
    stage.change("POST", OVERRIDES, &next).await;
    // The first stays for those that list it.
    let snapshots = ["own-value-0", "own-value-1"];
    assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, snapshots);
    let mut first = values(&stage).await;
    first.sort();
    assert_eq!(first, ["next", "own", "own"]);
    stage.agents().await;
    assert_eq!(values(&stage).await, ["next"; 3]);
}

/// Case F36: an override for a placement that is not there says so, once its placement has had time to follow.
#[tokio::test(start_paused = true)]
async fn unknown_placement_is_told() {
    let stage = placed(&["m1"]).await;
    let mut namespaced = of_map(Some("crp-all"), &value("own"));
    namespaced["spec"]["placement"]["scope"] = json!("Namespaced");
    stage.change("POST", OVERRIDES, &namespaced).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value"]);
    let mut early = of_map(Some("later"), &value("own"));
    early["metadata"]["name"] = json!("early");
    early["spec"]["resourceSelectors"][0]["name"] = json!("other");
    stage.change("POST", OVERRIDES, &early).await;
    assert_eq!(told(&stage).await, [""; 0]);
    stage.create_namespace("later").await;
    let later = placement("later", "later", &json!(null));
    stage.change("POST", PLACEMENTS, &later).await;
    minute_passes().await;
    assert_eq!(told(&stage).await, ["OverriddenPlacementUnknown"]);
    minute_passes().await;
    assert_eq!(told(&stage).await, ["OverriddenPlacementUnknown"]);
}

/// Case F61: an override that the API does not let us snapshot stops only its own objects, and these for a minute. Its
/// author is told once.
#[tokio::test(start_paused = true)]
async fn rejected_snapshot_holds_its_own() {
    let stage = placed(&["m1"]).await;
    stage.create_namespace("other").await;
    let other = placement("other", "other", &json!(null));
    stage.send("POST", PLACEMENTS, &other).await;
    stage.settle().await;
    stage.agents().await;
    let refused = Fault::Forbidden.kind("resourceoverridesnapshots");
    stage.server.faults().inject(refused.verbs([Verb::Create]));
    let new = of_map(None, &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    let more = json!({ "data": { "more": "x" } });
    stage.send("PATCH", MAP, &more).await;
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    stage
        .send("PATCH", "/api/v1/namespaces/other", &labels)
        .await;
    stage.settle().await;
    let given = async |placement: &str| {
        let bindings = stage.list(BINDINGS).await.into_iter();
        let mut bindings = bindings.filter(|one| one.label(PARENT_PLACEMENT) == Some(placement));
        bindings.next().unwrap()["spec"]["resourceSnapshotName"].clone()
    };
    assert_eq!(given("other").await, "other-1-snapshot");
    assert_eq!(given("crp-all").await, "crp-all-0-snapshot");
    minute_passes().await;
    assert_eq!(given("crp-all").await, "crp-all-1-snapshot");
    assert_eq!(told(&stage).await, ["OverrideRefused"]);
}

/// Case F61: of many overrides of one object the oldest is taken up and each of the others is told why it is not, at once.
#[tokio::test(start_paused = true)]
async fn copies_are_told_at_once() {
    const COPIES: usize = 40;
    let stage = placed(&["m1"]).await;
    for copy in 0..COPIES {
        let mut new = of_map(None, &value("own"));
        new["metadata"]["name"] = json!(format!("copy-{copy}"));
        stage.send("POST", OVERRIDES, &new).await;
    }
    stage.settle().await;
    minute_passes().await;
    let snapshots = stage.list(OVERRIDE_SNAPSHOTS).await;
    assert_eq!(snapshots.len(), 1);
    let told = told(&stage).await.into_iter();
    let refused = told.filter(|reason| reason == "OverrideRefused");
    assert_eq!(refused.count(), COPIES - 1);
}

/// Case F61: where the API takes no Work like one that an override has made, the placement quotes its answer.
#[tokio::test(start_paused = true)]
async fn rejected_work_is_told() {
    let stage = placed(&["m1"]).await;
    let refused = Fault::Forbidden.kind("works").verbs([Verb::Patch]);
    stage.server.faults().inject(refused);
    stage
        .change("POST", OVERRIDES, &of_map(Some("crp-all"), &value("own")))
        .await;
    let says = conditions(&status(&stage).await);
    let expected = "WorkSynchronized False WorkNotSynchronizedYet";
    assert!(says.iter().any(|one| one == expected), "{says:?}");
    stage.server.faults().clear();
    minute_passes().await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"]);
}

/// Case F61: a name that does not fit into a label is refused in one line, and holds nothing.
#[tokio::test(start_paused = true)]
async fn long_name_is_refused() {
    let stage = placed(&["m1"]).await;
    let mut new = of_map(Some("crp-all"), &value("own"));
    new["metadata"]["name"] = json!("x".repeat(64));
    stage.change("POST", OVERRIDES, &new).await;
    let more = json!({ "data": { "more": "x" } });
    stage.change("PATCH", MAP, &more).await;
    let snapshots = stage.list(SNAPSHOTS).await;
    assert_eq!(snapshots.len(), 2);
    let binding = &stage.list(BINDINGS).await[0];
    assert_eq!(
        binding["spec"]["resourceSnapshotName"],
        "crp-all-1-snapshot"
    );
    assert_eq!(told(&stage).await, ["OverrideRefused"]);
}

/// Returns a selector of the clusters with this label.
fn with_env(env: &str) -> Value {
    json!({ "clusterSelectorTerms": [{ "labelSelector": { "matchLabels": { "env": env } } }] })
}

/// Case F68: all clusters get other labels at once, by which a rule takes away the object: it goes in waves, as any change
/// does.
#[tokio::test(start_paused = true)]
async fn labels_change_in_waves() {
    let clusters = ["m1", "m2", "m3"];
    let stage = placed(&clusters).await;
    let mut rules = value("own ${MEMBER-CLUSTER-NAME}");
    rules
        .as_array_mut()
        .unwrap()
        .push(json!({ "clusterSelector": with_env("canary"), "overrideType": "Delete" }));
    let new = of_map(Some("crp-all"), &rules);
    stage.change("POST", OVERRIDES, &new).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own m1", "own m2", "own m3"]);
    for cluster in clusters {
        let label = json!({ "metadata": { "labels": { "env": "canary" } } });
        let path = format!("{CLUSTERS}/{cluster}");
        stage.send("PATCH", &path, &label).await;
    }
    for left in [2, 1, 0] {
        stage.settle().await;
        let values = values(&stage).await;
        let having = values.iter().filter(|value| !value.is_empty());
        assert_eq!(having.count(), left, "{values:?}");
        for work in stage.list(ALL_WORKS).await {
            stage.answer(&work).await;
        }
    }
    stage.settle().await;
    let last = conditions(&status(&stage).await).pop();
    assert_eq!(last.as_deref(), Some("Available True ResourceAvailable"));
    // Labels that nothing reads change nothing.
    let label = json!({ "metadata": { "labels": { "other": "x" } } });
    let wrote = stage
        .change("PATCH", &format!("{CLUSTERS}/m1"), &label)
        .await;
    assert_eq!(wrote, [""; 0]);
}

/// Case F36: an override is deleted while the rollout holds some clusters at it: these keep their version, and its
/// sources, until their turn.
#[tokio::test(start_paused = true)]
async fn deleted_override_stays_listed() {
    let stage = placed(&["m1", "m2", "m3"]).await;
    let new = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    stage.agents().await;
    stage.change("DELETE", &path(), &json!({})).await;
    assert!(stage.find(&path()).await.is_none());
    assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, ["own-value-0"]);
    let mut first = values(&stage).await;
    first.sort();
    assert_eq!(first, ["own", "own", "value"]);
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value"; 3]);
    assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, [""; 0]);
}

/// Returns `true` for a kind that an older hub does not have.
fn is_newer(definition: &Value) -> bool {
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
    kind.contains("Override") || kind == "ClusterResourcePlacementEviction"
}

/// Case F69: a hub whose definitions are older than the program: its own kinds are served, and overrides as soon as
/// their kinds are.
#[tokio::test(start_paused = true)]
async fn older_hub_is_served() {
    let (newer, older): (Vec<_>, Vec<_>) = definitions().into_iter().partition(is_newer);
    assert_eq!(newer.len(), 5);
    let mut stage = Stage::serving(older);
    stage.start(&[]).await;
    stage.join("m1", &json!({})).await;
    place(&stage, &json!(null)).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value"]);
    stage.install(newer);
    stage.settle().await;
    let new = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["own"]);
}

/// Case F69: an API that starts answers before it knows every kind. The program takes no override for gone on that account.
#[tokio::test(start_paused = true)]
async fn starting_api_loses_nothing() {
    let mut stage = placed(&["m1"]).await;
    let new = of_map(Some("crp-all"), &value("own"));
    stage.change("POST", OVERRIDES, &new).await;
    stage.agents().await;
    stage.kill().await;
    stage.writes();
    let list = "/apis/placement.kubernetes-fleet.io/v1beta1/resourceoverrides";
    stage.refuse(
        &format!("GET {list}"),
        404,
        "NotFound",
        "404 page not found",
    );
    stage.start(&[]).await;
    stage.settle().await;
    assert_eq!(stage.written(), [""; 0]);
    assert_eq!(values(&stage).await, ["own"]);
}

/// Case F50: the program may die at any write of an override and its end: the next one comes to the same, and
/// then nothing is left to write.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    for allowed in 0.. {
        let mut stage = placed(&["m1", "m2"]).await;
        stage.limit_writes(allowed);
        let new = of_map(Some("crp-all"), &value("own"));
        stage.send("POST", OVERRIDES, &new).await;
        stage.settle().await;
        stage.agents().await;
        stage.send("PATCH", &path(), &edit(&value("other"))).await;
        stage.settle().await;
        let is_whole = stage.outlive().await;
        assert_eq!(values(&stage).await, ["other"; 2], "{allowed}");
        let stored = stage.get(&path()).await;
        assert_eq!(
            stored["metadata"]["finalizers"],
            json!([OVERRIDE_FINALIZER])
        );
        stage.writes();
        stage.settle().await;
        assert_eq!(stage.written(), [""; 0], "{allowed}");
        if is_whole {
            return;
        }
    }
}

/// Case F50: the same while an override ends.
#[tokio::test(start_paused = true)]
async fn any_write_may_end_it() {
    for allowed in 0.. {
        let mut stage = placed(&["m1"]).await;
        let new = of_map(Some("crp-all"), &value("own"));
        stage.change("POST", OVERRIDES, &new).await;
        stage.agents().await;
        stage.limit_writes(allowed);
        stage.send("DELETE", &path(), &json!({})).await;
        stage.settle().await;
        let is_whole = stage.outlive().await;
        assert!(stage.find(&path()).await.is_none(), "{allowed}");
        assert_eq!(names(&stage, OVERRIDE_SNAPSHOTS).await, [""; 0]);
        assert_eq!(values(&stage).await, ["value"], "{allowed}");
        if is_whole {
            return;
        }
    }
}
