use super::*;

pub(super) fn with_room(name: &str, pods: u32) -> ClusterView {
    let mut cluster = cluster(name, 1);
    cluster.metadata.resource_version = Some(pods.to_string());
    let room = json!({ "allocatable": { "pods": pods.to_string() } });
    cluster.status.resource_summary = from_value(room).unwrap();
    cluster
}

/// Room elsewhere wakes the bindings that have to leave a cluster.
#[tokio::test]
async fn room_wakes_leaving_bindings() {
    let mut placement = divided();
    placement["replicaScheduling"]["replicaDivisionPreference"] = json!("Aggregated");
    for evicts in [false, true] {
        let scheduler = Scheduler {
            name: "default-scheduler".to_owned(),
            evicts,
            ..Scheduler::default()
        };
        let writer = Writer::new(Leadership::always(), WriteMetrics::default());
        let stage = Stage::of(
            scheduler,
            Heeded::default(),
            api().await,
            WriteMode::Perform(writer),
        );
        stage.show_cluster(with_room("m1", 2));
        stage.show_cluster(with_room("m2", 1));
        let (key, path) = web();
        let new = binding("web", "ResourceBinding", &placement);
        stage.show(&stage.api.create(&new).await);
        stage.reconcile(&key).await.unwrap();
        let mut tainted = with_room("m1", 3);
        tainted.spec.taints = from_value(json!([{ "key": "k", "effect": "NoExecute" }])).unwrap();
        stage.show_cluster(tainted);
        let stays = stage.assert_settled(&path, &key).await;
        assert_eq!(stays["spec"]["clusters"][0]["name"], "m1");

        let woken = stage.show_cluster(with_room("m2", 2));
        assert_eq!(woken.len(), usize::from(evicts));
        stage.reconcile(&key).await.unwrap();
        let after = stage.assert_settled(&path, &key).await;
        let expected = if evicts { "m2" } else { "m1" };
        assert_eq!(after["spec"]["clusters"][0]["name"], expected);
    }
}
