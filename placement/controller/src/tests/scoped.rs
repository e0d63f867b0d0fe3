//! Placements of namespaces.

use fleet_api::definitions;
use fleet_api::names::{PARENT_BINDING, PARENT_NAMESPACE, PARENT_PLACEMENT};
use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

const API: &str = "/apis/placement.kubernetes-fleet.io/v1beta1";

/// The kinds of the objects of a placement of a namespace.
const KINDS: [&str; 4] = [
    "resourceplacements",
    "schedulingpolicysnapshots",
    "resourcesnapshots",
    "resourcebindings",
];

/// The kinds of its updates.
const UPDATES: [&str; 3] = [
    "stagedupdatestrategies",
    "stagedupdateruns",
    "approvalrequests",
];

/// The conditions of a placement that is available in all of its clusters.
const COMPLETE: [&str; 6] = [
    "ResourcePlacementScheduled True SchedulingPolicyFulfilled",
    "ResourcePlacementRolloutStarted True RolloutStarted",
    "ResourcePlacementOverridden True NoOverrideSpecified",
    "ResourcePlacementWorkSynchronized True WorkSynchronized",
    "ResourcePlacementApplied True ApplySucceeded",
    "ResourcePlacementAvailable True ResourceAvailable",
];

fn path(namespace: &str, kind: &str) -> String {
    format!("{API}/namespaces/{namespace}/{kind}")
}

/// Returns the path of the placement `web` of a namespace.
fn web(namespace: &str) -> String {
    format!("{}/web", path(namespace, "resourceplacements"))
}

/// Returns the placement `web` of one object in a namespace, by its kind and name.
fn placing(namespace: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourcePlacement",
        "metadata": { "name": "web", "namespace": namespace },
        "spec": {
            "resourceSelectors": [{ "group": "", "version": "v1", "kind": kind, "name": name }],
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "unavailablePeriodSeconds": 1 } },
        },
    })
}

/// Creates a namespace with the map in it.
async fn fill(stage: &Stage, namespace: &str) {
    stage.create_namespace(namespace).await;
    let mut map = map();
    map["metadata"]["namespace"] = json!(namespace);
    map["data"]["key"] = json!(namespace);
    stage.create(&map).await;
}

/// Fills a namespace and places the map in it.
async fn place_map(stage: &Stage, namespace: &str) {
    fill(stage, namespace).await;
    let new = placing(namespace, "ConfigMap", "app-config-1");
    let placements = path(namespace, "resourceplacements");
    stage.send("POST", &placements, &new).await;
    stage.settle().await;
}

/// Returns the conditions of the placement of a namespace.
async fn said(stage: &Stage, namespace: &str) -> Vec<String> {
    conditions(&stage.get(&web(namespace)).await["status"])
}

/// Returns the name of each Work of a cluster, with the value of the map in it.
async fn works(stage: &Stage, cluster: &str) -> Vec<String> {
    let works = stage.list(ALL_WORKS).await.into_iter();
    let works = works.filter(|work| work.namespace() == format!("fleet-member-{cluster}"));
    let mut shown: Vec<_> = works
        .map(|work| {
            let manifests = work["spec"]["workload"]["manifests"].as_array().unwrap();
            let value = manifests.last().unwrap()["data"]["key"].clone();
            format!("{} {}", work.name(), value.as_str().unwrap())
        })
        .collect();
    shown.sort();
    shown
}

/// Case F92: a placement of a namespace becomes bindings and snapshots there, Works that say of which namespace they are, and
/// a status and Events of its own kind.
#[tokio::test(start_paused = true)]
async fn namespace_has_its_placement() {
    let stage = Stage::with_clusters(&["m1", "m2"]).await;
    place_map(&stage, "application-1").await;
    stage.agents().await;
    assert_eq!(said(&stage, "application-1").await, COMPLETE);
    let status = stage.get(&web("application-1")).await["status"].clone();
    let selected = json!([{ "version": "v1", "kind": "ConfigMap", "name": "app-config-1",
        "namespace": "application-1" }]);
    assert_eq!(status["selectedResources"], selected);
    let clusters = status["placementStatuses"].as_array().unwrap();
    assert_eq!(clusters.len(), 2);

    let master = path("application-1", "resourcesnapshots/web-0-snapshot");
    let snapshot = stage.get(&master).await;
    let owner = &snapshot["metadata"]["ownerReferences"][0];
    assert_eq!(
        [&owner["kind"], &owner["name"]],
        ["ResourcePlacement", "web"]
    );
    let bindings = stage.list(&path("application-1", "resourcebindings")).await;
    let binding = bindings.first().unwrap();
    assert_eq!(binding["spec"]["resourceSnapshotName"], "web-0-snapshot");
    assert_eq!(binding["spec"]["schedulingPolicySnapshotName"], "web-0");
    assert_eq!(binding.label(PARENT_PLACEMENT), Some("web"));
    let cluster = binding["spec"]["targetCluster"].as_str().unwrap();
    let work = work_path(&format!("fleet-member-{cluster}"), "application-1.web-work");
    let work = stage.get(&work).await;
    assert_eq!(work.label(PARENT_PLACEMENT), Some("web"));
    assert_eq!(work.label(PARENT_NAMESPACE), Some("application-1"));
    assert_eq!(work.label(PARENT_BINDING), Some(binding.name()));
    assert_eq!(stage.list(BINDINGS).await.len(), 0);

    let events = stage.events().await;
    let events = events.iter().map(|event| {
        let regarding = event.regarding.clone().unwrap_or_default();
        [regarding.kind, regarding.namespace, event.reason.clone()]
    });
    let events: Vec<_> = events.collect();
    for reason in ["PlacementApplied", "PlacementRolloutCompleted"] {
        let event =
            ["ResourcePlacement", "application-1", reason].map(|text| Some(text.to_owned()));
        assert!(events.contains(&event), "{events:?}");
    }
}

/// Case F90: a placement of a namespace selects in it: a kind without one, or a namespace, is refused by name and nothing is made.
#[tokio::test(start_paused = true)]
async fn rest_of_hub_is_refused() {
    let stage = Stage::with_clusters(&["m1"]).await;
    fill(&stage, "application-1").await;
    let new = placing("application-1", "Namespace", "application-1");
    let placements = path("application-1", "resourceplacements");
    stage.send("POST", &placements, &new).await;
    stage.settle().await;
    let first = "ResourcePlacementScheduled False InvalidResourceSelectors";
    assert_eq!(said(&stage, "application-1").await, [first]);
    let status = stage.get(&web("application-1")).await["status"].clone();
    let message = "The resource selectors are invalid: Namespace of v1 is cluster-scoped, and a ResourcePlacement selects objects of its namespace only";
    assert_eq!(status["conditions"][0]["message"], message);
    let resources = path("application-1", "resourcesnapshots");
    assert_eq!(stage.list(&resources).await.len(), 0);
    let mended = placing("application-1", "ConfigMap", "app-config-1");
    let mended = json!({ "spec": mended["spec"] });
    stage.change("PATCH", &web("application-1"), &mended).await;
    stage.agents().await;
    assert_eq!(said(&stage, "application-1").await, COMPLETE);
}

/// Case F91: placements of two namespaces and one of none have one name and place the map, each its own; one goes, and the
/// others do not notice.
#[tokio::test(start_paused = true)]
async fn namesakes_do_not_meet() {
    let stage = Stage::with_clusters(&["m1"]).await;
    for namespace in ["application-1", "application-2"] {
        place_map(&stage, namespace).await;
    }
    fill(&stage, "whole").await;
    let whole = placement("web", "whole", &json!(null));
    stage.send("POST", PLACEMENTS, &whole).await;
    stage.settle().await;
    stage.agents().await;
    let all = [
        "application-1.web-work application-1",
        "application-2.web-work application-2",
        "web-work whole",
    ];
    assert_eq!(works(&stage, "m1").await, all);

    let edit = json!({ "data": { "key": "edited" } });
    stage.change("PATCH", MAP, &edit).await;
    stage.agents().await;
    let edited = [
        "application-1.web-work edited",
        "application-2.web-work application-2",
        "web-work whole",
    ];
    assert_eq!(works(&stage, "m1").await, edited);
    for (namespace, index) in [("application-1", "1"), ("application-2", "0")] {
        let placement = stage.get(&web(namespace)).await;
        assert_eq!(placement["status"]["observedResourceIndex"], index);
    }

    stage
        .change("DELETE", &format!("{PLACEMENTS}/web"), &json!({}))
        .await;
    stage.agents().await;
    assert_eq!(works(&stage, "m1").await, edited[..2]);
    stage
        .change("DELETE", &web("application-1"), &json!({}))
        .await;
    stage.agents().await;
    assert_eq!(works(&stage, "m1").await, edited[1..2]);
    for kind in KINDS {
        let left = stage.list(&path("application-1", kind)).await;
        assert_eq!(left.len(), 0, "{kind}");
        let left = stage.list(&path("application-2", kind)).await;
        assert_eq!(left.len(), 1, "{kind}");
    }
}

/// Returns an override of the map in a namespace, with its words about a placement.
fn override_of_map(name: &str, placement: &Value, key: &str) -> Value {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourceOverride",
        "metadata": { "name": name, "namespace": "application-1" },
        "spec": {
            "placement": placement,
            "resourceSelectors": [
                { "group": "", "version": "v1", "kind": "ConfigMap", "name": "app-config-1" }],
            "policy": { "overrideRules": [{ "clusterSelector": {}, "jsonPatchOverrides": [
                { "op": "add", "path": "/data/key", "value": key }] }] },
        },
    })
}

/// Case F93: an override for a placement of its namespace applies to that, and not to the placement of the hub that has the
/// same name and object; changed to the other, the other way round.
#[tokio::test(start_paused = true)]
async fn override_says_its_scope() {
    for (scope, expected) in [
        ("Namespaced", ["own", "application-1"]),
        ("Cluster", ["application-1", "own"]),
    ] {
        let stage = Stage::with_clusters(&["m1"]).await;
        place_map(&stage, "application-1").await;
        let whole = placement("web", "application-1", &json!(null));
        stage.send("POST", PLACEMENTS, &whole).await;
        let named = json!({ "name": "web", "scope": scope });
        let new = override_of_map("own", &named, "own");
        stage.change("POST", OVERRIDES, &new).await;
        stage.agents().await;
        let [of_namespace, of_hub] = expected;
        let expected = [
            format!("application-1.web-work {of_namespace}"),
            format!("web-work {of_hub}"),
        ];
        assert_eq!(works(&stage, "m1").await, expected, "{scope}");
        let status = stage.get(&web("application-1")).await["status"].clone();
        let applied = &status["placementStatuses"][0]["applicableResourceOverrides"];
        let own = json!([{ "name": "own-0", "namespace": "application-1" }]);
        assert_eq!(*applied == own, scope == "Namespaced", "{applied}");
        stage
            .change("DELETE", &format!("{OVERRIDES}/own"), &json!({}))
            .await;
        stage.agents().await;
        assert_eq!(said(&stage, "application-1").await, COMPLETE, "{scope}");
        let none =
            ["application-1.web-work", "web-work"].map(|name| format!("{name} application-1"));
        assert_eq!(works(&stage, "m1").await, none, "{scope}");
    }
}

/// Case F93: an override for a placement of its namespace that is not there says so.
#[tokio::test(start_paused = true)]
async fn absent_placement_is_told() {
    let stage = Stage::with_clusters(&["m1"]).await;
    fill(&stage, "application-1").await;
    let whole = placement("web", "application-1", &json!(null));
    stage.send("POST", PLACEMENTS, &whole).await;
    let named = json!({ "name": "web", "scope": "Namespaced" });
    let new = override_of_map("own", &named, "own");
    stage.send("POST", OVERRIDES, &new).await;
    tokio::time::sleep(std::time::Duration::from_secs(70)).await;
    let events = stage.events().await.into_iter();
    let told = events.filter(|one| one.reason.as_deref() == Some("OverriddenPlacementUnknown"));
    let notes: Vec<_> = told.filter_map(|one| one.note).collect();
    let note = "There is no ResourcePlacement web in the namespace of the override";
    assert_eq!(notes, [note]);
}

/// Case F10: a kind that is installed later, and the first object of it, are placed out of a namespace as those that were there.
#[tokio::test(start_paused = true)]
async fn later_kind_is_placed() {
    let stage = Stage::with_clusters(&["m1"]).await;
    fill(&stage, "application-1").await;
    let mut new = placing("application-1", "Puppet", "first");
    new["spec"]["resourceSelectors"][0]["group"] = json!("test.io");
    let placements = path("application-1", "resourceplacements");
    stage.send("POST", &placements, &new).await;
    stage.settle().await;
    let first = "ResourcePlacementScheduled False InvalidResourceSelectors";
    assert_eq!(said(&stage, "application-1").await, [first]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "puppets.test.io" },
        "spec": {
            "group": "test.io", "scope": "Namespaced",
            "names": { "kind": "Puppet", "plural": "puppets", "singular": "puppet" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    stage.install([definition]);
    stage.settle().await;
    let puppet = json!({ "apiVersion": "test.io/v1", "kind": "Puppet",
        "metadata": { "name": "first", "namespace": "application-1" } });
    stage.create(&puppet).await;
    stage.settle().await;
    stage.agents().await;
    assert_eq!(said(&stage, "application-1").await, COMPLETE);
    let status = stage.get(&web("application-1")).await["status"].clone();
    assert_eq!(status["selectedResources"][0]["kind"], "Puppet");
}

/// Case F115: a run of a namespace updates the placement there, with an approval there; the run of the hub with the same names
/// finds no placement.
#[tokio::test(start_paused = true)]
async fn run_updates_its_namespace() {
    let stage = Stage::with_clusters(&["m1"]).await;
    fill(&stage, "application-1").await;
    let mut new = placing("application-1", "ConfigMap", "app-config-1");
    new["spec"]["strategy"] = json!({ "type": "External" });
    let placements = path("application-1", "resourceplacements");
    stage.send("POST", &placements, &new).await;
    let stages = json!([{ "name": "all", "labelSelector": {}, "afterStageTasks": [{ "type": "Approval" }] }]);
    let strategy = json!({ "stages": stages });
    let run = json!({ "placementName": "web", "stagedRolloutStrategyName": "go", "state": "Run" });
    for (kind, plural, spec) in [
        ("StagedUpdateStrategy", "stagedupdatestrategies", &strategy),
        ("StagedUpdateRun", "stagedupdateruns", &run),
    ] {
        for (kind, path) in [
            (format!("Cluster{kind}"), format!("{API}/cluster{plural}")),
            (kind.to_owned(), path("application-1", plural)),
        ] {
            let object = json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": kind, "metadata": { "name": "go" }, "spec": spec });
            stage.send("POST", &path, &object).await;
        }
    }
    stage.settle().await;
    stage.agents().await;
    let said = async |place: String| conditions(&stage.get(&place).await["status"]);
    let other = said(format!("{API}/clusterstagedupdateruns/go")).await;
    assert_eq!(other, ["Initialized False UpdateRunInitializedFailed"]);
    let placed = ["application-1.web-work application-1"];
    assert_eq!(works(&stage, "m1").await, placed);

    let request = path("application-1", "approvalrequests/go-after-all");
    assert_eq!(stage.get(&request).await["spec"]["targetStage"], "all");
    let approved = json!([{ "type": "Approved", "status": "True", "reason": "lgtm", "message": "",
        "lastTransitionTime": clock() }]);
    let approval = json!({ "status": { "conditions": approved } });
    stage
        .change("PATCH", &format!("{request}/status"), &approval)
        .await;
    let run = path("application-1", "stagedupdateruns/go");
    let told = said(run.clone()).await;
    assert_eq!(told.last().unwrap(), "Succeeded True UpdateRunSucceeded");
    let events = stage.events().await.into_iter();
    let mut regarding = events.filter_map(|event| event.regarding);
    assert!(regarding.any(|one| one.kind.as_deref() == Some("StagedUpdateRun")));
    stage.change("DELETE", &run, &json!({})).await;
    let left = stage.list(&path("application-1", "approvalrequests")).await;
    assert!(left.is_empty(), "{left:?}");
}

/// Case F94: a hub without these kinds is served as it was, and once it has them, its placements are.
#[tokio::test(start_paused = true)]
async fn older_hub_is_served() {
    let (newer, older): (Vec<_>, Vec<_>) = definitions().into_iter().partition(|definition| {
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
        KINDS.contains(&plural) || UPDATES.contains(&plural)
    });
    assert_eq!(newer.len(), KINDS.len() + UPDATES.len());
    let mut stage = Stage::serving(older);
    stage.start(&[]).await;
    stage.join("m1", &json!({})).await;
    place(&stage, &json!(null)).await;
    stage.agents().await;
    assert_eq!(values(&stage).await, ["value"]);
    stage.install(newer);
    stage.settle().await;
    place_map(&stage, "application-2").await;
    stage.agents().await;
    assert_eq!(said(&stage, "application-2").await, COMPLETE);
}

/// Case F94: the program may die at any write of a placement of a namespace, of a change of it, and of its end: the next
/// one comes to the same, and then nothing is left to write.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    for allowed in 0.. {
        let mut stage = Stage::with_clusters(&["m1", "m2"]).await;
        stage.limit_writes(allowed);
        place_map(&stage, "application-1").await;
        let mut is_whole = stage.outlive().await;
        assert_eq!(said(&stage, "application-1").await, COMPLETE, "{allowed}");
        stage.writes();
        stage.settle().await;
        assert_eq!(stage.written(), [""; 0], "{allowed}");

        stage.limit_writes(allowed);
        let edit = json!({ "data": { "key": "new" } });
        stage.change("PATCH", MAP, &edit).await;
        is_whole &= stage.outlive().await;
        for cluster in ["m1", "m2"] {
            let new = ["application-1.web-work new"];
            assert_eq!(works(&stage, cluster).await, new, "{allowed}");
        }

        stage.limit_writes(allowed);
        stage
            .change("DELETE", &web("application-1"), &json!({}))
            .await;
        is_whole &= stage.outlive().await;
        for kind in KINDS {
            let left = stage.list(&path("application-1", kind)).await;
            assert_eq!(left.len(), 0, "{kind} {allowed}");
        }
        assert_eq!(stage.list(ALL_WORKS).await.len(), 0, "{allowed}");
        if is_whole {
            return;
        }
    }
}
