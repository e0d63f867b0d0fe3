//! Works that only report differences in the member.

use serde_json::{Value, json};

use super::stage::*;

const REPORTED: &str = "DiffReported True AllManifestsDiffReported";

fn report_diff() -> Value {
    json!({ "type": "ReportDiff", "comparisonOption": "FullComparison" })
}

fn of_member(mut writes: Vec<String>) -> Vec<String> {
    writes.retain(|write| !write.contains(WORK));
    writes
}

/// Case F72: of an object that the member had before, the Work tells the differences. It is never written, and outlives the Work.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_there() {
    let mut theirs = map();
    theirs["data"] = json!({ "key": "old", "other": "stays" });
    let mut stage = Stage::with_map(&theirs).await;
    let mut absent = map();
    absent["metadata"]["name"] = json!("absent");
    let mut same = namespace();
    same["spec"] = json!({ "finalizers": ["kubernetes"] });
    let mut work = work(&[absent, same, map()]);
    work["spec"]["applyStrategy"] = report_diff();
    stage.hub.send("POST", WORKS, &work).await;
    stage.settle().await;
    let (whole, manifests) = stage.says().await;
    assert_eq!(whole, [REPORTED]);
    let expected = [
        ["DiffReported True FoundDiff"],
        ["DiffReported True NoDiffFound"],
        ["DiffReported True FoundDiff"],
    ];
    assert_eq!(manifests, expected);
    let differs = [
        ["/data/key", "old", "value"].map(str::to_owned),
        ["/data/other", "stays", ""].map(str::to_owned),
    ];
    assert_eq!(stage.differences("diff").await, differs);
    let work = stage.hub.get(WORK).await;
    let details = &work["status"]["manifestConditions"][0]["diffDetails"]["observedDiffs"];
    let whole_object = json!([{ "path": "/", "valueInHub": "(the whole object)" }]);
    assert_eq!(details, &whole_object);
    stage.rests().await;
    stage.kill().await;
    stage.start(&[]).await;
    stage.rests().await;

    stage
        .disturb("PATCH", &json!({ "data": { "key": "value" } }))
        .await;
    assert_eq!(stage.differences("diff").await, differs[1..]);
    stage.disturb("DELETE", &json!({})).await;
    assert_eq!(stage.differences("diff").await[0][0], "/");
    stage.member.send("POST", MAPS, &map()).await;
    stage.settle().await;
    assert_eq!(stage.differences("diff").await, [[""; 3]; 0]);

    stage.place(&[namespace()]).await;
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    assert_eq!(stage.hub.find(WORK).await, None);
    assert!(stage.member.find(MAP).await.is_some());
    assert_eq!(of_member(stage.member.writes()), [""; 0]);
}

/// Case F72: an applied object stays the Work's while that only reports, so that it is applied again without being taken
/// over; one that has left the Work goes only then.
#[tokio::test(start_paused = true)]
async fn applied_object_stays_owned() {
    let stage = Stage::placed().await;
    let mut second = map();
    second["metadata"]["name"] = json!("second");
    stage.place(&[namespace(), second, map()]).await;
    stage.written();
    stage.strategy(report_diff()).await;
    assert_eq!(stage.says().await.0, [REPORTED]);
    let drift = json!({ "data": { "key": "drift" } });
    stage.disturb("PATCH", &drift).await;
    let drifted = [["/data/key", "drift", "value"].map(str::to_owned)];
    assert_eq!(stage.differences("diff").await, drifted);
    stage.place(&[namespace(), map()]).await;
    let second = format!("{MAPS}/second");
    assert!(stage.member.find(&second).await.is_some());
    assert_eq!(of_member(stage.member.writes()), [""; 0]);
    stage.strategy(json!({ "whenToTakeOver": "Never" })).await;
    let (whole, _) = stage.says().await;
    assert_eq!(whole[0], "Applied True AllManifestsApplied");
    assert_eq!(stage.member.get(MAP).await["data"]["key"], "value");
    assert_eq!(stage.member.find(&second).await, None);
}

/// Case F72: a Work that has only reported and is to apply does so at once, whether objects are there or not, and says nothing
/// of differences any more.
#[tokio::test(start_paused = true)]
async fn applying_begins_at_once() {
    let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
    for strategy in [json!({ "type": "ClientSideApply" }), forced] {
        let mut theirs = map();
        theirs["data"] = json!({ "key": "old" });
        let stage = Stage::with_map(&theirs).await;
        let mut absent = map();
        absent["metadata"]["name"] = json!("absent");
        let mut work = work(&[absent, map()]);
        work["spec"]["applyStrategy"] = report_diff();
        stage.hub.send("POST", WORKS, &work).await;
        stage.settle().await;
        assert_eq!(stage.says().await.0, [REPORTED]);
        stage.strategy(strategy).await;
        let expected = [
            "Applied True AllManifestsApplied",
            "Available True AllManifestsAvailable",
        ];
        assert_eq!(stage.says().await.0, expected);
        assert_eq!(stage.differences("diff").await, [[""; 3]; 0]);
        assert_eq!(stage.member.get(MAP).await["data"]["key"], "value");
        assert!(stage.member.find(&format!("{MAPS}/absent")).await.is_some());
        stage.rests().await;
    }
}

/// Case F72: a Work that only reports takes away the objects that it has applied before, whichever write the program dies after.
#[tokio::test(start_paused = true)]
async fn deletion_takes_applied_objects() {
    for limit in 0.. {
        let mut stage = Stage::placed().await;
        stage.strategy(report_diff()).await;
        stage.member.limit_writes(limit);
        stage.hub.send("DELETE", WORK, &json!({})).await;
        stage.settle().await;
        let is_done = !stage.member.is_limit_reached();
        stage.kill().await;
        stage.member.limit_writes(usize::MAX);
        stage.start(&[]).await;
        assert_eq!(stage.hub.find(WORK).await, None, "{limit}");
        assert_eq!(stage.member.find(OWNER).await, None, "{limit}");
        for path in [PLACED, MAP] {
            assert_eq!(stage.member.find(path).await, None, "{limit} {path}");
        }
        if is_done {
            assert!(limit >= 3, "{limit}");
            return;
        }
    }
}

/// Case F72: an edit of one object asks nothing about the others; nor does the status of an object, or the record of
/// Kubernetes in it.
#[tokio::test(start_paused = true)]
async fn edit_asks_of_one_object() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    let maps: Vec<_> = (0..20)
        .map(|place| {
            let mut one = map();
            one["metadata"]["name"] = json!(format!("map-{place}"));
            one
        })
        .collect();
    for map in &maps[..10] {
        stage.member.send("POST", MAPS, map).await;
    }
    let mut work = work(&maps);
    work["spec"]["applyStrategy"] = report_diff();
    stage.hub.send("POST", WORKS, &work).await;
    stage.settle().await;
    assert_eq!(stage.says().await.0, [REPORTED]);
    stage.asked();
    let mut edited = maps;
    edited[3]["data"]["key"] = json!("other");
    stage.place(&edited).await;
    assert_eq!(stage.says().await.1[3], ["DiffReported True FoundDiff"]);
    let path = format!("{MAPS}/map-3");
    let asked = [format!("GET {path}"), format!("PATCH {path}")];
    assert_eq!(stage.asked(), asked);
    let mark = json!({ "metadata": { "annotations": { "leader.kubernetes.io/renewed": "1" } } });
    stage.member.send("PATCH", &path, &mark).await;
    stage.settle().await;
    assert_eq!(stage.asked(), [""; 0]);
}

/// Case F72: whichever write the program dies after, before it hears that it is only to look and that the Work has less: the
/// objects that it has written by then are known, and go with the Work.
#[tokio::test(start_paused = true)]
async fn announced_objects_go() {
    for limit in 0.. {
        let mut stage = Stage::joined().await;
        let mut second = map();
        second["metadata"]["name"] = json!("second");
        stage.member.limit_writes(limit);
        let placed = work(&[namespace(), map(), second]);
        stage.hub.send("POST", WORKS, &placed).await;
        stage.settle().await;
        let is_done = !stage.member.is_limit_reached();
        stage.kill().await;
        stage.member.limit_writes(usize::MAX);
        let less = json!({ "spec": { "applyStrategy": report_diff(),
            "workload": { "manifests": [namespace()] } } });
        stage.hub.send("PATCH", WORK, &less).await;
        stage.start(&[]).await;
        let mut written = Vec::new();
        for path in [PLACED.to_owned(), MAP.to_owned(), format!("{MAPS}/second")] {
            written.extend(stage.member.find(&path).await.map(|_| path));
        }
        stage.hub.send("DELETE", WORK, &json!({})).await;
        stage.settle().await;
        assert_eq!(stage.hub.find(WORK).await, None, "{limit}");
        assert_eq!(stage.member.find(OWNER).await, None, "{limit}");
        for path in &written {
            assert_eq!(stage.member.find(path).await, None, "{limit} {path}");
        }
        if is_done {
            assert_eq!(written.len(), 3);
            return;
        }
    }
}
