//! Objects that a member has before they are placed there.

use objects::Metadata;
use serde_json::{Value, json};

use super::stage::*;

const REFUSED: [&str; 1] = ["Applied False SomeManifestsAreNotApplied"];

/// Returns the map as somebody has it in the member.
fn theirs() -> Value {
    let mut theirs = map();
    theirs["data"] = json!({ "key": "old", "other": "stays" });
    theirs
}

async fn data(stage: &Stage) -> Value {
    stage.member.get(MAP).await["data"].clone()
}

/// Case F70: who never takes over says so of an object that is there, and asks no more until it changes; once it is gone, the
/// manifest becomes an object.
#[tokio::test(start_paused = true)]
async fn never_leaves_object_alone() {
    let mut stage = Stage::with_map(&theirs()).await;
    stage.apply_map(json!({ "whenToTakeOver": "Never" })).await;
    let (whole, manifests) = stage.says().await;
    assert_eq!(whole, REFUSED);
    assert_eq!(manifests, [["Applied False NotTakenOver"]]);
    stage.rests().await;
    stage.kill().await;
    stage.start(&[]).await;
    stage.rests().await;
    stage
        .disturb("PATCH", &json!({ "data": { "key": "newer" } }))
        .await;
    assert_eq!(
        data(&stage).await,
        json!({ "key": "newer", "other": "stays" })
    );
    assert!(stage.member.get(MAP).await.owners().is_empty());
    stage.disturb("DELETE", &json!({})).await;
    assert_eq!(data(&stage).await, json!({ "key": "value" }));
    assert_eq!(stage.says().await.0[0], "Applied True AllManifestsApplied");
    // Our objects stay ours.
    stage
        .disturb("PATCH", &json!({ "data": { "key": "other" } }))
        .await;
    assert_eq!(data(&stage).await["key"], "value");
}

/// Case F70: an object is taken over once it has the fields of the manifest, and until then the Work names the differences;
/// other fields count where everything is compared.
#[tokio::test(start_paused = true)]
async fn same_object_is_taken_over() {
    for (option, besides) in [("PartialComparison", false), ("FullComparison", true)] {
        let strategy = json!({ "whenToTakeOver": "IfNoDiff", "comparisonOption": option });
        let stage = Stage::with_map(&theirs()).await;
        stage.apply_map(strategy).await;
        assert_eq!(
            stage.says().await.1,
            [["Applied False FailedToTakeOver"]],
            "{option}"
        );
        let mut expected = vec![["/data/key", "old", "value"].map(str::to_owned)];
        let other = ["/data/other", "stays", ""].map(str::to_owned);
        expected.extend(besides.then(|| other.clone()));
        assert_eq!(stage.differences("diff").await, expected);
        stage.rests().await;
        assert_eq!(data(&stage).await, theirs()["data"]);

        stage
            .disturb("PATCH", &json!({ "data": { "key": "value" } }))
            .await;
        if besides {
            assert_eq!(stage.differences("diff").await, [other]);
            stage
                .disturb("PATCH", &json!({ "data": { "other": null } }))
                .await;
        }
        assert_eq!(stage.says().await.0[0], "Applied True AllManifestsApplied");
        assert_eq!(stage.differences("diff").await, [[""; 3]; 0]);
        assert_eq!(stage.member.get(MAP).await.owners().len(), 1);
        // From now on it is repaired.
        stage
            .disturb("PATCH", &json!({ "data": { "key": "other" } }))
            .await;
        assert_eq!(data(&stage).await["key"], "value", "{option}");
    }
}

/// Case F70: where not everything is taken over, an object that somebody makes in the same moment is not, either: ours is
/// created, and not applied. Fields that leave its manifest go all the same.
#[tokio::test(start_paused = true)]
async fn creation_takes_nothing_over() {
    for (when, create) in [
        ("Always", format!("PATCH {MAP}")),
        ("Never", format!("POST {MAPS}")),
        ("IfNoDiff", format!("POST {MAPS}")),
    ] {
        let stage = Stage::joined().await;
        stage.member.create_namespace("application-1").await;
        stage.written();
        stage.apply_map(json!({ "whenToTakeOver": when })).await;
        assert!(stage.member.writes().contains(&create), "{when}");
        let mut other = map();
        other["data"] = json!({ "other": "value" });
        stage.place(&[other]).await;
        assert_eq!(data(&stage).await, json!({ "other": "value" }), "{when}");
        stage.rests().await;
    }
}

/// Case F70: between the look and the take-over nobody may change the object, and the write of its managed fields is not
/// taken for such a change.
#[tokio::test(start_paused = true)]
async fn takeover_needs_one_look() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    let created = format!("{MAPS}?fieldManager=memberagent");
    stage.member.send("POST", &created, &map()).await;
    stage.asked();
    stage
        .apply_map(json!({ "whenToTakeOver": "IfNoDiff" }))
        .await;
    assert_eq!(stage.says().await.0[0], "Applied True AllManifestsApplied");
    let mut asked = stage.asked();
    asked.retain(|call| call.contains(MAP));
    // The object, the differences, the managed fields, and the application.
    let expected = ["GET", "PATCH", "PATCH", "PATCH"].map(|verb| format!("{verb} {MAP}"));
    assert_eq!(asked, expected);
}

/// Case F107: a copy that is put back without its owner, as backup tools do, is known by its uid: an edit
/// arrives, and it goes with its Work.
#[tokio::test(start_paused = true)]
async fn stripped_copy_is_known() {
    let mut stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    stage.apply_map(json!({ "whenToTakeOver": "Never" })).await;
    let stripped = json!({ "metadata": { "ownerReferences": null } });
    stage.disturb("PATCH", &stripped).await;
    let mut edited = map();
    edited["data"] = json!({ "key": "edited" });
    stage.place(&[edited]).await;
    assert_eq!(data(&stage).await, json!({ "key": "edited" }));
    assert_eq!(stage.member.get(MAP).await.owners().len(), 1);

    stage.kill().await;
    stage.disturb("PATCH", &stripped).await;
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.start(&[]).await;
    assert_eq!(stage.hub.find(WORK).await, None);
    assert_eq!(stage.member.find(MAP).await, None);
}

const COPY: &str = "/api/v1/namespaces/app-10/configmaps/c";

/// Returns the objects that a running KubeFleet's agent took over, one as it writes by default, and one as by server-side
/// apply.
fn recorded_copies() -> [Value; 2] {
    [
        recorded!("crp-diff-member-configmap-taken-over"),
        recorded!("crp-diff-ssa-member-configmap"),
    ]
}

/// Starts the program where KubeFleet's agent was before, with a recorded object. Returns its manifest, too.
async fn after_kubefleet(recorded: &Value) -> (Stage, Value) {
    let mut stage = Stage::new().await;
    let owner = json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "AppliedWork", "metadata": { "name": "crp-all-work" },
        "spec": { "workName": "crp-all-work", "workNamespace": NAMESPACE } });
    let owner = stage.member.send("POST", OWNERS, &owner).await;
    let former = recorded.owners()[0].uid.to_owned();
    let text = recorded.to_string().replace(&former, owner.uid());
    let mut object: Value = serde_json::from_str(&text).unwrap();
    object["metadata"]["ownerReferences"][0]["name"] = json!("crp-all-work");
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    stage.member.create_namespace("app-10").await;
    let maps = COPY.trim_end_matches("/c");
    stage.member.send("POST", maps, &object).await;
    // As whoever wrote it is known by them, and not by the request of this test.
    let fields = json!({ "metadata": { "managedFields": object["metadata"]["managedFields"] } });
    stage.member.send("PATCH", COPY, &fields).await;
    let works = recorded!("crp-diff-works");
    let manifest = works["items"][0]["spec"]["workload"]["manifests"][1].clone();
    let placed = work(std::slice::from_ref(&manifest));
    let placed = stage.hub.send("POST", WORKS, &placed).await;
    let applied = json!({ "type": "Applied", "status": "True", "reason": "AllManifestsApplied",
        "observedGeneration": placed["metadata"]["generation"], "message": "",
        "lastTransitionTime": "2026-11-25T16:47:14Z" });
    let status = json!({ "status": { "conditions": [applied] } });
    stage
        .hub
        .send("PATCH", &format!("{WORK}/status"), &status)
        .await;
    stage.start(&[]).await;
    (stage, manifest)
}

/// Returns the writes of one object.
fn of(path: &str, mut writes: Vec<String>) -> Vec<String> {
    writes.retain(|write| write.contains(path));
    writes
}

/// Case F45: an object that KubeFleet's agent took over is ours without a write, however it wrote it; and fields that leave
/// the manifest then go, but for those of somebody else. Whichever write the program dies after, the next one ends there.
#[tokio::test(start_paused = true)]
async fn recorded_takeover_is_ours() {
    for recorded in recorded_copies() {
        for limit in 0.. {
            let (mut stage, mut manifest) = after_kubefleet(&recorded).await;
            assert_eq!(of(COPY, stage.member.writes()), [""; 0]);
            manifest["data"] = json!({ "k": "v" });
            stage.member.limit_writes(limit);
            stage.place(&[manifest]).await;
            let is_done = !stage.member.is_limit_reached();
            stage.kill().await;
            stage.member.limit_writes(usize::MAX);
            stage.start(&[]).await;
            let data = stage.member.get(COPY).await["data"].clone();
            assert_eq!(data, json!({ "extra": "1", "k": "v" }), "{limit}");
            if is_done {
                // The managed fields, then the object.
                assert!(limit >= 2, "{limit}");
                break;
            }
        }
    }
}

/// Case F45: an object that this program wrote by its former name becomes ours in one write, with the first edit; until
/// then there is none.
#[tokio::test(start_paused = true)]
async fn former_name_is_left() {
    let mut stage = Stage::placed().await;
    stage.kill().await;
    let fields = stage.member.get(MAP).await["metadata"]["managedFields"].to_string();
    let former = fields.replace("work-api-agent", "placement-agent");
    assert_ne!(former, fields);
    let former: Value = serde_json::from_str(&former).unwrap();
    let former = json!({ "metadata": { "managedFields": former } });
    stage.member.send("PATCH", MAP, &former).await;
    stage.written();
    stage.start(&[]).await;
    assert_eq!(of(MAP, stage.member.writes()), [""; 0]);

    let mut edited = map();
    edited["data"] = json!({ "other": "value" });
    stage.place(&[namespace(), edited]).await;
    // The managed fields, then the object.
    let both = [(); 2].map(|()| format!("PATCH {MAP}"));
    assert_eq!(of(MAP, stage.member.writes()), both);
    let written = stage.member.get(MAP).await;
    assert_eq!(written["data"], json!({ "other": "value" }));
    let fields = written["metadata"]["managedFields"].as_array().unwrap();
    let managers: Vec<_> = fields.iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(managers, ["work-api-agent"]);
    stage.rests().await;
}

/// Case F74: an object of another is shared where that is asked for, and stays to it when the placement goes.
#[tokio::test(start_paused = true)]
async fn shared_object_stays_to_its_owner() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    let mut other = map();
    other["metadata"]["name"] = json!("else");
    let other = stage.member.send("POST", MAPS, &other).await;
    let reference =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "else", "uid": other.uid() });
    let mut theirs = theirs();
    theirs["metadata"]["ownerReferences"] = json!([reference]);
    stage.member.send("POST", MAPS, &theirs).await;
    stage.apply_map(json!({ "allowCoOwnership": false })).await;
    assert_eq!(stage.says().await.1, [["Applied False FailedToTakeOver"]]);
    stage.apply_map(json!({ "allowCoOwnership": true })).await;
    assert_eq!(stage.says().await.0[0], "Applied True AllManifestsApplied");
    assert_eq!(
        data(&stage).await,
        json!({ "key": "value", "other": "stays" })
    );
    assert_eq!(stage.member.get(MAP).await.owners().len(), 2);
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    assert_eq!(stage.hub.find(WORK).await, None);
    let left = stage.member.get(MAP).await;
    let owners: Vec<_> = left.owners().iter().map(|one| one.uid.to_owned()).collect();
    assert_eq!(owners, [other.uid()]);
}

/// Case F73: of two placements of one object the first has it, however much either would share; the second gets it once
/// the first is gone.
#[tokio::test(start_paused = true)]
async fn second_placement_waits() {
    let stage = Stage::joined().await;
    stage.member.create_namespace("application-1").await;
    stage.apply_map(json!({ "allowCoOwnership": true })).await;
    let mut second = work(&[map()]);
    second["metadata"]["name"] = json!("second");
    second["spec"]["applyStrategy"] = json!({ "allowCoOwnership": true });
    second["spec"]["workload"]["manifests"][0]["data"]["key"] = json!("second");
    stage.hub.send("POST", WORKS, &second).await;
    stage.settle().await;
    let refused = stage.hub.get(&format!("{WORKS}/second")).await;
    let told = &refused["status"]["manifestConditions"][0]["conditions"][0];
    assert_eq!(told["reason"], "FailedToTakeOver");
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("belongs to AppliedWork crp-all-work"),
        "{message}"
    );
    assert_eq!(data(&stage).await["key"], "value");
    stage.rests().await;
    stage.hub.send("DELETE", WORK, &json!({})).await;
    stage.settle().await;
    assert_eq!(data(&stage).await["key"], "second");
}
