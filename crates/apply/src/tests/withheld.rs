//! Manifests that are withheld, and objects that their set does not list any more.

use super::*;

impl Stage {
    /// Syncs while the manifest at `place` is withheld.
    async fn sync_without(&self, source: &Source, place: usize) -> Vec<Synced> {
        let set = ManifestSet {
            withheld: BTreeSet::from([place]),
            ..source.set()
        };
        match self.member.sync(&self.writes, &set).await {
            SyncResult::Done { manifests, .. } => manifests,
            SyncResult::Later(_) => panic!("not listed"),
        }
    }
}

/// A withheld object is deleted once, and its neighbour stays. When it is released, it is back with the next sync.
#[tokio::test(start_paused = true)]
async fn withheld_object_goes_and_returns() {
    let mut stage = Stage::watching().await;
    let source = source(&json!([settings(), deployment()]));
    stage.sync(&source).await;
    stage.woken().await;
    stage.woken().await;
    stage.api.writes();
    for is_there in [true, false] {
        let synced = stage.sync_without(&source, 0).await;
        assert!(synced.iter().all(|one| one.error.is_none()), "{synced:?}");
        assert_eq!(synced[0].object, ObservedObject::Absent);
        assert!(matches!(synced[1].object, ObservedObject::Present(_)));
        let deleted = is_there.then(|| format!("DELETE {SETTINGS}"));
        assert_eq!(stage.api.writes(), Vec::from_iter(deleted));
        if is_there {
            stage.woken().await;
        }
    }
    stage.sync(&source).await;
    assert_eq!(stage.api.writes(), [format!("PATCH {SETTINGS}")]);
}

/// An object that its set does not list any more goes, after a restart too. Those that it lists stay, and so do those of
/// other sets, and of kinds that are not pruned.
#[tokio::test(start_paused = true)]
async fn unlisted_object_is_pruned() {
    let mut stage = Stage::watching().await;
    let source = source(&json!([settings(), deployment()]));
    stage.sync(&source).await;
    stage.woken().await;
    stage.woken().await;
    let set = source.set();
    stage.member.prune(&stage.writes, &set).await.unwrap();
    assert!(stage.api.find(SETTINGS).await.is_some());
    let mut other = settings();
    other["metadata"]["name"] = json!("other");
    other["metadata"]["annotations"][SET] = json!("other");
    stage.api.send("POST", MAPS, &other).await;
    let stage = Stage::of(stage.api).watch().await;
    let set = ManifestSet {
        manifests: Vec::new(),
        ..source.set()
    };
    stage.member.prune(&stage.writes, &set).await.unwrap();
    assert_eq!(stage.api.find(SETTINGS).await, None);
    for kept in [WEB, &format!("{MAPS}/other")] {
        assert!(stage.api.find(kept).await.is_some(), "{kept}");
    }
}
