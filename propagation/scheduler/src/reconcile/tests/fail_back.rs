use super::evict::with_room;
use super::*;

/// Returns a scheduler that moves workloads back if `fails_back`.
fn scheduler(fails_back: bool) -> Scheduler {
    Scheduler {
        name: "default-scheduler".to_owned(),
        fails_back,
        ..Scheduler::default()
    }
}

/// Room in an earlier group wakes the bindings that return to it.
#[tokio::test]
async fn earlier_room_wakes_returning_bindings() {
    let groups = json!([
        { "affinityName": "first", "clusterNames": ["m1"] },
        { "affinityName": "second", "clusterNames": ["m2"] },
    ]);
    let mut placement = divided();
    placement["replicaScheduling"]["replicaDivisionPreference"] = json!("Aggregated");
    placement["clusterAffinities"] = groups;
    for fails_back in [false, true] {
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        let stage = Stage::of(
            scheduler(fails_back),
            Heeded::default(),
            api().await,
            WriteMode::Perform(writer),
        );
        stage.show_cluster(with_room("m1", 1));
        stage.show_cluster(with_room("m2", 2));
        let (key, path) = web();
        let new = binding("web", "ResourceBinding", &placement);
        stage.show(&stage.api.create(&new).await);
        stage.reconcile(&key).await.unwrap();
        let second = stage.assert_settled(&path, &key).await;
        assert_eq!(second["spec"]["clusters"][0]["name"], "m2");

        let woken = stage.show_cluster(with_room("m1", 2));
        assert_eq!(woken.len(), usize::from(fails_back));
        stage.reconcile(&key).await.unwrap();
        let after = stage.assert_settled(&path, &key).await;
        let expected = if fails_back { "m1" } else { "m2" };
        assert_eq!(after["spec"]["clusters"][0]["name"], expected);
    }
}

/// The reports of the copies decide, and most of them are not kept.
#[tokio::test]
async fn former_report_delays_return() {
    let groups = json!([
        { "affinityName": "first", "clusterNames": ["m1"] },
        { "affinityName": "second", "clusterNames": ["m2"] },
    ]);
    let writer = Writer::new(Leadership::always(), WriteMetrics::default());
    let stage = Stage::of(
        scheduler(true),
        Heeded::default(),
        api().await,
        WriteMode::Perform(writer),
    );
    stage.show_cluster(cluster("m2", 1));
    let (key, path) = web();
    let placement = json!({ "clusterAffinities": groups });
    let new = binding("web", "ResourceBinding", &placement);
    stage.show(&stage.api.create(&new).await);
    stage.reconcile(&key).await.unwrap();
    let former = json!([{ "clusterName": "m1", "applied": true, "status": { "replicas": 2 } }]);
    let reports = json!({ "status": { "aggregatedStatus": former } });
    let status = format!("{path}/status");
    stage.api.send("PATCH", &status, &reports).await;
    stage.assert_settled(&path, &key).await;

    stage.show_cluster(cluster("m1", 1));
    stage.assert_settled(&path, &key).await;
    let gone = json!({ "status": { "aggregatedStatus": [] } });
    stage.show(&stage.api.send("PATCH", &status, &gone).await);
    stage.reconcile(&key).await.unwrap();
    let after = stage.assert_settled(&path, &key).await;
    assert_eq!(after["spec"]["clusters"][0]["name"], "m1");
    assert_eq!(
        after["spec"]["gracefulEvictionTasks"][0]["fromCluster"],
        "m2"
    );
}
