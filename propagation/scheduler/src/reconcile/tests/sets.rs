//! Bindings with components.

use super::evict::with_room;
use super::*;

/// Returns the binding of a Deployment `web` with a manager and as many workers, to go to one cluster.
fn job(workers: i32) -> Value {
    let one = json!({ "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }] });
    let mut binding = binding("web", "ResourceBinding", &one);
    binding["spec"].as_object_mut().unwrap().remove("replicas");
    binding["spec"]["components"] = components(workers);
    binding
}

fn components(workers: i32) -> Value {
    json!([{ "name": "manager", "replicas": 1 }, { "name": "worker", "replicas": workers }])
}

/// Returns a stage with room for two Pods in `m1`, and for three in `m2`.
async fn stage(fits_sets: bool) -> Stage {
    let scheduler = Scheduler {
        name: "default-scheduler".to_owned(),
        fits_sets,
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
    stage.show_cluster(with_room("m2", 3));
    stage.show(&stage.api.create(&job(2)).await);
    stage
}

/// A set goes where all of it has room; once it is larger than any room it stays as it is, and follows once there is
/// some. Cases I86 and I88.
#[tokio::test]
async fn set_waits_for_room() {
    let stage = stage(true).await;
    let (key, path) = web();
    stage.reconcile(&key).await.unwrap();
    let stored = stage.assert_settled(&path, &key).await;
    let in_m2 = |workers| json!([{ "name": "m2", "components": components(workers) }]);
    assert_eq!(stored["spec"]["clusters"], in_m2(2));
    assert_eq!(stored["status"]["conditions"][0]["reason"], "Success");

    // The other two Pods are in the room that is reported by now.
    stage.show_cluster(with_room("m2", 0));
    let scaled = json!({ "spec": { "components": components(3) } });
    stage.show(&stage.api.send("PATCH", &path, &scaled).await);
    stage.reconcile(&key).await.unwrap();
    let short = stage.assert_settled(&path, &key).await;
    assert_eq!(short["spec"]["clusters"], in_m2(2));
    let condition = &short["status"]["conditions"][0];
    assert_eq!(condition["reason"], "SchedulerError");
    assert_eq!(
        condition["message"],
        "failed to select clusters: no enough resource when selecting 1 clusters"
    );

    let woken = stage.show_cluster(with_room("m2", 1));
    assert_eq!(woken, std::slice::from_ref(&key));
    stage.reconcile(&key).await.unwrap();
    let grown = stage.assert_settled(&path, &key).await;
    assert_eq!(grown["spec"]["clusters"], in_m2(3));
    assert_eq!(grown["status"]["conditions"][0]["reason"], "Success");
}

/// Without the feature it goes anywhere, and nobody counts. Case I89.
#[tokio::test]
async fn sets_are_off_by_default() {
    let stage = stage(false).await;
    let (key, path) = web();
    stage.reconcile(&key).await.unwrap();
    let stored = stage.assert_settled(&path, &key).await;
    assert_eq!(stored["spec"]["clusters"], json!([{ "name": "m1" }]));
}
