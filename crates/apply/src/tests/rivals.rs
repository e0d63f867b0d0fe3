//! Another client in the cluster changes an object back after each of our writes.

use tokio::time::{Instant, sleep_until};

use super::*;

/// Changes the greeting back, and waits until that is seen.
async fn undo(stage: &mut Stage) {
    let path = format!("{SETTINGS}?fieldManager=rival");
    let theirs = json!({ "data": { "greeting": "theirs" } });
    stage.api.send("PATCH", &path, &theirs).await;
    while !sees_theirs(stage) {
        stage.woken().await;
    }
}

fn sees_theirs(stage: &Stage) -> bool {
    let settings = Key::new("shop", "settings");
    let seen = stage.member.watches.get(&map(), &settings);
    seen.is_some_and(|seen| seen.value()["data"]["greeting"] == "theirs")
}

fn map() -> GroupVersionKind {
    GroupVersionKind::new("v1", "ConfigMap")
}

fn both() -> Source {
    Source {
        style: WriteStyle::Replace,
        ..source(&json!([settings(), deployment()]))
    }
}

/// The rival is named once, its object is written after growing pauses, and whatever else is of the set at once. Once
/// it stops, all is as wanted at the end of the pause.
#[tokio::test(start_paused = true)]
async fn rival_meets_growing_pauses() {
    let mut stage = Stage::watching().await;
    let source = both();
    let mut named = Vec::new();
    let mut writes = 0;
    for _ in 0..20 {
        let synced = stage.sync(&source).await;
        assert!(synced.iter().all(|one| one.error.is_none()), "{synced:?}");
        writes += usize::from(synced[0].written);
        let contested = synced.into_iter().filter_map(|one| one.contested);
        named.extend(contested.filter(|one| one.is_news).map(|one| one.manager));
        undo(&mut stage).await;
    }
    assert_eq!(writes, 3);
    assert_eq!(named, [Some("rival".to_owned())]);
    stage.read();

    let drift = json!({ "spec": { "replicas": 7 } });
    stage.api.send("PATCH", WEB, &drift).await;
    while !stage.sync(&source).await[1].written {
        stage.woken().await;
    }
    assert!(
        !stage.read().contains(&SETTINGS.to_owned()),
        "it is not even looked at"
    );

    let mut longest = Duration::from_secs(1);
    for _ in 0..3 {
        let contested = stage.sync(&source).await.remove(0).contested.unwrap();
        let pause = contested.until - Instant::now();
        assert!(longest / 2 < pause && pause <= longest, "{pause:?}");
        assert!(!contested.is_news);
        sleep_until(contested.until).await;
        assert!(stage.sync(&source).await[0].written);
        longest *= 2;
        if longest < Duration::from_secs(8) {
            undo(&mut stage).await;
        }
    }
    let settings = stage.api.get(SETTINGS).await;
    assert_eq!(settings["data"]["greeting"], "hello");
}

/// An edit of the manifest is written at once, whatever becomes of it.
#[tokio::test(start_paused = true)]
async fn edit_knows_no_pause() {
    let mut stage = Stage::watching().await;
    let mut source = both();
    for _ in 0..5 {
        stage.sync(&source).await;
        undo(&mut stage).await;
    }
    assert!(!stage.sync(&source).await[0].written);
    source.manifests[0]["data"]["greeting"] = json!("good day");
    source.generation += 1;
    assert!(stage.sync(&source).await[0].written);
}

/// Case P98: a member keeps an object from being as its manifest, as a webhook may. A scaler that changes it undoes nothing
/// of ours, and an object that was there already is not told as written.
#[tokio::test(start_paused = true)]
async fn idle_writes_are_not_undone() {
    let mut stage = Stage::watching().await;
    let mut manifest = deployment();
    manifest["metadata"]["labels"]["retains-replicas"] = json!("true");
    manifest["spec"]["fromTheFuture"] = json!({ "a": 1 });
    let source = Source {
        style: WriteStyle::Replace,
        ..source(&json!([manifest]))
    };
    assert!(stage.sync(&source).await[0].written);
    stage.woken().await;
    stage.api.writes();
    // Who writes the subresource `scale`, which this API lacks, owns nothing of the object.
    let as_scale = format!("{WEB}?fieldManager=tester");
    for replicas in 3..9 {
        let scaled = json!({ "spec": { "replicas": replicas } });
        stage.api.send("PATCH", &as_scale, &scaled).await;
        stage.woken().await;
        let synced = stage.sync(&source).await.remove(0);
        assert_eq!(synced.contested, None, "after {replicas}");
        assert!(!synced.written);
        assert_eq!(stage.api.writes(), [format!("PUT {WEB}")], "it was tried");
    }
    assert_eq!(stage.api.get(WEB).await["spec"]["replicas"], 8);
}

/// A set that comes and goes with its objects, as under failover, is nobody's contention.
#[tokio::test(start_paused = true)]
async fn removal_ends_contention() {
    let stage = Stage::watching().await;
    let source = both();
    for _ in 0..8 {
        let synced = stage.sync(&source).await;
        assert!(synced.iter().all(|one| one.written), "{synced:?}");
        let removed = stage.member.remove(&stage.writes, &source.set()).await;
        assert_eq!(removed.unwrap(), []);
        stage.member.forget(&source.set().key);
    }
}
