use std::time::Duration;

use super::*;

impl Stage {
    /// Returns a stage on which [`web`] selects a cluster that does not exist, and has been tried.
    async fn without_its_cluster() -> Self {
        let stage = Self::new().await;
        let (key, path) = web();
        let placement = json!({ "clusterAffinity": { "clusterNames": ["m9"] } });
        let new = binding("web", "ResourceBinding", &placement);
        stage.show(&stage.api.create(&new).await);
        stage.reconcile(&key).await.unwrap();
        let unfit = stage.assert_settled(&path, &key).await;
        assert_eq!(unfit["status"]["conditions"][0]["reason"], "NoClusterFit");
        stage
    }
}

/// Its status counts them all.
#[tokio::test]
async fn any_cluster_wakes_unscheduled() {
    let stage = Stage::without_its_cluster().await;
    let (key, path) = web();
    let woken = stage.show_cluster(cluster("m3", 1));
    assert_eq!(woken, std::slice::from_ref(&key));
    stage.reconcile(&key).await.unwrap();
    let after = stage.assert_settled(&path, &key).await;
    let message = after["status"]["conditions"][0]["message"].as_str();
    assert!(message.unwrap().starts_with("0/3 clusters"), "{message:?}");
}

/// The watch of the clusters may miss the change that would wake it.
#[tokio::test(start_paused = true)]
async fn unscheduled_binding_is_retried() {
    let stage = Stage::without_its_cluster().await;
    let index = Arc::clone(&stage.reconciler.index);
    let (api, _program) = stage.run();
    // Virtual time advances only once every task is idle.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let unseen = Seen::Apply(Decoded::Valid(cluster("m9", 1)));
    index.lock().clusters.observe(unseen);
    assert_eq!(api.writes(), [""; 0]);
    tokio::time::sleep(Duration::from_mins(5)).await;
    let after = api.get(&web().1).await;
    assert_eq!(after["spec"]["clusters"][0]["name"], "m9");
}
