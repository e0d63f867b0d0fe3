//! Works, their objects in the member, and the reports on them.

use std::time::Duration;

use embedded_apiserver::Fault;
use objects::Metadata;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::*;

const APPLIED: [&str; 2] = ["Applied True Applied", "Available True Available"];
const ALL: [&str; 2] = [
    "Applied True AllManifestsApplied",
    "Available True AllManifestsAvailable",
];

/// The objects of a placement are there, belong to it, and are reported, in as few writes as that takes.
#[tokio::test(start_paused = true)]
async fn manifests_become_objects() {
    let stage = Stage::joined().await;
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), map()]))
        .await;
    stage.settle().await;
    let status = format!("PATCH {WORK}/status");
    let expected = [
        format!("PATCH {WORK}"),
        status.clone(),
        status,
        format!("POST {OWNERS}"),
        format!("PATCH {PLACED}"),
        format!("PATCH {MAP}"),
        format!("PATCH {OWNER}/status"),
    ];
    assert_eq!(stage.written(), expected);

    let map = stage.member.get(MAP).await;
    assert_eq!(map["data"], json!({ "key": "value" }));
    let owner = stage.member.get(OWNER).await;
    assert_eq!(map.owners()[0].uid, owner.uid());
    assert_eq!(
        map.annotation("kubernetes-fleet.io/placement"),
        Some("crp-all")
    );
    let hash = "5afadb2db3c8f657b38a32ba5e66db0c4906def09bbb4b59e8cc71d16df63008";
    assert_eq!(map.annotation("kubernetes-fleet.io/spec-hash"), Some(hash));
    let uids = owner["status"]["appliedResources"].as_array().unwrap();
    assert_eq!((uids.len(), &uids[1]["uid"]), (2, &json!(map.uid())));
    let (whole, manifests) = stage.says().await;
    assert_eq!(whole, ALL);
    assert_eq!(manifests, [APPLIED, APPLIED]);
}

/// Case F50: at rest, and after a restart, nothing is written but heartbeats; an hour is sixty of them.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_at_rest() {
    let mut stage = Stage::placed().await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(stage.written(), [""; 0]);
    stage.kill().await;
    stage.member.calls();
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    let single = stage
        .member
        .reads()
        .into_iter()
        .filter(|call| call.ends_with(MAP));
    assert_eq!(single.count(), 0);
}

/// Cases F44 and F54: a change, a deletion or a lost owner is put right, and additions stay; even while
/// the hub is gone.
#[tokio::test(start_paused = true)]
async fn drift_is_repaired() {
    let stage = Stage::placed().await;
    stage.hub.server.faults().inject(Fault::Disconnect);
    for (method, change) in [
        ("PATCH", json!({ "data": { "key": "other", "added": "x" } })),
        ("PATCH", json!({ "metadata": { "ownerReferences": null } })),
        ("DELETE", json!({})),
    ] {
        stage.member.send(method, MAP, &change).await;
        stage.settle().await;
        let map = stage.member.get(MAP).await;
        assert_eq!(map["data"]["key"], "value", "{change}");
        assert_eq!(map.owners().len(), 1, "{change}");
        let added = map["data"].get("added").is_some();
        assert_eq!(added, method == "PATCH", "{change}");
    }
}

/// A field or an object that leaves the Work leaves the member; one that has another owner, too, stays to that.
#[tokio::test(start_paused = true)]
async fn what_left_goes() {
    let stage = Stage::placed().await;
    let mut two = map();
    two["metadata"]["name"] = json!("second");
    let mut edited = map();
    edited["data"] = json!({ "new": "value" });
    stage.place(&[namespace(), edited, two]).await;
    assert_eq!(
        stage.member.get(MAP).await["data"],
        json!({ "new": "value" })
    );
    let second = format!("{MAPS}/second");
    let mut owners = stage.member.get(&second).await["metadata"]["ownerReferences"].clone();
    let mut other = map();
    other["metadata"]["name"] = json!("else");
    let other = stage
        .member
        .send("POST", MAPS, &other)
        .await
        .uid()
        .to_owned();
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "else", "uid": other });
    owners.as_array_mut().unwrap().push(other.clone());
    let shared = json!({ "metadata": { "ownerReferences": owners } });
    stage.member.send("PATCH", &second, &shared).await;
    stage.place(&[namespace()]).await;
    assert_eq!(stage.member.find(MAP).await, None);
    let owners = stage.member.get(&second).await;
    let owners: Vec<_> = owners
        .owners()
        .iter()
        .map(|owner| owner.uid.to_owned())
        .collect();
    assert_eq!(owners, [other["uid"].as_str().unwrap()]);
    let status = stage.member.get(OWNER).await["status"].clone();
    assert_eq!(status["appliedResources"].as_array().map(Vec::len), Some(1));
}

/// A placement may come to select nothing: its owner forgets the last object, too, and is not written again.
#[tokio::test(start_paused = true)]
async fn emptied_work_owns_nothing() {
    let mut stage = Stage::placed().await;
    stage.place(&[]).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(stage.member.find(PLACED).await, None);
    let owner = stage.member.get(OWNER).await;
    assert_eq!(owner["status"]["appliedResources"], Value::Null);
    stage.kill().await;
    stage.written();
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Case F47: an object of another is not touched, and the Work names the owner; once it is free, it is taken.
#[tokio::test(start_paused = true)]
async fn foreign_object_is_refused() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    let mut other = map();
    other["metadata"]["name"] = json!("else");
    let uid = stage
        .member
        .send("POST", MAPS, &other)
        .await
        .uid()
        .to_owned();
    let mut owner = map();
    owner["data"] = json!({ "key": "theirs" });
    owner["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "else", "uid": uid }]);
    let mut propagated = map();
    propagated["metadata"]["labels"] = json!({ "karmada.io/managed": "true" });
    for theirs in [owner, propagated] {
        if stage.hub.find(WORK).await.is_some() {
            stage.hub.send("DELETE", WORK, &json!({})).await;
            stage.settle().await;
            stage.member.send("DELETE", MAP, &json!({})).await;
        }
        stage.member.send("POST", MAPS, &theirs).await;
        stage.hub.send("POST", WORKS, &work(&[map()])).await;
        stage.settle().await;
        let before = stage.member.get(MAP).await;
        assert_eq!(before.get("data"), theirs.get("data"));
        let (whole, manifests) = stage.says().await;
        assert_eq!(whole, ["Applied False SomeManifestsAreNotApplied"]);
        assert_eq!(manifests, [["Applied False FailedToTakeOver"]]);
    }
    // Once for each reason, however often it is tried.
    let reasons = stage
        .member
        .events()
        .await
        .into_iter()
        .map(|event| event.reason.unwrap());
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        ["WorkNotApplied", "WorkNotApplied"]
    );
    let free = json!({ "metadata": { "labels": null } });
    stage.member.send("PATCH", MAP, &free).await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(stage.says().await.0, ALL);
}

/// An object that was there before is taken over: the manifest's fields are set, others stay.
#[tokio::test(start_paused = true)]
async fn free_object_is_taken_over() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    let mut theirs = map();
    theirs["data"] = json!({ "key": "old", "other": "stays" });
    stage.member.send("POST", MAPS, &theirs).await;
    stage.hub.send("POST", WORKS, &work(&[map()])).await;
    stage.settle().await;
    let map = stage.member.get(MAP).await;
    assert_eq!(map["data"], json!({ "key": "value", "other": "stays" }));
    assert_eq!(map.owners().len(), 1);
}

/// A manifest that is none keeps no other from being applied.
#[tokio::test(start_paused = true)]
async fn bad_manifests_fail_alone() {
    let stage = Stage::joined().await;
    let nameless = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "generateName": "a-", "namespace": "application-1" } });
    let unknown = json!({ "apiVersion": "example.com/v1", "kind": "Toy",
        "metadata": { "name": "a", "namespace": "application-1" } });
    // In an envelope of a namespace it would reach beyond it.
    let stray = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "a", "namespace": "application-1" }, "rules": [] });
    stage
        .hub
        .send(
            "POST",
            WORKS,
            &work(&[nameless, namespace(), map(), map(), unknown, stray]),
        )
        .await;
    stage.settle().await;
    let (whole, manifests) = stage.says().await;
    assert_eq!(whole, ["Applied False SomeManifestsAreNotApplied"]);
    let first: Vec<_> = manifests.iter().map(|one| &*one[0]).collect();
    let expected = [
        "Applied False FoundGenerateName",
        "Applied True Applied",
        "Applied True Applied",
        "Applied False Duplicated",
        "Applied False DecodingErred",
        "Applied False ManifestApplyFailed",
    ];
    assert_eq!(first, expected);
}

/// Case F48: a Work goes once its objects are gone, however long one takes, and its owner goes with them.
#[tokio::test(start_paused = true)]
async fn deletion_waits_for_objects() {
    let stage = Stage::placed().await;
    let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    stage.member.send("PATCH", MAP, &held).await;
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    assert!(stage.hub.find(WORK).await.is_some());
    assert!(stage.member.find(OWNER).await.is_some());
    let free = json!({ "metadata": { "finalizers": null } });
    stage.member.send("PATCH", MAP, &free).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(stage.member.find(MAP).await, None);
    assert_eq!(stage.member.find(OWNER).await, None);
    assert_eq!(stage.hub.find(WORK).await, None);
}

/// A hub whose list is out of date shows a Work that has ended: its objects do not come again, for nobody would take them
/// away.
#[tokio::test(start_paused = true)]
async fn ended_work_stays_ended() {
    let mut stage = Stage::placed().await;
    stage.hub.send("DELETE", WORK, &Value::Null).await;
    stage.settle().await;
    assert_eq!(stage.member.find(OWNER).await, None);
    stage.written();
    stage.kill().await;
    let faults = stage.hub.server.faults();
    let of_before = Fault::StaleList { versions: 2 };
    faults.inject(of_before.lasting(Duration::from_secs(5)));
    stage.start(&[]).await;
    assert!(stage.hub.server.faults().hits()["StaleList"] > 0);
    assert_eq!(stage.written(), [""; 0]);
}

fn asked(state: &str) -> Value {
    json!({ "spec": { "state": state } })
}

/// Case F49: a cluster that leaves keeps everything, and goes on with it when it comes back: nothing is written to an
/// object.
#[tokio::test(start_paused = true)]
async fn leaving_keeps_objects() {
    let stage = Stage::placed().await;
    stage.hub.send("PATCH", CHANNEL, &asked("Leave")).await;
    stage.settle().await;
    assert_eq!(stage.written(), [format!("PATCH {WORK}")]);
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    assert_eq!(stage.hub.find(WORK).await, None);
    assert!(stage.member.find(OWNER).await.is_some());
    stage.hub.send("PATCH", CHANNEL, &asked("Join")).await;
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), map()]))
        .await;
    stage.settle().await;
    assert_eq!(stage.says().await.0, ALL);
    assert_eq!(stage.member.writes(), [""; 0]);
}

/// Another fleet's agent may work in the member, too: its objects are left to it, and the Work says so.
#[tokio::test(start_paused = true)]
async fn other_fleets_owner_is_named() {
    let stage = Stage::joined().await;
    let theirs = json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "AppliedWork",
        "metadata": { "name": "crp-all-work" },
        "spec": { "workName": "crp-all-work", "workNamespace": "fleet-member-other" } });
    stage.member.send("POST", OWNERS, &theirs).await;
    stage.hub.send("POST", WORKS, &work(&[namespace()])).await;
    stage.settle().await;
    assert_eq!(stage.says().await.1, [["Applied False FailedToTakeOver"]]);
    assert_eq!(stage.member.find(PLACED).await, None);
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    assert_eq!(stage.hub.find(WORK).await, None);
    assert!(stage.member.find(OWNER).await.is_some());
}

/// Case F50: the program may end after any write: with the next, everything comes to the same end, and nothing is left
/// over.
#[tokio::test(start_paused = true)]
async fn crash_after_each_write() {
    let mut first = map();
    first["metadata"]["name"] = json!("first");
    for limit in 0.. {
        let mut stage = Stage::joined().await;
        let mut crashed = false;
        for manifests in [
            vec![namespace(), first.clone(), map()],
            vec![namespace(), map()],
        ] {
            if stage.hub.find(WORK).await.is_none() {
                stage.hub.send("POST", WORKS, &work(&[])).await;
            }
            let limited = &stage.member;
            limited.limit_writes(limit);
            stage.place(&manifests).await;
            crashed |= stage.member.is_limit_reached();
            stage.kill().await;
            stage.member.limit_writes(usize::MAX);
            stage.start(&[]).await;
            let (whole, _) = stage.says().await;
            assert_eq!(whole, ALL, "{limit}");
        }
        assert_eq!(
            stage.member.find(&format!("{MAPS}/first")).await,
            None,
            "{limit}"
        );
        let status = stage.member.get(OWNER).await["status"].clone();
        assert_eq!(
            status["appliedResources"].as_array().map(Vec::len),
            Some(2),
            "{limit}"
        );
        stage.kill().await;
        stage.written();
        stage.start(&[]).await;
        assert_eq!(stage.written(), [""; 0], "{limit}");
        if !crashed {
            assert!(limit > 3, "{limit}");
            return;
        }
    }
}

fn job(image: &str) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "once", "namespace": "application-1" },
        "spec": { "ttlSecondsAfterFinished": 60, "template": { "spec": { "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": image }] } } } })
}

/// Case F44: a Job that is done and that its member deletes after a while is not run again, unless its manifest
/// changes.
#[tokio::test(start_paused = true)]
async fn finished_job_stays_away() {
    let stage = Stage::joined().await;
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), job("a")]))
        .await;
    stage.settle().await;
    let path = "/apis/batch/v1/namespaces/application-1/jobs/once";
    let done = json!({ "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    stage
        .member
        .send("PATCH", &format!("{path}/status"), &done)
        .await;
    stage.settle().await;
    stage.member.send("DELETE", path, &json!({})).await;
    stage.settle().await;
    assert_eq!(stage.member.find(path).await, None);
    assert_eq!(stage.says().await.0[0], ALL[0]);
    stage.place(&[namespace(), map(), job("a")]).await;
    assert_eq!(stage.member.find(path).await, None);
    stage.place(&[namespace(), map(), job("b")]).await;
    assert!(stage.member.find(path).await.is_some());
}

/// Case F56: a field that the member does not know keeps nothing else from being applied, and is named.
#[tokio::test(start_paused = true)]
async fn unknown_field_is_noted() {
    let mut stage = Stage::joined().await;
    let service = json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "application-1" },
        "spec": { "ports": [{ "port": 80 }], "newer": "x" } });
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), service]))
        .await;
    stage.settle().await;
    assert_eq!(stage.says().await.0[0], ALL[0]);
    let status = stage.hub.get(WORK).await["status"].clone();
    let message = status["manifestConditions"][1]["conditions"][0]["message"]
        .as_str()
        .unwrap();
    assert!(
        message.contains("lacks spec.newer of Service application-1/web"),
        "{message}"
    );
    stage.kill().await;
    stage.written();
    stage.start(&[]).await;
    // Again it is tried, and refused, whether the member knows the field by now.
    let mut written = stage.written();
    written.retain(|call| !call.contains("/services"));
    assert_eq!(written, [""; 0]);
}

fn container(name: &str) -> Value {
    json!({ "name": name, "image": "example.com/a:1" })
}

/// Case F55: a container that leaves the manifest leaves the member, though somebody else has touched it there.
#[tokio::test(start_paused = true)]
async fn touched_sidecar_leaves() {
    let stage = Stage::joined().await;
    let web = |containers: Value| {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "application-1" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": {
                "metadata": { "labels": { "app": "web" } }, "spec": { "containers": containers } } } })
    };
    let both = web(json!([container("main"), container("side")]));
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), both]))
        .await;
    stage.settle().await;
    let path = "/apis/apps/v1/namespaces/application-1/deployments/web";
    let touched = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": [
            { "name": "side", "image": "example.com/a:1" }] } } } });
    let apply = format!("{path}?fieldManager=somebody&force=true");
    stage.member.send("APPLY", &apply, &touched).await;
    stage.settle().await;
    stage
        .place(&[namespace(), web(json!([container("main")]))])
        .await;
    let left = stage.member.get(path).await;
    let left = left["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<_> = left
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["main"]);
}

/// Who only observes applies nothing.
#[tokio::test(start_paused = true)]
async fn observer_writes_nothing() {
    let mut stage = Stage::new().await;
    stage
        .hub
        .send("POST", WORKS, &work(&[namespace(), map()]))
        .await;
    stage.written();
    stage.start(&["--observe-only"]).await;
    assert_eq!(stage.hub.writes(), [""; 0]);
    assert_eq!(stage.member.writes(), [""; 0]);
    // There was something to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert!(!stage.written().is_empty());
}

/// Case F39: an object comes after those on which it depends, whatever the order of the manifests.
#[tokio::test(start_paused = true)]
async fn waves_follow_each_other() {
    let stage = Stage::joined().await;
    let service = json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "application-1" },
        "spec": { "ports": [{ "port": 80 }] } });
    stage
        .hub
        .send("POST", WORKS, &work(&[service, map(), namespace()]))
        .await;
    stage.settle().await;
    let written: Vec<_> = stage.member.writes();
    let place = |path: &str| {
        written
            .iter()
            .position(|call| call.ends_with(path))
            .unwrap()
    };
    assert!(place(PLACED) < place(MAP), "{written:?}");
    assert!(place(MAP) < place("/services/web"), "{written:?}");
    let (_, manifests) = stage.says().await;
    assert!(
        manifests
            .iter()
            .all(|one: &Vec<String>| one[0] == APPLIED[0])
    );
}

/// Cases F45 and F52: a member whose agent was KubeFleet's gets no write until something changes; then the objects that
/// have left go, as they would have before.
#[tokio::test(start_paused = true)]
async fn recorded_member_is_taken_over() {
    let mut stage = Stage::new().await;
    let owner = recorded!("crp-all-appliedwork");
    let applied = json!({ "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "metadata": { "name": "crp-all-work" }, "spec": owner["spec"] });
    let created = stage.member.send("POST", OWNERS, &applied).await;
    let mut applied_status = json!({ "status": owner["status"] });
    let mut uids = Vec::new();
    for (mut object, objects, path) in [
        (
            recorded!("crp-all-member-namespace"),
            "/api/v1/namespaces",
            PLACED,
        ),
        (recorded!("crp-all-member-configmap"), MAPS, MAP),
    ] {
        object["metadata"]["ownerReferences"][0]["uid"] = json!(created.uid());
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            object["metadata"].as_object_mut().unwrap().remove(field);
        }
        let placed = stage.member.send("POST", objects, &object).await;
        // As whoever wrote it is known by them, and not by the request of this test.
        let fields =
            json!({ "metadata": { "managedFields": object["metadata"]["managedFields"] } });
        stage.member.send("PATCH", path, &fields).await;
        uids.push(placed.uid().to_owned());
    }
    for (place, uid) in uids.iter().enumerate() {
        applied_status["status"]["appliedResources"][place]["uid"] = json!(uid);
    }
    stage
        .member
        .send("PATCH", &format!("{OWNER}/status"), &applied_status)
        .await;
    let recorded = recorded!("crp-all-work");
    let mut new = work(&[]);
    new["spec"] = recorded["spec"].clone();
    new["metadata"]["finalizers"] = recorded["metadata"]["finalizers"].clone();
    stage.hub.send("POST", WORKS, &new).await;
    let status = json!({ "status": recorded["status"] });
    stage
        .hub
        .send("PATCH", &format!("{WORK}/status"), &status)
        .await;
    stage.written();
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);

    let mut manifests = recorded["spec"]["workload"]["manifests"]
        .as_array()
        .unwrap()
        .clone();
    manifests[1]["data"] = json!({ "new": "value" });
    stage.place(&manifests).await;
    let map = stage.member.get(MAP).await;
    assert_eq!(map["data"], json!({ "new": "value" }));
    assert_eq!(map.uid(), uids[1]);
}

/// Case F101: the holder of an object that is to go is named, until it is gone.
#[tokio::test(start_paused = true)]
async fn held_object_is_named() {
    let stage = Stage::placed().await;
    let held = json!({ "metadata": { "finalizers": ["ledger.example.com/settle"] } });
    stage.member.send("PATCH", MAP, &held).await;
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    let work = stage.hub.get(WORK).await;
    let conditions = work["status"]["conditions"].as_array().unwrap();
    let removing = conditions.iter().find(|one| one["type"] == "Removing");
    let message = "ConfigMap application-1/app-config-1 is held by ledger.example.com/settle";
    assert_eq!(removing.unwrap()["message"], message);
    let free = json!({ "metadata": { "finalizers": null } });
    stage.member.send("PATCH", MAP, &free).await;
    stage.settle().await;
    assert_eq!(stage.hub.find(WORK).await, None);
}

const WEB: &str = "/apis/apps/v1/namespaces/application-1/deployments/web";
const SERVICE: &str = "/api/v1/namespaces/application-1/services/web";

/// Case F103: an element that somebody renames is as placed again, and nothing is beside it. Additions
/// stay.
#[tokio::test(start_paused = true)]
async fn renamed_parts_are_restored() {
    let stage = Stage::joined().await;
    let metadata = json!({ "name": "web", "namespace": "application-1" });
    let pod = json!({ "metadata": { "labels": { "app": "web" } }, "spec": {
        "volumes": [{ "name": "scratch", "emptyDir": {} }],
        "containers": [{ "name": "web", "image": "web:1",
            "livenessProbe": { "httpGet": { "path": "/live", "port": "http" } } }] } });
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] } });
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": pod } });
    let placed = work(&[namespace(), service, deployment]);
    stage.hub.send("POST", WORKS, &placed).await;
    stage.settle().await;
    let template = |pod: Value| json!({ "spec": { "template": { "spec": pod } } });
    for (path, edit, part, count) in [
        (
            SERVICE,
            json!({ "spec": { "ports": [{ "name": "http", "port": 8080 }] } }),
            "/spec/ports",
            1,
        ),
        (
            WEB,
            template(json!({ "containers": [{ "name": "other", "image": "web:1" }] })),
            "/spec/template/spec/containers",
            1,
        ),
        (
            WEB,
            template(json!({ "volumes": [{ "name": "scratch", "configMap": { "name": "a" } }] })),
            "/spec/template/spec/volumes",
            1,
        ),
        (
            WEB,
            template(json!({ "containers": [
                { "name": "side", "image": "side:1" },
                { "name": "web", "image": "web:1", "livenessProbe": {
                    "httpGet": { "path": "/live", "port": "http" } } },
            ] })),
            "/spec/template/spec/containers",
            2,
        ),
    ] {
        let before = stage.member.get(path).await;
        stage.member.send("PATCH", path, &edit).await;
        stage.settle().await;
        let after = stage.member.get(path).await;
        let [before, after] = [before, after].map(|one| one.pointer(part).unwrap().clone());
        assert_eq!(after.as_array().unwrap().len(), count, "{part} {after}");
        if count == 1 {
            assert_eq!(after[0]["name"], before[0]["name"]);
            assert_eq!(after[0].get("configMap"), None);
            assert_eq!(after[0]["port"], before[0]["port"]);
        }
    }
    assert_eq!(stage.says().await.0[0], "Applied True AllManifestsApplied");
}

fn account(names: &[&str]) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "puller", "namespace": "application-1" },
        "imagePullSecrets": secrets(names) })
}

fn secrets(names: &[&str]) -> Value {
    let secrets: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    json!(secrets)
}

/// Case F109: elements that leave the manifest go, those that the member has added stay.
#[tokio::test(start_paused = true)]
async fn pull_secret_leaves() {
    let stage = Stage::joined().await;
    let placed = work(&[namespace(), account(&["old", "new"])]);
    stage.hub.send("POST", WORKS, &placed).await;
    stage.settle().await;
    let path = "/api/v1/namespaces/application-1/serviceaccounts/puller";
    let more = json!({ "imagePullSecrets": secrets(&["old", "new", "cluster"]) });
    stage.member.send("PATCH", path, &more).await;
    stage.place(&[namespace(), account(&["new"])]).await;
    let left = stage.member.get(path).await["imagePullSecrets"].clone();
    assert_eq!(left, secrets(&["new", "cluster"]));
}
