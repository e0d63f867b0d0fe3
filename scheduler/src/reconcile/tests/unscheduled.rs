use super::*;

/// Its status counts them all.
#[tokio::test]
async fn a_cluster_that_it_does_not_select_wakes_a_binding_that_fits_nowhere() {
    let stage = Stage::new().await;
    let (key, path) = web();
    let placement = json!({ "clusterAffinity": { "clusterNames": ["m9"] } });
    let new = binding("web", "ResourceBinding", &placement);
    stage.show(&stage.api.create(BINDINGS, &new).await);
    stage.reconcile(&key).await.unwrap();
    let unfit = stage.assert_settled(&path, &key).await;
    assert_eq!(unfit["status"]["conditions"][0]["reason"], "NoClusterFit");

    let mut woken = Vec::new();
    stage.reconciler.index.observe(|index| {
        woken = index.observe_cluster(Seen::Apply(Decoded::Valid(cluster("m3", 1))));
        Vec::new()
    });
    assert_eq!(woken, std::slice::from_ref(&key));
    stage.reconcile(&key).await.unwrap();
    let after = stage.assert_settled(&path, &key).await;
    let message = after["status"]["conditions"][0]["message"].as_str();
    assert!(message.unwrap().starts_with("0/3 clusters"), "{message:?}");
}
